"""Which CPUs a request gets, distributed: the same share from each of as few NUMA nodes as will do.

CPUs go in groups of a given size (a core's, where cores are to stay whole). For each number k of nodes, from the
smallest that could do, every combination of k nodes is scored by how evenly it leaves the machine, the lowest score
wins, and the first k that has a winner is taken. What does not divide by k is dealt group by group over the subset of
the chosen nodes that scores best. Within a node CPUs are packed.

The score is the standard deviation of the free CPUs per node, its mean and itself rounded to thousandths. The sum of
the free CPUs is the same for every outcome, so a score depends on the sum of their squares alone, is an integer (in
thousandths), and is computed once for each sum. Combinations with the same counts score the same and the first wins,
so each sequence of counts is looked at once.

Source of truth: kubelet 1.36, takeByTopologyNUMADistributed. `as_upstream` keeps one of its defects: `_overwritten`
tells of it. Another, that it never returns where leftovers do not come in whole groups, was mended in
kubernetes/kubernetes#140730 in the way that is used here: capacity counts in whole groups.
"""

from __future__ import annotations

from itertools import combinations
from math import isqrt
from typing import TYPE_CHECKING, NamedTuple

from bayplan.node.cpu.assignment import NOTHING, Assignment, Selection, take_packed, too_few
from bayplan.node.cpu.layout import layout_of
from bayplan.node.errors import AllocationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bayplan.node.cpu.layout import Layout
    from bayplan.node.machine import Topology
    from bayplan.node.sets import CpuSet

Positions = tuple[int, ...]
"""Nodes by their place in the order."""

_WORST = 1 << 62
"""Above every score."""


def take_distributed(
    topology: Topology,
    available: CpuSet,
    count: int,
    *,
    group: int = 1,
    spread: bool = False,
    as_upstream: bool = False,
) -> Assignment:
    """Select `count` of the available CPUs, evenly from as few NUMA nodes as will do, in groups of `group`.

    Packed where the count is no multiple of the group, and where no combination of nodes will do.
    Raises AllocationError where there are too few.
    """
    if count % group == 0:
        if count < 1:
            return NOTHING
        free = available & topology.all
        if count > free.bit_count():
            raise too_few(available, count)
        search = _Search(topology, free, count, group)
        plan = search.plan(as_upstream)
        if plan is not None:
            return _deal_out(search, plan, spread, as_upstream)
    return take_packed(topology, available, count, spread=spread, as_upstream=as_upstream)


class _Plan(NamedTuple):
    """`share` CPUs from each of `nodes`, the rest group by group from `dealt`."""

    score: int
    share: int
    nodes: Positions
    dealt: Positions


