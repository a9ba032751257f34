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

    __slots__ = (
        "_away", "_hard_weight", "_ignores_others", "_labels", "_near", "_near_itself", "_pod", "_seen", "_tallies",
        "_unwelcome", "_weight", "_wishes", "_wishes_of_others",
    )  # fmt: skip

    def __init__(
        self, plugin: InterPodAffinity, weight: int, pod: PodInfo, state: ClusterState, columns: Columns,
        tallies: Tallies,
    ) -> None:  # fmt: skip
        wants = pod.wants
        self._pod, self._tallies, self._weight = pod, tallies, weight
        self._hard_weight = plugin.args.hard_pod_affinity_weight
        choosy = bool(wants.preferred_affinity or wants.preferred_anti_affinity)
        self._ignores_others = plugin.args.ignore_preferred_terms_of_existing_pods and not choosy
        self._labels = state.namespace_labels(pod.namespace)
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
        self._wishes_of_others: list[tuple[Tally, int]] = []
        self._seen = 0

    @property
    def is_strict(self) -> bool:
        """Whether there is any required term to look at."""
        self._look_around()
        return bool(self._near or self._away or self._unwelcome)

    @property
    def has_wishes(self) -> bool:
        """Whether there is any preferred term to look at."""
        self._look_around()
        return bool(self._weight and (self._wishes or self._wishes_of_others))

    def _look_around(self) -> None:
        """Find the terms of others that speak of this pod, if there are new ones."""
        held = self._tallies.held
        if self._seen == len(held):
            return
        for holding, tally in list(held.items())[self._seen :]:
            if holding.term.matches(self._pod, self._labels):
                if holding.role is Role.AWAY:
                    self._unwelcome.append(tally)
                elif weight := self._weight_of(holding):
                    self._wishes_of_others.append((tally, weight))
        self._seen = len(held)

    def _weight_of(self, holding: Holding) -> int:
        if self._ignores_others:
            return 0
        if holding.role is Role.NEAR:
            return self._hard_weight
        return holding.term.weight if holding.role is Role.WISH else -holding.term.weight

    def keep(self, ok: Flags) -> None:
        """Strike out the nodes that required terms forbid."""
        self._look_around()
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
        raw = _summed((*self._wishes, *self._wishes_of_others), chosen) if self.has_wishes else None
        if raw is None:
            return
        least = int(raw.min())
        span = int(raw.max()) - least
        if span:
            shares = (raw - least) / span
            shares *= float(MAX_SCORE)
            points += shares.astype(np.int64) * self._weight


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
