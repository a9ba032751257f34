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
    from bayplan.scheduling.fast.columns import Columns, Flags, Floats, Group, Ints, Positions
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
    __slots__ = ("_absent", "_by_host", "_codes", "_missing", "_skew", "_tally", "_weight", "is_idle")

    def __init__(self, constraint: Constraint, tally: Tally, absent: Flags) -> None:
        self._tally = tally
        self._skew = float(constraint.max_skew - 1)
        self._by_host = constraint.topology_key == HOSTNAME
        self._absent = absent if absent.any() else None
        self.is_idle = bool(absent.all())
        """Whether no node has the label: nobody is around then."""
        self._missing: Positions | None = None
        self._codes: Positions
        self._weight = 0.0

    def choose(self, chosen: Positions, considered: Flags | None) -> None:
        """Take note of the nodes to be scored: the number of their domains is what counts weigh by."""
        number = len(chosen) if considered is None else int(np.count_nonzero(considered))
        self._codes = chosen if self._by_host else self._tally.group.codes[chosen]
        if not self._by_host:
            number = self._domains(self._codes if considered is None else self._codes[considered])
        self._weight = math.log(number + 2)
        self._missing = None if self._absent is None else np.flatnonzero(self._absent[chosen])

    def _domains(self, codes: Positions) -> int:
        there = np.zeros(len(self._tally.counts), dtype=np.bool_)
        there[codes] = True
        return int(np.count_nonzero(there))

    def around(self) -> Floats:
        """How many are around each of the chosen nodes, weighed; none where the label is missing."""
        counts = self._tally.counts[self._codes] if self._by_host else self._tally.counts
        around: Floats = np.multiply(counts, self._weight, dtype=np.float64)
        if self._skew:
            around += self._skew
        if not self._by_host:
            around = around[self._codes]
        if self._missing is not None:
            around[self._missing] = 0.0
        return around


class Spread:
    """A pod's spread constraints."""

    __slots__ = ("_considered", "_hard", "_labelled", "_soft", "_version", "_weight")

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
        self._considered: Flags | None = None
        """Of the chosen nodes those that have a place in every topology; None if all of them do."""
        self._version = 0
        counted: list[_Soft] = []
        for each in soft if weight else ():
            if each.topology_key == HOSTNAME:
                tally = tallies.of(_crowd(pod, each), columns.group("name", lambda node: node.name))
            else:
                eligible = _eligible(each, eligibility, columns)
                if self._labelled is not None:
                    eligible &= self._labelled
                tally = tallies.of(_crowd(pod, each), _domains(each.topology_key, columns), eligible)
            counted.append(_Soft(each, tally, ~_labelled((each,), columns)))
        self._soft = [each for each in counted if not each.is_idle] or counted[:1]

    @property
    def is_strict(self) -> bool:
        """Whether there are hard constraints."""
        return bool(self._hard)

    @property
    def has_wishes(self) -> bool:
        """Whether there are soft ones."""
        return bool(self._soft)

    def keep(self, ok: Flags) -> None:
        """Strike out the nodes that hard constraints forbid."""
        for each in self._hard:
            each.keep(ok)

    def _choose(self, chosen: Positions) -> None:
        labelled = None if self._labelled is None else self._labelled[chosen]
        self._considered = None if labelled is None or labelled.all() else labelled
        for each in self._soft:
            each.choose(chosen, self._considered)

    def add_points(self, points: Ints, chosen: Positions, version: int) -> None:
        """Add what soft constraints give the chosen nodes. A version other than 0 stands for the same nodes again."""
        if not self._soft:
            return
        if not version or version != self._version:
            self._choose(chosen)
            self._version = version
        raw = self._soft[0].around()
        for each in self._soft[1:]:
            raw += each.around()
        whole = np.floor(raw)
        raw -= whole
        whole += raw >= 0.5
        considered = self._considered
        counted = whole if considered is None else whole[considered]
        if not len(counted):
            return
        least, most = counted.item(counted.argmin()), counted.item(counted.argmax())
        if most == 0:
            whole[:] = MAX_SCORE
        else:
            np.subtract(most + least, whole, out=whole)
            whole *= MAX_SCORE
            whole /= most
            np.floor(whole, out=whole)
        if considered is not None:
            whole *= considered
        whole *= self._weight
        points += whole.astype(np.int64)


def _crowd(pod: PodInfo, constraint: Constraint) -> Alike:
    return Alike(pod.namespace, constraint.selector)


def _domains(key: str, columns: Columns) -> Group:
    """No label and an empty one are the same domain: a node without one is counted there, though it gets no points."""
    return columns.group(("domain", key), lambda node: node.labels.get(key, ""))


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
