"""Many hints become one: the NUMA nodes that suit every resource best.

A combination takes one hint of each list; it stands for the nodes that all its hints share, and is preferred if all
its hints are and name the same nodes. Upstream walks every combination and keeps the better of two. Which it keeps in
the end does not depend on the way, so it can be found without the walk:

    preferred:      the narrowest nodes that every list names as preferred, or has "any" for;
    not preferred:  T is the most nodes that any list needs at least. The best of exactly T nodes; else the most
                    below T; else the fewest above it.

Equally many nodes: the closest together where that is asked for, then the lower ids.
"""

from __future__ import annotations

import enum
import itertools
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from bayplan.node.sets import NodeSet, ids_of
from bayplan.node.topology.hint import Hint, Hints

ANY = Hint(None, True)
NOWHERE = Hint(None, False)


class Why(enum.StrEnum):
    """What made the merge choose."""

    INDIFFERENT = "no provider asks for particular NUMA nodes"
    AGREED = "the narrowest NUMA nodes that every provider prefers"
    COMPROMISE = "no NUMA nodes are preferred by every provider; these come nearest"
    NOTHING_SHARED = "no NUMA node is in a hint of every provider"


class Numa(msgspec.Struct, frozen=True):
    """The NUMA nodes, and how far apart where closeness counts."""

    nodes: NodeSet
    distances: Mapping[int, Mapping[int, int]] | None = None

    def best(self, masks: Iterable[NodeSet]) -> NodeSet:
        """Of sets of equally many nodes, the closest, then the lowest."""
        return min(masks, key=lambda mask: (self._spread(mask), mask))

    def _spread(self, mask: NodeSet) -> int:
        if self.distances is None:
            return 0
        ids = [*ids_of(mask)]
        return sum(self.distances[one][other] for one in ids for other in ids)


class Merged(msgspec.Struct, frozen=True):
    """The one hint, and why it is that one."""

    hint: Hint
    why: Why


def listed(providers: Iterable[Hints]) -> Iterator[Sequence[Hint]]:
    """The providers' hints as lists of which each combination takes one: where nothing is said, any node will do."""
    for hints in providers:
        for each in hints.values() if hints else (None,):
            if each is None:
                yield (ANY,)
            else:
                yield each or (NOWHERE,)


def only_single(lists: Iterable[Sequence[Hint]]) -> Iterator[Sequence[Hint]]:
    """The preferred hints of at most one node."""
    for each in lists:
        yield [hint for hint in each if hint.preferred and (hint.nodes is None or hint.nodes.bit_count() == 1)]


def merge(lists: Sequence[Sequence[Hint]], numa: Numa) -> Merged:
    """The best combination of one hint from each list; without any, the whole machine, not preferred."""
    agreed = _agreed(lists, numa.nodes)
    if agreed:
        narrowest = _of_size(agreed, min(mask.bit_count() for mask in agreed))
        indifferent = all(hint.nodes is None for each in lists for hint in each)
        return Merged(Hint(numa.best(narrowest), True), Why.INDIFFERENT if indifferent else Why.AGREED)
    shared = _shared(lists, numa.nodes)
    if not shared:
        return Merged(Hint(numa.nodes, False), Why.NOTHING_SHARED)
    return Merged(Hint(numa.best(_of_size(shared, _nearest_size(shared, lists))), False), Why.COMPROMISE)


def _agreed(lists: Sequence[Sequence[Hint]], machine: NodeSet) -> set[NodeSet]:
    """What preferred combinations come to. Hints agree by the nodes they name, be those on the machine or not."""
    preferred = [{hint.nodes for hint in each if hint.preferred} for each in lists]
    named = [each for each in preferred if None not in each]
    common = set.intersection(*named) if named else set().union(*preferred) | {machine}
    return {met for mask in common if (met := machine if mask is None else mask & machine)}


def _shared(lists: Sequence[Sequence[Hint]], machine: NodeSet) -> Collection[NodeSet]:
    """What all combinations come to."""
    found: Collection[NodeSet] = {machine}
    for each in lists:
        masks = {machine if hint.nodes is None else hint.nodes & machine for hint in each} - {0}
        found = _meets(found, masks, machine)
    return found


def _meets(left: Collection[NodeSet], right: Collection[NodeSet], machine: NodeSet) -> Collection[NodeSet]:
    """The sets that one of the left and one of the right have in common, but the empty one."""
    nodes = machine.bit_count()
    if len(left) * len(right) <= nodes << nodes:
        return {one & other for one in left for other in right} - {0}
    return _counted_meets(left, right, machine)


def _counted_meets(left: Collection[NodeSet], right: Collection[NodeSet], machine: NodeSet) -> Collection[NodeSet]:
    """The same without looking at pairs: a pair is above a set iff both are, so such pairs are counted by a product,
    and the pairs that meet exactly there by taking off those that meet higher."""
    bits = [1 << each for each in ids_of(machine)]
    sets = [0]
    for bit in bits:
        sets += [mask | bit for mask in sets]
    above = [_folded([mask in family for mask in sets], operator.add) for family in (left, right)]
    exactly = _folded([*itertools.starmap(operator.mul, zip(*above, strict=True))], operator.sub)
    return {mask for mask, pairs in zip(sets, exactly, strict=True) if pairs and mask}


def _folded(counts: list[int], join: Callable[[int, int], int]) -> list[int]:
    """Each set's number joined with the numbers of all that are above it, one node a turn; a turn moves the node from
    the lowest place of the index to the highest, so that in the end all are in place again."""
    for _ in range(len(counts).bit_length() - 1):
        without, having = counts[::2], counts[1::2]
        counts = [*map(join, without, having), *having]
    return counts


def _of_size(masks: Collection[NodeSet], size: int) -> list[NodeSet]:
    return [mask for mask in masks if mask.bit_count() == size]


def _nearest_size(masks: Collection[NodeSet], lists: Sequence[Sequence[Hint]]) -> int:
    least = [min((h.nodes.bit_count() for h in each if h.nodes is not None), default=0) for each in lists]
    target = max(least, default=0)
    sizes = {mask.bit_count() for mask in masks}
    return max((size for size in sizes if size <= target), default=min(sizes))
