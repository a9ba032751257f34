"""PodTopologySpread over columns: the counts are tallies, the rest is arithmetic by domain.

The same formulas as the readable plugin, in the same order of float operations.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from bayplan.scheduling.fast.tallies import Alike
from bayplan.scheduling.framework import MAX_SCORE
from bayplan.scheduling.plugins.pod_topology_spread import HARD, SOFT
from bayplan.scheduling.plugins.pod_topology_spread.constraints import HOSTNAME, Eligibility

if TYPE_CHECKING:
    from bayplan.scheduling.fast.columns import Columns, Flags, Floats, Group, Positions, Totals
    from bayplan.scheduling.fast.tallies import Tallies, Tally
    from bayplan.scheduling.plugins.pod_topology_spread import PodTopologySpread
    from bayplan.scheduling.plugins.pod_topology_spread.constraints import Constraint
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState


class _Hard:
    __slots__ = ("_least_domains", "_own", "_present", "_skew", "_tally")

    def __init__(self, constraint: Constraint, tally: Tally, eligible: Flags, pod: PodInfo) -> None:
        self._tally = tally
        self._present: Positions = np.unique(tally.group.codes[eligible])
        self._least_domains = constraint.min_domains
        self._own = int(constraint.selector.matches(pod.labels))
        self._skew = constraint.max_skew

    def keep(self, ok: Flags) -> None:
        counts = self._tally.counts
        enough = len(self._present) >= max(1, self._least_domains)
        least = int(counts[self._present].min()) if enough else 0
        fits: Flags = counts + self._own - least <= self._skew
        group = self._tally.group
        if None in group.values:
            fits[group.values.index(None)] = False
        if not fits.all():
            ok &= fits[group.codes]


class _Soft:
    __slots__ = ("_absent", "_by_host", "_group", "_skew", "_tally")

    def __init__(self, constraint: Constraint, tally: Tally, group: Group) -> None:
        self._tally = tally
        self._group = group
        self._skew = float(constraint.max_skew - 1)
        self._by_host = constraint.topology_key == HOSTNAME
        self._absent = [code for code, value in enumerate(group.values) if value is None]

    def points(self, considered: Flags, number: int) -> Floats:
        """How many are around each node, weighed by the number of domains that are considered."""
        size = number if self._by_host else self._domains(considered, number)
        around: Floats = np.multiply(self._tally.counts, math.log(size + 2), dtype=np.float64)
        around += self._skew
        group = self._group
        if self._by_host:
            if self._absent:
                around[np.isin(group.codes, self._absent)] = 0.0
            return around
        around[self._absent] = 0.0
        by_node: Floats = around[group.codes]
        return by_node

    def _domains(self, considered: Flags, number: int) -> int:
        """The domains with a node that is considered. No label and an empty one are the same."""
        group = self._group
        if number == len(considered):
            return len(group.values) - (None in group.values and "" in group.values)
        there = np.zeros(len(group.values), dtype=np.bool_)
        there[group.codes[considered]] = True
        nameless = [code for code, value in enumerate(group.values) if value in (None, "")]
        return int(np.count_nonzero(there)) - (len(nameless) == 2 and bool(there[nameless].all()))


class Spread:
    """A pod's spread constraints."""

    __slots__ = ("_hard", "_labelled", "_soft", "_weight")

    def __init__(
        self, plugin: PodTopologySpread, weight: int, pod: PodInfo, state: ClusterState, columns: Columns,
        tallies: Tallies,
    ) -> None:  # fmt: skip
        self._weight = weight
        hard, soft = plugin.constraints(pod, state, HARD), plugin.constraints(pod, state, SOFT)
        eligibility = Eligibility(pod)
        self._hard: list[_Hard] = []
        for each in hard:
            eligible = _eligible(each, eligibility, columns) & _labelled(hard, columns)
            group = columns.topology(each.topology_key)
            self._hard.append(_Hard(each, tallies.of(_crowd(pod, each), group, eligible), eligible, pod))
        needs_all = plugin.needs_all(pod)
        self._labelled = _labelled(soft, columns) if needs_all else None
        self._soft: list[_Soft] = []
        for each in soft if weight else ():
            if each.topology_key == HOSTNAME:
                tally = tallies.of(_crowd(pod, each), columns.group("name", lambda node: node.name))
            else:
                eligible = _eligible(each, eligibility, columns)
                if self._labelled is not None:
                    eligible &= self._labelled
                tally = tallies.of(_crowd(pod, each), columns.topology(each.topology_key), eligible)
            self._soft.append(_Soft(each, tally, columns.topology(each.topology_key)))

    def __bool__(self) -> bool:
        return bool(self._hard or self._soft)

    def keep(self, ok: Flags) -> None:
        """Strike out the nodes that hard constraints forbid."""
        for each in self._hard:
            each.keep(ok)

    def points(self, feasible: Flags) -> Totals | None:
        """What soft constraints give the feasible nodes."""
        if not self._soft:
            return None
        considered = feasible if self._labelled is None else feasible & self._labelled
        number = int(np.count_nonzero(considered))
        if not number:
            return None
        raw = self._soft[0].points(considered, number)
        for each in self._soft[1:]:
            raw += each.points(considered, number)
        whole = np.floor(raw)
        raw -= whole
        whole += raw >= 0.5
        counted = whole if number == len(considered) else whole[considered]
        least, most = float(counted.min()), float(counted.max())
        if most == 0:
            whole[:] = MAX_SCORE
        else:
            np.subtract(most + least, whole, out=whole)
            whole *= MAX_SCORE
            whole /= most
            np.floor(whole, out=whole)
        points = whole.astype(np.int32)
        if number != len(considered):
            points[~considered] = 0
        points *= self._weight
        return points


def _crowd(pod: PodInfo, constraint: Constraint) -> Alike:
    return Alike(pod.namespace, constraint.selector)


def _labelled(constraints: tuple[Constraint, ...], columns: Columns) -> Flags:
    """The nodes that have a place in every topology."""
    found = np.ones(len(columns.nodes), dtype=np.bool_)
    for each in constraints:
        group = columns.topology(each.topology_key)
        if None in group.values:
            found &= group.codes != group.values.index(None)
    return found


def _eligible(constraint: Constraint, eligibility: Eligibility, columns: Columns) -> Flags:
    return np.fromiter((eligibility.admits(node, constraint) for node in columns.nodes), np.bool_, len(columns.nodes))
