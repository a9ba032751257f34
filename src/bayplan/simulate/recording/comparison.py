"""A replay beside its recording: where pods went, how long they waited, how many were pending when."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

import msgspec

from bayplan.model.clock import SECOND, Instant

_POINTS = 60
"""Of a curve."""


class Stay(msgspec.Struct, frozen=True):
    """Where a pod was, and from when to when; None: never, or not yet."""

    node: str = ""
    bound: Instant | None = None
    left: Instant | None = None


class Replayed(msgspec.Struct, frozen=True):
    """One pod, twice."""

    name: str
    arrived: Instant
    recorded: Stay
    replayed: Stay


Side = Callable[[Replayed], Stay]


class Account(msgspec.Struct, frozen=True):
    """One side of the comparison. Times are in seconds."""

    placed: int
    never_placed: int
    mean_wait: float | None
    longest_wait: float | None
    mean_pending: float
    most_pending: int
    pending: tuple[int, ...]
    """How many were pending, at points as far from each other."""


class Comparison(msgspec.Struct, frozen=True):
    """A recording and its replay."""

    began: Instant
    ended: Instant
    pods: int
    same_node: int
    """Pods that got the same node both times."""
    both_placed: int
    refused: int
    """Pods that the engine did not take."""
    recorded: Account
    replayed: Account

    @property
    def same_share(self) -> float | None:
        """Of the pods that were placed both times, those on the same node."""
        return self.same_node / self.both_placed if self.both_placed else None


def compared(pods: Sequence[Replayed], began: Instant, ended: Instant, refused: int = 0) -> Comparison:
    """All of it in numbers."""
    both = [each for each in pods if each.recorded.node and each.replayed.node]
    return Comparison(
        began,
        ended,
        len(pods),
        sum(each.recorded.node == each.replayed.node for each in both),
        len(both),
        refused,
        _account(pods, lambda each: each.recorded, began, ended),
        _account(pods, lambda each: each.replayed, began, ended),
    )


def _account(pods: Sequence[Replayed], side: Side, began: Instant, ended: Instant) -> Account:
    placed = [each for each in pods if side(each).bound is not None]
    waits = [max(0, _bound(side(each)) - each.arrived) / SECOND for each in placed]
    steps = sorted(_steps(pods, side))
    curve, mean, most = _curve(steps, began, ended)
    return Account(
        len(placed),
        len(pods) - len(placed),
        statistics.fmean(waits) if waits else None,
        max(waits, default=None),
        mean,
        most,
        curve,
    )


def _bound(stay: Stay) -> Instant:
    assert stay.bound is not None
    return stay.bound


def _steps(pods: Iterable[Replayed], side: Side) -> Iterable[tuple[Instant, int]]:
    """When one more was pending, and when one less. Who is placed at once was never pending."""
    for each in pods:
        stay = side(each)
        until = min((at for at in (stay.bound, stay.left) if at is not None), default=None)
        if until is None or until > each.arrived:
            yield each.arrived, 1
        if until is not None and until > each.arrived:
            yield until, -1


def _curve(steps: Sequence[tuple[Instant, int]], began: Instant, ended: Instant) -> tuple[tuple[int, ...], float, int]:
    points = [Instant(began + (ended - began) * number // _POINTS) for number in range(_POINTS + 1)]
    curve: list[int] = []
    pending = most = area = 0
    at = began
    for when, change in steps:
        while len(curve) < len(points) and points[len(curve)] < when:
            curve.append(pending)
        area += pending * (when - at)
        at, pending = when, pending + change
        most = max(most, pending)
    area += pending * max(0, ended - at)
    curve += [pending] * (len(points) - len(curve))
    return tuple(curve), area / (ended - began) if ended > began else 0.0, most
