"""Live agreement: the same arrivals to a real kube-scheduler and to bayplan's decision cycle, one decision at a time.

shapes     clusters and the pods that arrive in them, drawn from a seed
real       the lab's side: create, and wait for the scheduler's word
mirror     our side: the state as the scheduler knows it, and our decision on it
judging    one real answer beside our decision
report     what a campaign has shown
campaign   the arrivals of a shape put to both sides
"""
