"""Wished against chosen, for the VMs of a run: each placement is compared with what somebody would have liked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from bayplan.cluster.kinds import NODE
from bayplan.cluster.objects import Object
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.scheduling.decision import Decision
from bayplan.scheduling.framework import Profile
from bayplan.scheduling.state import ClusterState
from bayplan.simulate.seats import Ask, Seat
from bayplan.simulate.vms.agreement import Agreement, MoveResult, agreement
from bayplan.simulate.vms.pressure import cpu_pressure, memory_pressure
from bayplan.simulate.vms.reasons import Why, judge, why_elsewhere

Judge = Callable[[Pod], Decision]
"""How a scheduler decides on a pod that has just been placed, on the cluster without it."""


def judged(objects: Iterable[Object], pod: Pod, profile: Profile | None) -> Decision:
    """That decision, by a profile, on nodes and pods as they are; of the two kinds alone, and the pod may be there."""
    nodes, pods = [], []
    for item in objects:
        if item.kind is NODE:
            nodes.append(item.view(Node))
        elif item.uid != pod.metadata.uid:
            pods.append(item.view(Pod))
    state = ClusterState(())
    for node in nodes:
        state.put(node)
    for other in pods:
        if other.spec.node_name and not other.is_terminal:
            state.put(other)
    return judge(state, pod, profile)


class Wishes:
    """The account of one run."""

    def __init__(self, judge: Judge | None = None) -> None:
        self._judge = judge
        self._results: list[MoveResult] = []

    def placed(self, pod: Pod, wished: str, ask: Ask, seats: Mapping[str, Seat]) -> str:
        """A pod has its place, which counts already; why it is not the wished one."""
        chosen = pod.spec.node_name
        why = Why()
        if chosen != wished:
            why = Why("", "") if self._judge is None else why_elsewhere(self._judge(pod), wished, chosen)
        cost = _pressure(seats[chosen]) - _pressure(seats[wished], ask) if wished in seats and chosen != wished else 0.0
        self._results.append(MoveResult(wished, chosen, why, vm=pod.metadata.name, cost=cost, moved=True))
        return why.plugin or why.text

    def agreement(self) -> Agreement:
        """How the scheduler has agreed so far."""
        return agreement(self._results)


def _pressure(seat: Seat, more: Ask | None = None) -> float:
    """CPU or memory, whichever is worse, with another pod on the node."""
    cpu, memory, _ = seat.capacity
    cpu_taken, memory_taken = seat.cpu + (more.cpu if more else 0), seat.memory + (more.memory if more else 0)
    return max(
        cpu_pressure(cpu_taken / cpu) if cpu else 0.0,
        memory_pressure(memory_taken / memory) if memory else 0.0,
    )
