"""What is wrong with a ledger, and what cures it.

findings    every code, what it means and its cure
checks      one pure function a suspicion: plain values in, findings out
examine     asks the database and the cluster, and runs the checks
"""
