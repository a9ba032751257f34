"""The sets of NUMA nodes in the order in which hints are made: small ones first, then by their sorted ids."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence

from bayplan.node.sets import NodeSet, ids_of


@functools.lru_cache(maxsize=64)
def subsets(nodes: NodeSet) -> tuple[NodeSet, ...]:
    """Every set of these nodes but the empty one."""
    bits = [1 << each for each in ids_of(nodes)]
    return tuple(sum(chosen) for size in range(1, len(bits) + 1) for chosen in itertools.combinations(bits, size))


def joined(amounts: Sequence[int], join: Callable[[int, int], int] = operator.add) -> list[int]:
    """What each set of nodes has together, in the order of `subsets`, of what the nodes have by ascending ids."""
    found = [0]
    for amount in amounts:
        found += [join(less, amount) for less in found]
    return [found[mask] for mask in subsets((1 << len(amounts)) - 1)]
