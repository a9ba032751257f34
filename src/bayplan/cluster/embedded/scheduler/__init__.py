"""The scheduler of the embedded engine: kube-scheduler's decisions, queue and preemption, in the engine's time.

knowledge    what it knows of the cluster, from changes; those that cannot matter are passed over
controller   one pod at a time: tried, placed, refused
refusals     what one was told may hold for another
words        what is written about it
"""

from bayplan.cluster.embedded.scheduler.controller import SchedulerController

__all__ = ["SchedulerController"]
