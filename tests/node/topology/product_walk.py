"""The merge as upstream does it, step by step: walk every combination, keep the better of two. Slow and plain."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from bayplan.node.sets import ids_of
from bayplan.node.topology.hint import Hint
from bayplan.node.topology.merge import Numa


def walk(lists: Sequence[Sequence[Hint]], numa: Numa) -> Hint:
    """The hint that is left in the end."""
    target = max((min((size(hint) for hint in each if hint.nodes is not None), default=0) for each in lists), default=0)
    kept: Hint | None = None
    for combination in itertools.product(*lists):
        candidate = combined(combination, numa)
        if candidate.nodes:
            kept = candidate if kept is None else better(kept, candidate, target, numa)
    return kept if kept is not None else Hint(numa.nodes, False)


def combined(combination: Sequence[Hint], numa: Numa) -> Hint:
    masks = [hint.nodes for hint in combination if hint.nodes is not None]
    shared = numa.nodes
    for mask in masks:
        shared &= mask
    return Hint(shared, all(hint.preferred for hint in combination) and len({*masks}) <= 1)


def better(kept: Hint, candidate: Hint, target: int, numa: Numa) -> Hint:
    if kept.preferred != candidate.preferred:
        return kept if kept.preferred else candidate
    if kept.preferred or size(kept) > target:
        return fitter(kept, candidate, numa)
    if size(kept) == target:
        return fitter(kept, candidate, numa) if size(candidate) == target else kept
    if size(candidate) > target:
        return kept
    if size(candidate) == target or size(candidate) > size(kept):
        return candidate
    return fitter(kept, candidate, numa) if size(candidate) == size(kept) else kept


def fitter(kept: Hint, candidate: Hint, numa: Numa) -> Hint:
    return min(kept, candidate, key=lambda hint: (size(hint), spread(hint, numa), hint.nodes or 0))


def spread(hint: Hint, numa: Numa) -> float:
    ids = [*ids_of(hint.nodes or 0)]
    if numa.distances is None:
        return 0
    return sum(numa.distances[one][other] for one in ids for other in ids) / len(ids) ** 2


def size(hint: Hint) -> int:
    return (hint.nodes or 0).bit_count()
