"""When a scenario's events happen. Pure: it is told the time and how to look at the cluster, and tells what is due.

An event happens at most once at one instant, and again no sooner than its `every`, so events that set off one another
come to an end at every instant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bayplan.model.clock import Instant
from bayplan.simulate.timeline import Event, When

Look = Callable[[str], float]
"""The present value of a metric."""


class _Course:
    """How far one event has come."""

    __slots__ = ("count", "event", "last", "next", "since")

    def __init__(self, event: Event, start: Instant) -> None:
        self.event = event
        self.next: Instant | None = None if event.at is None else Instant(start + event.at.micros)
        self.since: Instant | None = None
        """Since when its condition has held."""
        self.last: Instant | None = None
        self.count = 0

    @property
    def over(self) -> bool:
        """Whether it happens no more."""
        often = 1 if self.event.every is None else self.event.times
        return often is not None and self.count >= often

    def happen(self, now: Instant) -> None:
        self.last = now
        self.count += 1
        self.next = None if self.event.every is None else Instant(now + self.event.every.micros)


class Director:
    """The events of one run."""

    def __init__(self, events: Sequence[Event], start: Instant) -> None:
        self._courses = [_Course(event, start) for event in events]
        self._happened: dict[str, Instant] = {}
        self.active = bool(events)

    def next_at(self) -> Instant | None:
        """When something is due next, as far as is known now."""
        return min((at for at, _ in self.timed()), default=None)

    def timed(self) -> list[tuple[Instant, Event]]:
        """The events whose time is known."""
        return [(each.next, each.event) for each in self._courses if each.next is not None and not each.over]

    def open(self) -> list[Event]:
        """The events that happen once something holds, and does not yet."""
        return [each.event for each in self._courses if each.next is None and not each.over]

    def due(self, now: Instant, look: Look) -> list[tuple[int, Event]]:
        """What happens now, by its place in the file; it has then happened."""
        found = []
        for index, course in enumerate(self._courses):
            if course.over or course.last == now:
                continue
            if course.event.when is not None:
                self._watch(course, course.event.when, now, look)
            if course.next is not None and course.next <= now:
                course.happen(now)
                if course.event.name:
                    self._happened[course.event.name] = now
                found.append((index, course.event))
        return found

    def _watch(self, course: _Course, when: When, now: Instant, look: Look) -> None:
        """When a condition, as it holds now, will have held for long enough."""
        before = self._happened.get(when.after, now) if when.after else now
        holds = (not when.after or when.after in self._happened) and all(
            bound.holds(look(name)) for name, bound in when.bounds()
        )
        if not holds:
            course.since = course.next = None
            return
        if course.since is None:
            course.since = before if not any(when.bounds()) else now
        course.next = Instant(course.since + when.for_.micros)
        if course.last is not None and course.event.every is not None:
            course.next = max(course.next, Instant(course.last + course.event.every.micros))
