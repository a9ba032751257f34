"""InterPodAffinity over columns: what matters to one pod, as tallies to look into."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.scheduling.fast.tallies import Matching, Role
from bayplan.scheduling.framework import MAX_SCORE
from bayplan.scheduling.plugins.inter_pod_affinity import matches_all, resolved

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.scheduling.fast.columns import Columns, Flags, Ints, Positions
    from bayplan.scheduling.fast.tallies import Holding, Tallies, Tally
    from bayplan.scheduling.plugins.inter_pod_affinity import InterPodAffinity
    from bayplan.scheduling.pods import AffinityTerm, PodInfo
    from bayplan.scheduling.state import ClusterState


class Affinity:
    """A pod's terms, and the terms of others that speak of it."""

    __slots__ = ("_away", "_near", "_near_itself", "_unwelcome", "_weight", "_wishes")

    def __init__(
        self, plugin: InterPodAffinity, weight: int, pod: PodInfo, state: ClusterState, columns: Columns,
        tallies: Tallies,
    ) -> None:  # fmt: skip
        wants = pod.wants
        self._weight = weight
        near = resolved(wants.affinity, state)
        self._near_itself = matches_all(near, pod)

        def tally(terms: tuple[AffinityTerm, ...], key: str) -> Tally:
            return tallies.of(Matching(terms), columns.topology(key))

        self._near = [tally(near, term.topology_key) for term in near]
        self._away = [tally((term,), term.topology_key) for term in resolved(wants.anti_affinity, state)]
        self._wishes = [
            (tally((term,), term.topology_key), sign * term.weight)
            for terms, sign in ((wants.preferred_affinity, 1), (wants.preferred_anti_affinity, -1))
            for term in resolved(terms, state)
        ]
        self._unwelcome: list[Tally] = []
        choosy = bool(wants.preferred_affinity or wants.preferred_anti_affinity)
        others_count = choosy or not plugin.args.ignore_preferred_terms_of_existing_pods
        for holding, count in tallies.held_against(pod, state).items():
            if holding.role is Role.AWAY:
                self._unwelcome.append(count)
            elif others_count and (worth := _weight(holding, plugin.args.hard_pod_affinity_weight)):
                self._wishes.append((count, worth))

    @property
    def is_strict(self) -> bool:
        """Whether there is any required term to look at."""
        return bool(self._near or self._away or self._unwelcome)

    @property
    def has_wishes(self) -> bool:
        """Whether there is any preferred term to look at."""
        return bool(self._weight and self._wishes)

    def keep(self, ok: Flags) -> None:
        """Strike out the nodes that required terms forbid."""
        if self._near:
            alone = self._near_itself and not any(tally.total for tally in self._near)
            for tally in self._near:
                there = np.ones(len(tally.counts), dtype=np.bool_) if alone else tally.counts > 0
                if None in tally.group.values:
                    there[tally.group.values.index(None)] = False
                ok &= there[tally.group.codes]
        for tally in (*self._away, *self._unwelcome):
            if tally.total:
                ok &= (tally.counts == 0)[tally.group.codes]

    def add_points(self, points: Ints, chosen: Positions) -> None:
        """Add what preferred terms give the chosen nodes."""
        raw = _summed(self._wishes, chosen) if self.has_wishes else None
        if raw is None:
            return
        least = int(raw.min())
        span = int(raw.max()) - least
        if span:
            shares = (raw - least) / span
            shares *= float(MAX_SCORE)
            points += shares.astype(np.int64) * self._weight


def _weight(holding: Holding, hard_weight: int) -> int:
    """What it counts for a node that somebody near it holds a term, speaking of the pod, as a wish."""
    if holding.role is Role.NEAR:
        return hard_weight
    return holding.term.weight if holding.role is Role.WISH else -holding.term.weight


def _summed(wishes: Iterable[tuple[Tally, int]], chosen: Positions) -> Ints | None:
    """The sum of weights around each node: added up by domain, then looked up by node."""
    sums: dict[int, tuple[Tally, Ints]] = {}
    for tally, weight in wishes:
        if tally.total:
            known = sums.get(id(tally.group))
            points = tally.counts * weight
            sums[id(tally.group)] = (tally, points if known is None else known[1] + points)
    found: Ints | None = None
    for tally, points in sums.values():
        by_node = points[tally.group.codes[chosen]]
        found = by_node if found is None else found + by_node
    return found