class _Search:
    """The nodes of a request in order, with what is free in each."""

    def __init__(self, topology: Topology, free: CpuSet, count: int, group: int) -> None:
        self.layout: Layout = layout_of(topology)
        self.free = free
        self.count = count
        self.group = group
        ordered = {node: (size, mask) for size, node, mask in self.layout.nodes(free)}
        self.masks = [mask for _, mask in ordered.values()]
        self.frees = [size for size, _ in ordered.values()]
        self.squares = _squares(self.frees)
        self.scores = _Scores(len(self.frees), sum(self.frees) - count)
        groups = -(-len(topology.cpus) // group)
        per_node = -(-groups // len(topology.nodes))
        self.wanted = count // group
        self.fewest = -(-self.wanted // per_node)

    def plan(self, as_upstream: bool) -> _Plan | None:
        """The best combination of the fewest nodes that will do; None where none will."""
        for k in range(self.fewest, min(self.wanted, len(self.frees)) + 1):
            found = self._best_of(k, as_upstream)
            if found is not None:
                return found
        return None

    def _best_of(self, k: int, as_upstream: bool) -> _Plan | None:
        share = self.count // k // self.group * self.group
        best: _Plan | None = None
        for nodes, frees in self._candidates(k, share):
            found = self._better(frees, share, _WORST if best is None else best.score, as_upstream)
            if found is not None:
                score, dealt = found
                best = _Plan(score, share, nodes, tuple(nodes[each] for each in dealt))
                if score == 0:
                    break
        if best is not None and as_upstream:
            followed_by = None if best.score else _successor(best.nodes, len(self.frees))
            return best._replace(nodes=_overwritten(best.nodes, range(len(self.frees)), followed_by))
        return best

    def _candidates(self, k: int, share: int) -> Iterator[tuple[Positions, Positions]]:
        """Combinations of k nodes that can give all that is asked for in whole groups, with their free CPUs."""
        count, group, seen = self.count, self.group, set()
        for nodes, frees in zip(combinations(range(len(self.frees)), k), combinations(self.frees, k), strict=True):
            if frees not in seen:
                seen.add(frees)
                if min(frees) >= share and sum(each // group for each in frees) * group >= count:
                    yield nodes, frees

    def _better(self, frees: Positions, share: int, limit: int, as_upstream: bool) -> tuple[int, Positions] | None:
        """The score of a combination and which of its places the rest is dealt to, if that is below the limit."""
        after = [each - share for each in frees]
        squares = self.squares - _squares(frees) + _squares(after)
        rest = (self.count - share * len(frees)) // self.group
        lowest = self.scores[squares - _squares(after) + _squares(_levelled(after, rest, self.group))]
        if lowest >= limit or not rest:
            return None if lowest >= limit else (lowest, ())
        best = limit
        chosen: Positions = ()
        able = [place for place, each in enumerate(after) if each >= self.group]
        for subset, lefts in _subsets(able, [after[place] for place in able]):
            if sum(each // self.group for each in lefts) >= rest:
                score = self.scores[squares - _squares(lefts) + _squares(_dealt(lefts, rest, self.group))]
                if score < best:
                    best, chosen = score, subset
                    if score == lowest:
                        break
        if best == limit:
            return None
        return best, _overwritten(chosen, able) if as_upstream else chosen


class _Scores(dict[int, int]):
    """The score, in thousandths, for each sum of squares of `number` counts whose sum is `total`."""

    def __init__(self, number: int, total: int) -> None:
        self.number = number
        self.total = total
        self.mean = (2000 * total + number) // (2 * number)

    def __missing__(self, squares: int) -> int:
        deviation = 1_000_000 * squares - 2000 * self.mean * self.total + self.number * self.mean * self.mean
        score = self[squares] = (isqrt(4 * deviation // self.number) + 1) // 2
        return score


def _squares(counts: Sequence[int]) -> int:
    return sum([each * each for each in counts])


def _levelled(lefts: Sequence[int], groups: int, group: int) -> list[int]:
    """Groups taken one by one from where most is left: no way of dealing them leaves the nodes more even."""
    after = [*lefts]
    for _ in range(groups):
        after[after.index(max(after))] -= group
    return after


def _subsets(places: Sequence[int], lefts: Sequence[int]) -> Iterator[tuple[Positions, Positions]]:
    """Subsets of the places, the largest first, with what is left there; each sequence of lefts once."""
    seen = set()
    for size in range(len(places), 0, -1):
        for subset, counts in zip(combinations(places, size), combinations(lefts, size), strict=True):
            if counts not in seen:
                seen.add(counts)
                yield subset, counts


def _dealt(lefts: Positions, groups: int, group: int) -> list[int]:
    """What is left after groups were dealt out in turn. There must be enough of them."""
    after = [*lefts]
    while True:
        for place, left in enumerate(after):
            if left >= group:
                if not groups:
                    return after
                after[place] = left - group
                groups -= 1
        if not groups:
            return after


def _overwritten(chosen: Positions, pool: Sequence[int], followed_by: Positions | None = None) -> Positions:
    """What upstream's memory of a combination holds once the search is over.

    It keeps no copy, and a growing Go slice is shared between combinations that begin alike up to the last time it grew
    (at 1, 2, 4, 8 ... members): what comes after that is what the last of those combinations wrote there. The search
    ends with the last one, or, where it stops early, with `followed_by`.
    """
    size = len(chosen)
    kept = (1 << (size - 1).bit_length() - 1) + 1 if size > 1 else size
    if followed_by is not None:
        return followed_by if followed_by[:kept] == chosen[:kept] else chosen
    return (*chosen[:kept], *pool[len(pool) - (size - kept) :])


def _successor(chosen: Positions, number: int) -> Positions | None:
    """The next combination of places below `number`."""
    size = len(chosen)
    for place in reversed(range(size)):
        if chosen[place] < number - size + place:
            first = chosen[place] + 1
            return (*chosen[:place], *range(first, first + size - place))
    return None


def _deal_out(search: _Search, plan: _Plan, spread: bool, as_upstream: bool) -> Assignment:
    """Take what was planned, node by node."""
    whole = Selection(search.layout, search.free, search.count, as_upstream)
    for node in plan.nodes:
        _take_from(whole, search.masks[node], plan.share, spread)
    rest = search.count - plan.share * len(plan.nodes)
    while rest > 0:
        able = [node for node in plan.dealt if (whole.free & search.masks[node]).bit_count() >= search.group]
        if not able:  # the subset was overwritten, and upstream would look for ever
            return _deal_out(search, search.plan(False) or plan, spread, False)
        for node in able[: rest // search.group]:
            _take_from(whole, search.masks[node], search.group, spread)
            rest -= search.group
    if whole.need:
        what = "not enough" if whole.need > 0 else "too many"
        raise AllocationError(f"accounting error, {what} CPUs allocated, remaining: {whole.need}")
    return whole.result()


def _take_from(whole: Selection, mask: CpuSet, count: int, spread: bool) -> None:
    """Pack `count` CPUs of one node, if it has as many: it has, unless the node is not the one that was chosen."""
    free = whole.free & mask
    if 0 < count <= free.bit_count():
        part = Selection(whole.layout, free, count, whole.as_upstream)
        part.pack(spread, False)
        whole.cpus |= part.cpus
        whole.free &= ~part.cpus
        whole.need -= part.cpus.bit_count()
        whole.taken += part.taken
