"""From what the metrics ask for to what is done: windows that smooth, rates that limit, and the bounds.

What an autoscaler remembers (its recent recommendations, its recent changes) stands in an annotation of it, so that a
restart changes nothing. A recommendation that stays the same is written once: the last one is taken to have been made
at the last look, and one that ended is kept with its end for as long as a window may ask for it.

Source of truth: pkg/controller/podautoscaler/horizontal.go, from stabilizeRecommendation on. Upstream keeps the same in
memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from bayplan.model.clock import SECOND, Instant

MEMORY = "bayplan.dev/autoscaler-memory"
PERIOD = 15 * SECOND
DOWN_WINDOW = 300
_LONGEST = 3600
"""No window is longer, in seconds, and no period of a policy."""
_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_FAST_UP = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_TOO_FAST_DOWN = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")

Doc = dict[str, Any]
Said = tuple[str, str]
"""The reason and message of a condition."""


class Note(NamedTuple):
    """A number of replicas and an instant: a recommendation and its end, or a change and its time."""

    replicas: int
    at: Instant


class Memory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an autoscaler remembers."""

    latest: int | None = None
    """The recommendation that still stands; None before the first look."""
    earlier: tuple[Note, ...] = ()
    up: tuple[Note, ...] = ()
    down: tuple[Note, ...] = ()

    @classmethod
    def of(cls, annotations: Mapping[str, str]) -> Memory:
        """What stands in the annotation; nothing where it cannot be read."""
        try:
            return msgspec.json.decode(annotations.get(MEMORY, "{}"), type=cls)
        except msgspec.MsgspecError:
            return cls()  # somebody else's hand: an autoscaler that remembers nothing still works

    def text(self) -> str:
        """The annotation."""
        return msgspec.json.encode(self).decode()

    def recent(self, present: int, now: Instant) -> list[Note]:
        """The recommendations of the past; before the first, the present size is one."""
        if self.latest is None:
            return [Note(present, Instant(now - 1))]
        return [*self.earlier, Note(self.latest, Instant(now - PERIOD))]

    def recommended(self, replicas: int, present: int, now: Instant) -> Memory:
        """The same with another recommendation."""
        if self.latest == replicas:
            return self
        kept = tuple(note for note in self.recent(present, now) if note.at >= now - _LONGEST * SECOND)
        return msgspec.structs.replace(self, latest=replicas, earlier=kept)

    def rescaled(self, before: int, after: int, now: Instant) -> Memory:
        """The same with another change of size."""
        old = now - _LONGEST * SECOND
        up, down = (tuple(note for note in notes if note.at >= old) for notes in (self.up, self.down))
        change = Note(abs(after - before), now)
        up, down = ((*up, change), down) if after > before else (up, (*down, change))
        return msgspec.structs.replace(self, up=up, down=down)


class Bounds(NamedTuple):
    """The least and the most replicas."""

    least: int
    most: int


class Limited(NamedTuple):
    """What is to be, and what is said of it: the conditions AbleToScale and ScalingLimited."""

    replicas: int
    able: Said
    limited: bool
    why: Said


_STEADY: Said = ("ReadyForNewScale", "recommended size matches current size")
_DOWN_STABILIZED: Said = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_UP_STABILIZED: Said = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)


def limit(behavior: Doc | None, memory: Memory, present: int, desired: int, bounds: Bounds, now: Instant) -> Limited:
    """What becomes of a recommendation."""
    recent = memory.recent(present, now)
    if behavior is None:
        cutoff = now - DOWN_WINDOW * SECOND
        stable = max([desired, *(note.replicas for note in recent if note.at >= cutoff)])
        said = _DOWN_STABILIZED
        replicas, why = _by_rule(present, stable, bounds)
    else:
        stable = _stabilized(behavior, recent, present, desired, now)
        said = _UP_STABILIZED if desired >= present else _DOWN_STABILIZED
        replicas, why = _by_rate(behavior, memory, present, stable, bounds, now)
    return Limited(replicas, _STEADY if stable == desired else said, replicas != stable, why)


def _by_rule(present: int, desired: int, bounds: Bounds) -> tuple[int, Said]:
    fastest = max(2 * present, 4)
    most, why = (fastest, _TOO_FAST_UP) if bounds.most > fastest else (bounds.most, _TOO_MANY)
    if desired < bounds.least:
        return bounds.least, _TOO_FEW
    return (most, why) if desired > most else (desired, _WITHIN)


def _stabilized(behavior: Doc, recent: Sequence[Note], present: int, desired: int, now: Instant) -> int:
    up = now - behavior["scaleUp"].get("stabilizationWindowSeconds", 0) * SECOND
    down = now - behavior["scaleDown"].get("stabilizationWindowSeconds", DOWN_WINDOW) * SECOND
    lowest = min([desired, *(note.replicas for note in recent if note.at > up)])
    highest = max([desired, *(note.replicas for note in recent if note.at > down)])
    return min(max(present, lowest), highest)


def _by_rate(
    behavior: Doc, memory: Memory, present: int, desired: int, bounds: Bounds, now: Instant
) -> tuple[int, Said]:
    if desired > present:
        fastest = max(_rate(behavior["scaleUp"], memory, present, 1, now), present)
        most, why = (fastest, _TOO_FAST_UP) if bounds.most > fastest else (bounds.most, _TOO_MANY)
        return (most, why) if desired > most else (desired, _WITHIN)
    if desired < present:
        fastest = min(_rate(behavior["scaleDown"], memory, present, -1, now), present)
        least, why = (fastest, _TOO_FAST_DOWN) if bounds.least < fastest else (bounds.least, _TOO_FEW)
        return (least, why) if desired < least else (desired, _WITHIN)
    return desired, _WITHIN


def _rate(rules: Doc, memory: Memory, present: int, sign: int, now: Instant) -> int:
    """How far the policies let it go: `sign` is 1 upwards and -1 downwards."""
    select = rules.get("selectPolicy", "Max")
    if select == "Disabled":
        return present
    proposals = [_proposed(policy, memory, present, sign, now) for policy in rules.get("policies", ())]
    return max(proposals) if (select != "Min") == (sign > 0) else min(proposals)


def _proposed(policy: Doc, memory: Memory, present: int, sign: int, now: Instant) -> int:
    since = now - policy["periodSeconds"] * SECOND
    start = present - _changed(memory.up, since) + _changed(memory.down, since)
    if policy["type"] == "Pods":
        return start + sign * int(policy["value"])
    if sign > 0:  # rounded up, so that a small number grows at all
        return math.ceil(start * (1 + int(policy["value"]) / 100))
    return int(start * (1 - int(policy["value"]) / 100))


def _changed(notes: Iterable[Note], since: int) -> int:
    return sum(note.replicas for note in notes if note.at > since)
