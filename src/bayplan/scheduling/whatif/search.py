"""The search: sets of one change, then of two, then of three, until some work; each is verified by a rerun.

In a round all sets of one size are looked for: changes to the pod and to one node, one more node, a pod to move. At
most one of a set is a node to add or a pod to move, and these are combined with others only where nothing less
disturbing works. What is found is the cheapest of its kind; that no cheaper one exists is tested against an
exhaustive search on small clusters. In large ones a budget ends the search, which is then said to be incomplete.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import msgspec

from bayplan.scheduling.cycle import decide, gate_of
from bayplan.scheduling.decision import Outcome
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.state import ClusterState
from bayplan.scheduling.whatif import moving
from bayplan.scheduling.whatif.bench import Bench, Budget, signature
from bayplan.scheduling.whatif.changes import Change, Cost, applied, cost
from bayplan.scheduling.whatif.needs import Demands
from bayplan.scheduling.whatif.pod_changes import RemoveGates
from bayplan.scheduling.whatif.shapes import shapes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.whatif.bench import Accept, Signature
    from bayplan.scheduling.whatif.needs import Changes

MOST_TOGETHER = 3


class Proposal(msgspec.Struct, frozen=True):
    """Changes that would make the pod fit, as a rerun has shown: on `nodes`, and it would go to `node`."""

    changes: tuple[Change, ...]
    node: str
    nodes: tuple[str, ...]

    @property
    def cost(self) -> Cost:
        """By which proposals are ordered."""
        return cost(self.changes)


class Answer(msgspec.Struct, frozen=True):
    """The cheapest proposals, the cheapest first. `complete` is false where the search ended before it was through."""

    proposals: tuple[Proposal, ...] = ()
    complete: bool = True


def smallest_changes(state: ClusterState, profile: Profile, pod: PodInfo, *, most: int = 5) -> Answer:
    """What would make a pod fit that does not; nothing for one that does. The pod is not part of the state."""
    return _Search(state, profile, pod, most).answer()


class _Search:
    def __init__(self, state: ClusterState, profile: Profile, pod: PodInfo, most: int) -> None:
        self._state = state
        self._profile = profile
        self._pod = pod
        self._most = most
        self._budget = Budget(len(state.nodes))
        self._found: dict[Signature, Proposal] = {}
        gates = tuple(each.name for each in pod.pod.spec.scheduling_gates)
        gated = gate_of(profile, pod) is not None and bool(gates)
        self._always: Changes = (RemoveGates(gates),) if gated else ()

    def answer(self) -> Answer:
        roots = [*self._roots()]
        if any(site.free for before, bench in roots if not (self._always or before) for site in bench.sites):
            return Answer()  # it fits as it is
        for size in range(MOST_TOGETHER + 1):
            self._round(roots, size)
            if self._found:
                break
        ranked = sorted(self._found.values(), key=lambda each: each.cost)
        return Answer(tuple(ranked[: self._most]), not self._budget.exhausted)

    def _roots(self) -> Iterator[tuple[Changes, Bench]]:
        """The pod as it is; where all nodes are refused at once, with the changes after which they are asked."""
        plain = self._bench(())
        if plain.whole is None:
            yield (), plain
            return
        found: list[frozenset[Change]] = []
        looser = Demands(plain.pod).rules_about_nodes
        for size in range(1, MOST_TOGETHER + 1):
            for changes in combinations(looser, size):
                if not any(each <= {*changes} for each in found):
                    bench = self._bench(changes)
                    if bench.whole is None:
                        found.append(frozenset(changes))
                        yield changes, bench

    def _bench(self, changes: Changes) -> Bench:
        pod, _ = applied((*self._always, *changes), self._pod.pod, self._state)
        return Bench(self._state, self._profile, PodInfo(pod), self._budget)

    def _round(self, roots: list[tuple[Changes, Bench]], size: int) -> None:
        """All sets of that many changes; combined with the more disturbing kinds only where nothing else works."""
        for stage in (self._pods_and_nodes, self._adding, self._moving):
            for before, bench in roots:
                left = size - len(before)
                if left >= 0:
                    stage(bench, left, self._acceptance(before))
            if self._found and size > 1:
                return

    def _acceptance(self, before: Changes) -> Accept:
        def accept(changes: Changes) -> bool:
            whole = (*self._always, *before, *changes)
            pod, state = applied(whole, self._pod.pod, self._state)
            decision = decide(state, self._profile, PodInfo(pod))
            if decision.outcome is not Outcome.SCHEDULED:
                return False
            proposal = Proposal(whole, decision.node, decision.feasible)
            known = self._found.get(signature(whole))
            if known is None or proposal.cost < known.cost:
                self._found[signature(whole)] = proposal
            return True

        return accept

    def _pods_and_nodes(self, bench: Bench, size: int, accept: Accept) -> None:
        for number, _ in enumerate(bench.find(size, accept), start=1):
            if number == self._most:
                return

    def _adding(self, bench: Bench, size: int, accept: Accept) -> None:
        if size < 1 or self._budget.exhausted:
            return
        for shape in shapes(bench.state, bench.pod):

            def with_node(changes: Changes, shape: Change = shape) -> bool:
                return accept((*changes, shape))

            node = ClusterState().put_node(shape.node)
            works = next(bench.beside(node).find(size - 1, with_node), None)
            if works is not None and size == 1:
                return

    def _moving(self, bench: Bench, size: int, accept: Accept) -> None:
        if size >= 1:
            moving.find(bench, size, accept)
