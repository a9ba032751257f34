"""What nobody holds: capacity less what is allocated, on each node, at an instant or over time; and how much of it
nobody can get (`stranded`).

The difference is taken as it is. It is below zero where pods hold devices that their node has lost: capacity and
allocation come from two stories, and hiding a difference would hide a fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace as _replace

from bayplan.ledger.questions import stranded
from bayplan.ledger.questions.asking import EVERYTHING, Scope
from bayplan.ledger.questions.spans import DeviceSpan, Place, S, Story, read_story
from bayplan.ledger.questions.stranded import LITTLE, Beside
from bayplan.ledger.questions.windows import Sums, Window
from bayplan.ledger.store.reading import Readable
from bayplan.model.clock import Instant


class Devices(msgspec.Struct, frozen=True):
    """The devices of a place at an instant, in thousandths."""

    place: Place
    model: str
    capacity: int
    allocated: int
    stranded: int | None = 0
    """Those of the idle that nobody can get; None: not known."""
    why: str = ""
    """What is in the way of those."""

    @property
    def idle(self) -> int:
        """Capacity less what is allocated."""
        return self.capacity - self.allocated


class ModelDevices(msgspec.Struct, frozen=True):
    """The devices of a model at an instant, in thousandths."""

    capacity: int = 0
    allocated: int = 0
    stranded: int | None = 0
    """None where it is not known of some."""


class IdleLine(msgspec.Struct, frozen=True):
    """A place over time: GPU-nanoseconds, a step each."""

    place: Place
    model: str
    capacity: tuple[int, ...]
    allocated: tuple[int, ...]
    stranded: tuple[int | None, ...]
    """None where for some time of the step it is not known."""

    @property
    def idle(self) -> tuple[int, ...]:
        """Capacity less what was allocated."""
        return tuple(had - held for had, held in zip(self.capacity, self.allocated, strict=True))

    @property
    def total_stranded(self) -> int | None:
        """Of all steps; None where it is not known of one."""
        known = [each for each in self.stranded if each is not None]
        return sum(known) if len(known) == len(self.stranded) else None


class IdleTime(msgspec.Struct, frozen=True):
    """All places over time."""

    window: Window
    lines: tuple[IdleLine, ...]


def devices_at(story: Story, at: Instant, beside: Beside = LITTLE) -> list[Devices]:
    """Every place with devices or holders at an instant."""
    offered, allocated = _at(story.capacity, at), _at(story.held, at)
    models = _models(story)
    lost = stranded.at_instant(story, at, beside)
    return [
        Devices(place, models[place], offered.get(place, 0), allocated.get(place, 0), *lost[place])
        for place in sorted({*offered, *allocated})
    ]


def _at(spans: Iterable[DeviceSpan], at: Instant) -> dict[Place, int]:
    found: dict[Place, int] = {}
    for span in spans:
        if span.start_at <= at and (span.end_at is None or span.end_at > at):
            found[span.place] = found.get(span.place, 0) + span.gpus
    return found


def _models(story: Story) -> dict[Place, str]:
    """The model of each place; the node's word before its pods'."""
    found: dict[Place, str] = {}
    for span in (*story.capacity, *story.held):
        place = span.place
        found[place] = found.get(place) or span.gpu_model
    return found


def over_time(story: Story, window: Window, beside: Beside = LITTLE) -> IdleTime:
    """Every place over a window."""
    had, taken = _sums(story.capacity, window), _sums(story.held, window)
    lost = stranded.over_time(story, window, beside)
    models = _models(story)
    nothing = (0,) * len(window)
    lines = (
        IdleLine(place, models[place], had.get(place, nothing), taken.get(place, nothing), lost.get(place, nothing))
        for place in sorted({*had, *taken})
    )
    return IdleTime(window, tuple(lines))


def _sums(spans: Iterable[DeviceSpan], window: Window) -> Mapping[Place, tuple[int, ...]]:
    sums = Sums(window)
    for span in spans:
        sums.add((span.cluster, span.node_name, span.resource), span.gpus, span.start_at, span.end_at)
    return {Place(*key): amounts for key, amounts in sums.totals().items()}


def by_model(devices: Iterable[Devices]) -> dict[str, ModelDevices]:
    """The devices of each model, all nodes together."""
    found: dict[str, ModelDevices] = {}
    for each in devices:
        sofar = found.get(each.model, ModelDevices())
        lost = None if sofar.stranded is None or each.stranded is None else sofar.stranded + each.stranded
        found[each.model] = ModelDevices(sofar.capacity + each.capacity, sofar.allocated + each.allocated, lost)
    return dict(sorted(found.items()))


async def idle_at(store: Readable, at: Instant, scope: Scope = EVERYTHING, beside: Beside = LITTLE) -> list[Devices]:
    """The devices of every node at an instant. Raises StoreUnavailableError, StoreRefusedError."""
    parts = [devices_at(await read_story(store, part, when, when), when, beside) for part, when in scope.parts(at)]
    return [each for part in parts for each in part]


async def idle(store: Readable, window: Window, scope: Scope = EVERYTHING, beside: Beside = LITTLE) -> IdleTime:
    """The devices of every node over time. Raises StoreUnavailableError, StoreRefusedError."""
    story = await read_story(store, scope, window.since, window.until)
    return over_time(_ended(story, scope) if scope.last else story, window, beside)


def _ended(story: Story, scope: Scope) -> Story:
    """What is open ends with the present of its cluster."""

    def ended(spans: Sequence[S]) -> list[S]:
        ends = [scope.ended(each.cluster, each.end_at) for each in spans]
        return [
            each if each.end_at == end else _replace(each, end_at=end) for each, end in zip(spans, ends, strict=True)
        ]

    return Story(ended(story.capacity), ended(story.held), ended(story.rooms), ended(story.taken))
