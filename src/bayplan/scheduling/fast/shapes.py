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
    from bayplan.scheduling.fast.columns import Flags, Ints, Positions, Totals
    from bayplan.scheduling.fast.gpu_rows import GpuRow
    from bayplan.scheduling.fast.rows import Row
    from bayplan.scheduling.fast.spread import Spread
    from bayplan.scheduling.fast.statics import Statics
    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState


class Shape:
    """What pods alike share."""

    __slots__ = (
        "_maxima", "_settled", "_variable", "affinity", "asked", "asked_for", "chosen", "feasible", "gpus", "pod",
        "row", "seen", "spread", "statics", "version",
    )  # fmt: skip

    def __init__(
        self, pod: PodInfo, asked: Asked, statics: Statics, spread: Spread | None, affinity: Affinity | None,
        gpus: GpuRow | None = None,
    ) -> None:  # fmt: skip
        self.pod = pod
        self.asked = asked
        self.statics = statics
        self.spread = spread
        self.affinity = affinity
        self.gpus = gpus
        self.asked_for = False
        """Whether it was asked for before."""
        self.row: Row | None = None
        """Its totals. A shape that was asked for only once keeps none."""
        self.seen = 0
        """How far in the journal of changed nodes its row has got."""
        self.version = 0
        """Grows when other nodes become feasible."""
        self.feasible: Flags
        self.chosen: Positions
        """The places of the feasible nodes."""
        self._settled = False
        self._maxima: tuple[int, ...] = ()
        self._variable: Totals | None = None

    @property
    def is_strict(self) -> bool:
        """Whether pods that are there may stand in the way."""
        return (self.spread is not None and self.spread.is_strict) or (
            self.affinity is not None and self.affinity.is_strict
        )

    @property
    def wishes(self) -> bool:
        """Whether more has a word in the score than the row of totals holds."""
        return (
            (self.spread is not None and self.spread.has_wishes)
            or (self.affinity is not None and self.affinity.has_wishes)
            or self.gpus is not None
        )

    def unsettle(self) -> None:
        """Other nodes are feasible than before."""
        self._settled = False

    def settle(self, row: Row, shift: int, heap: Ints | None = None) -> None:
        """Bring the part of the totals up to date that depends on which nodes are feasible.

        These are the scores that are normalised by the largest raw one and, in a row that is kept, the places that
        nodes have in upstream's heap.
        """
        if self._settled:
            return
        totals = row.totals
        self.version += 1
        self.feasible = totals >= 0
        self.chosen = np.flatnonzero(self.feasible)
        self._maxima = tuple(each.most(self.feasible) for each in self.statics.normalised)
        variable: Totals = np.zeros_like(totals)
        for each, most in zip(self.statics.normalised, self._maxima, strict=True):
            variable += each.points(most).astype(totals.dtype)
        variable <<= shift
        if heap is None:
            totals += variable
            return
        variable[self.chosen] += heap[: len(self.chosen)].astype(totals.dtype)
        row.add(variable if self._variable is None else variable - self._variable)
        self._variable = variable
        self._settled = True

    def points(self, totals: Totals, shift: int, chosen: Positions, feasible: Flags | None) -> Ints:
        """The points of the chosen nodes; `feasible` is given where it is not all the feasible ones that are chosen."""
        found: Ints = totals.take(chosen).astype(np.int64)
        found >>= shift
        if feasible is not None:
            for each, most in zip(self.statics.normalised, self._maxima, strict=True):
                here = each.most(feasible)
                if here != most:
                    found += each.points(here, chosen)
                    found -= each.points(most, chosen)
        return found


def asked_of(pod: PodInfo, state: ClusterState, profile: Profile) -> Asked:
    """What a pod asks of nodes, with the plugins' own words for nodes that columns cannot hold."""
    fit = next(plugin for plugin in profile.filters if isinstance(plugin, NodeResourcesFit))
    amounts = fit.counted(pod)
    scored = scored_requests(pod)

    def odd(node: NodeState) -> int:
        ports = next((plugin for plugin in profile.filters if isinstance(plugin, NodePorts)), None)
        checks = [plugin.filter(pod, state) for plugin in (fit, ports) if plugin]
        if any(check is not None and check.check(node) is not None for check in checks):
            return REFUSED
        scorers = [
            (plugin.score(pod, state, ()), weight)
            for plugin, weight in profile.scorers
            if isinstance(plugin, NodeResourcesFit | NodeResourcesBalancedAllocation)
        ]
        return sum(scorer.score(node) * weight for scorer, weight in scorers if scorer is not None)

    requests = pod.requests
    plain = not pod.wants.host_ports
    return Asked(
        amounts, (scored[CPU], scored[MEMORY]), (requests.get(CPU, 0), requests.get(MEMORY, 0)), odd, plain=plain
    )
