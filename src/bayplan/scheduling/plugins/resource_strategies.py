"""From what a node has and would have taken to points: the strategies of NodeResourcesFit, and what they share.

Every strategy sees the same table, a row for each resource that counts on the node, and weighs its rows.
Source of truth: kube-scheduler 1.36 noderesources (resource_allocation.go, least_allocated.go, most_allocated.go,
requested_to_capacity_ratio.go).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from bayplan.model.resources import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY
from bayplan.scheduling.framework import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bayplan.model.resources import Amounts
    from bayplan.scheduling.arguments import ResourceSpec, ScoringStrategy, ShapePoint
    from bayplan.scheduling.state import NodeState

    Strategy = Callable[[Sequence["Row"]], int]

BASIC = (CPU, MEMORY, EPHEMERAL_STORAGE)
_SHAPE_POINT = MAX_SCORE // 10
"""Shapes score from 0 to 10."""


class Row(NamedTuple):
    """One resource of a node: what there is, what is taken, what would be taken with the pod."""

    allocatable: int
    allocated: int
    requested: int
    weight: int


def is_scalar(resource: str) -> bool:
    """Whether a resource is counted in pieces: extended ones, huge pages, attachable volumes."""
    return "/" in resource or resource.startswith((HUGEPAGES_PREFIX, "attachable-volumes-"))


def rows(node: NodeState, taken: Amounts, asked: Amounts, resources: Iterable[ResourceSpec]) -> list[Row]:
    """The resources that count: those that the node has, and of scalar ones only those that are asked for."""
    found = []
    for spec in resources:
        name = spec.name
        more = asked.get(name, 0)
        there = node.allocatable.get(name, 0) if name in BASIC or (more and is_scalar(name)) else 0
        if there:
            used = taken.get(name, 0)
            found.append(Row(there, used, used + more, spec.weight))
    return found


def strategy(wanted: ScoringStrategy) -> Strategy:
    """The function from rows to points."""
    match wanted.type:
        case "LeastAllocated":
            return least_allocated
        case "MostAllocated":
            return most_allocated
        case "RequestedToCapacityRatio":
            ratio = wanted.requested_to_capacity_ratio
            return _by_shape(ratio.shape if ratio else ())


def least_allocated(table: Sequence[Row]) -> int:
    """The share that stays free."""
    return _mean((max(row.allocatable - row.requested, 0) * MAX_SCORE // row.allocatable, row.weight) for row in table)


def most_allocated(table: Sequence[Row]) -> int:
    """The share that is taken."""
    return _mean((min(row.requested, row.allocatable) * MAX_SCORE // row.allocatable, row.weight) for row in table)


def _mean(points: Iterable[tuple[int, int]]) -> int:
    total = weights = 0
    for score, weight in points:
        total += score * weight
        weights += weight
    return total // weights if weights else 0


def _by_shape(shape: Sequence[ShapePoint]) -> Strategy:
    """The shape's score of the utilisation. A resource that scores 0 is left out with its weight; halves go up."""

    def scored(table: Sequence[Row]) -> int:
        total = weights = 0
        for row in table:
            score = on_shape(shape, min(row.requested, row.allocatable) * 100 // row.allocatable)
            if score > 0:
                total += score * row.weight
                weights += row.weight
        return (2 * total + weights) // (2 * weights) if weights else 0

    return scored


def on_shape(shape: Sequence[ShapePoint], utilisation: int) -> int:
    """The score at a utilisation: linear between the points, cut off toward zero, level outside them."""
    if utilisation <= shape[0].utilization:
        return shape[0].score * _SHAPE_POINT
    for left, right in pairwise(shape):
        if utilisation <= right.utilization:
            rise = (right.score - left.score) * _SHAPE_POINT * (utilisation - left.utilization)
            run = right.utilization - left.utilization
            return left.score * _SHAPE_POINT + (rise // run if rise >= 0 else -(-rise // run))
    return shape[-1].score * _SHAPE_POINT
