"""A shape: pods that every plugin treats alike, and what is kept for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.model.resources import CPU, MEMORY
from bayplan.scheduling.fast.scoring import REFUSED, Asked
from bayplan.scheduling.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.scheduling.plugins.node_ports import NodePorts
from bayplan.scheduling.plugins.node_resources_fit import NodeResourcesFit, scored_requests

if TYPE_CHECKING:
    from bayplan.scheduling.fast.affinity import Affinity
    from bayplan.scheduling.fast.columns import Flags, Positions, Totals
    from bayplan.scheduling.fast.spread import Spread
    from bayplan.scheduling.fast.statics import Statics
    from bayplan.scheduling.fast.table import Table
    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState


class Shape:
    """What pods alike share. `seen` is how far in the journal of changed nodes its row has got."""

    __slots__ = (
        "_maxima", "_normal", "_ranks", "affinity", "asked", "in_use", "pod", "round", "row", "seen", "spread",
        "statics",
    )  # fmt: skip

    def __init__(self, pod: PodInfo, asked: Asked, statics: Statics, spread: Spread | None, affinity: Affinity | None):
        self.pod = pod
        self.asked = asked
        self.statics = statics
        self.spread = spread
        self.affinity = affinity
        self.row = -1
        self.seen = 0
        self.round = 0
        self.in_use = False
        self._ranks: Positions | None = None
        self._maxima: tuple[int, ...] = ()
        self._normal: Totals | None = None

    @property
    def base(self) -> Totals:
        """The static part of the totals, without what is normalised by the feasible nodes."""
        base: Totals = np.where(self.statics.ok, self.statics.fixed, np.int32(REFUSED))
        return base

    def forget_feasible(self) -> None:
        """Other nodes are feasible than before."""
        self._ranks = None

    def ranks(self, totals: Totals) -> Positions:
        """For each feasible node how many feasible ones come before it in search order."""
        if self._ranks is None:
            self._ranks = np.cumsum(totals >= 0, dtype=np.intp)
            self._ranks -= 1
        return self._ranks

    def renormalise(self, table: Table) -> None:
        """Bring the part of the base that the largest raw score of a feasible node decides up to date."""
        if self._ranks is not None and self._normal is not None:
            return
        feasible: Flags = table.totals[self.row] >= 0
        maxima = tuple(each.most(feasible) for each in self.statics.normalised)
        if maxima == self._maxima:
            return
        normal = self.normal_points(maxima)
        difference = np.where(self.statics.ok, normal if self._normal is None else normal - self._normal, 0)
        table.base[self.row] += difference
        table.totals[self.row] += difference
        self._maxima, self._normal = maxima, normal

    def normal_points(self, maxima: tuple[int, ...]) -> Totals:
        """The normalised part for given largest raw scores."""
        total: Totals = np.zeros(len(self.statics.ok), dtype=np.int32)
        for each, most in zip(self.statics.normalised, maxima, strict=True):
            total += each.points(most)
        return total

    def among(self, totals: Totals, chosen: Positions, feasible: Flags) -> Totals:
        """The totals of the chosen nodes, when these are all that count as feasible."""
        found = totals[chosen]
        if self._normal is not None:
            maxima = tuple(each.most(feasible) for each in self.statics.normalised)
            if maxima != self._maxima:
                found += (self.normal_points(maxima) - self._normal)[chosen]
        return found


def asked_of(pod: PodInfo, state: ClusterState, profile: Profile) -> Asked:
    """What a pod asks of nodes, with the plugins' own words for nodes that columns cannot hold."""
    fit = next(plugin for plugin in profile.filters if isinstance(plugin, NodeResourcesFit))
    amounts = tuple(fit.counted(pod).items())
    scored = scored_requests(pod)
    ports = next((plugin for plugin in profile.filters if isinstance(plugin, NodePorts)), None)
    checks = [plugin.filter(pod, state) for plugin in (fit, ports) if plugin]
    scorers = [
        (plugin.score(pod, state, ()), weight)
        for plugin, weight in profile.scorers
        if isinstance(plugin, NodeResourcesFit | NodeResourcesBalancedAllocation)
    ]

    def odd(node: NodeState) -> int:
        if any(check is not None and check.check(node) is not None for check in checks):
            return REFUSED
        return sum(scorer.score(node) * weight for scorer, weight in scorers if scorer is not None)

    requests = pod.requests
    plain = not pod.wants.host_ports
    return Asked(
        amounts, (scored[CPU], scored[MEMORY]), (requests.get(CPU, 0), requests.get(MEMORY, 0)), odd, plain=plain
    )
