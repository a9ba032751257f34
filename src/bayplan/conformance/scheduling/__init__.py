"""kube-scheduler's recorded decisions, run against the room `scheduling`. Their form: tests/vectors/sched/FORMAT.md."""
