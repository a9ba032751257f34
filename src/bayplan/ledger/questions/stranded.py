"""Idle GPUs that no pod can get: their node is cordoned or not ready, or has no CPU, memory or place for a pod left
beside them.

How much CPU and memory a pod wants with each GPU is the asker's to say (`Beside`). One pod may take all that is idle:
one place is enough. Resources of one node are looked at one by one, as if all that is left were theirs.

Over time a node is swept once, change by change: between two changes nothing moves, so each piece counts as a whole.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping
from operator import attrgetter, itemgetter
from typing import NamedTuple

import msgspec

from bayplan.ledger.questions.spans import DeviceSpan, Place, RoomSpan, Story, TakenSpan
from bayplan.ledger.questions.windows import Sums, Window
from bayplan.ledger.rows import MILLI
from bayplan.model.clock import Instant

NodeKey = tuple[str, str]
"""Cluster and name."""


class Beside(msgspec.Struct, frozen=True):
    """What a pod needs with each GPU: little unless somebody says more, so that what is told as stranded really is."""

    cpu: int = MILLI
    """Thousandths; 0: it does not matter, as with memory."""
    memory: int = 1 << 30
    """Bytes."""


LITTLE = Beside()


class Taken(NamedTuple):
    """What the pods of a node take together."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0


class Stranded(NamedTuple):
    """How many, in thousandths, and what is in the way; None: not known."""

    gpus: int | None = 0
    why: str = ""


def stranded(idle: int, room: RoomSpan | None, taken: Taken, beside: Beside = LITTLE) -> Stranded:
    """How many of a node's idle GPUs nobody can get; `room`: what the node has for pods, None where nothing tells."""
    if idle <= 0:
        return Stranded()
    if room is None:
        return Stranded(None)
    if room.hurdle:
        return Stranded(idle, room.hurdle)
    limits = (
        ("no CPU", _enough_for(room.cpu - taken.cpu, beside.cpu, idle)),
        ("no memory", _enough_for(room.memory - taken.memory, beside.memory, idle)),
        ("no room for a pod", idle if room.pods > taken.pods else 0),
    )
    usable = min(limit for _, limit in limits)
    if usable == idle:
        return Stranded()
    return Stranded(idle - usable, ", ".join(why for why, limit in limits if limit == usable))


def _enough_for(free: int, each: int, idle: int) -> int:
    """The GPUs that what is free is enough for, up to those that are idle."""
    return min(max(free // each * MILLI, 0), idle) if each else idle


class _Node:
    """The state of a node while time goes by."""

    def __init__(self) -> None:
        self.idle: dict[str, int] = {}
        self._cpu = self._memory = self._pods = 0
        self._rooms: list[RoomSpan] = []

    def turn(self, span: DeviceSpan | RoomSpan | TakenSpan, sign: int) -> None:
        """A span begins (1) or is over (-1); for devices that are held the other way round."""
        if isinstance(span, TakenSpan):
            self._cpu += sign * span.cpu
            self._memory += sign * span.memory
            self._pods += sign
        elif isinstance(span, DeviceSpan):
            self.idle[span.resource] = self.idle.get(span.resource, 0) + sign * span.gpus
        elif sign > 0:
            insort(self._rooms, span, key=attrgetter("start_at"))
        else:
            self._rooms.remove(span)

    @property
    def room(self) -> RoomSpan | None:
        """Of several (a node that was made anew, the end of the old one not seen) the latest."""
        return self._rooms[-1] if self._rooms else None

    @property
    def taken(self) -> Taken:
        """What its pods take."""
        return Taken(self._cpu, self._memory, self._pods)


def at_instant(story: Story, at: Instant, beside: Beside = LITTLE) -> dict[Place, Stranded]:
    """What is stranded at every place with devices or holders then."""
    found: dict[Place, Stranded] = {}
    for (cluster, name), changes in _changes(story, at, at + 1).items():
        node = _Node()
        for _, span, sign in changes:
            node.turn(span, sign)
        for resource, idle in node.idle.items():
            found[Place(cluster, name, resource)] = stranded(idle, node.room, node.taken, beside)
    return found


def over_time(story: Story, window: Window, beside: Beside = LITTLE) -> Mapping[Place, tuple[int | None, ...]]:
    """GPU-nanoseconds that were stranded at every place, a step each; None: at some time in it that is not known."""
    sums, unknown = Sums(window), Sums(window)
    for (cluster, name), changes in _changes(story, window.since, window.until).items():
        for resource, gpus, start, end in _pieces(changes, window.until, beside):
            if gpus is None:
                unknown.add((cluster, name, resource), 1, start, end)
            elif gpus:
                sums.add((cluster, name, resource), gpus, start, end)
    found, holes, nothing = sums.totals(), unknown.totals(), (0,) * len(window)
    return {
        Place(*key): tuple(
            None if hole else amount
            for amount, hole in zip(found.get(key, nothing), holes.get(key, nothing), strict=True)
        )
        for key in {*found, *holes}
    }


Change = tuple[int, DeviceSpan | RoomSpan | TakenSpan, int]
"""When, what, and whether it begins (1) or is over (-1)."""


def _changes(story: Story, since: int, until: int) -> dict[NodeKey, list[Change]]:
    """Of every node, as far as they are before `until`; what began earlier begins at `since`."""
    found: dict[NodeKey, list[Change]] = {}
    for spans, sign in ((story.capacity, 1), (story.held, -1), (story.rooms, 1), (story.taken, 1)):
        for span in spans:
            start, end = max(span.start_at, since), until if span.end_at is None else span.end_at
            if start >= min(end, until):
                continue
            changes = found.setdefault((span.cluster, span.node_name), [])
            changes.append((start, span, sign))
            if end < until:
                changes.append((end, span, -sign))
    return found


def _pieces(changes: list[Change], until: int, beside: Beside) -> Iterator[tuple[str, int | None, int, int]]:
    """Resource, GPUs stranded, from when until when; in pieces in which nothing changes."""
    node = _Node()
    changes.sort(key=itemgetter(0))
    since = changes[0][0]
    for at, span, sign in changes:
        if at > since:
            yield from _piece(node, since, at, beside)
            since = at
        node.turn(span, sign)
    yield from _piece(node, since, until, beside)


def _piece(node: _Node, since: int, until: int, beside: Beside) -> Iterator[tuple[str, int | None, int, int]]:
    for resource, idle in node.idle.items():
        if idle > 0:
            yield resource, stranded(idle, node.room, node.taken, beside).gpus, since, until
