"""The turning points of a pod's life, resolved: when it was created, bound, started and when it let its GPUs go.

An object says most of this itself, to the second. Where it does not, the moment at which it was seen stands in; and
where that was long after (a ledger that was down catches up), the end is *inferred*: between `after` and `at`.
A point that was found once stays: later versions do not move it, only undo it (a pod that ended and runs again).
"""

from __future__ import annotations

import msgspec

from bayplan.ledger.differ.facts import PodFacts
from bayplan.ledger.differ.reading import sound
from bayplan.ledger.differ.seen import Seen
from bayplan.model.clock import Instant


class End(msgspec.Struct, frozen=True, gc=False):
    """An end: at `at`; or, where nobody saw it, after `after` and at the latest at `at`."""

    at: Instant
    after: Instant | None = None


class Life(msgspec.Struct, frozen=True, gc=False):
    """When a pod came to each point; None: it has not yet."""

    created_at: Instant
    bound_at: Instant | None = None
    started_at: Instant | None = None
    end: End | None = None
    """Of its hold on its GPUs by phase; a pod that just disappears has none."""


def seen_end(seen: Seen) -> End:
    """An end that only its being seen tells of."""
    return End(seen.at, seen.inferred_after)


def live_on(known: Life | None, was: PodFacts | None, facts: PodFacts, seen: Seen) -> Life:
    """The life as a version tells it, after what was known of it."""
    if known is not None and known.bound_at and known.started_at and known.end is None and not facts.terminal:
        return known  # as it was: nothing is left but its end
    created = known.created_at if known else sound(facts.created_at, seen.at) or seen.at
    bound = known.bound_at if known else None
    if bound is None and facts.node:
        said = sound(facts.scheduled_at, seen.at) or sound(facts.start_time, seen.at)
        bound = _latest(said or (seen.at if known else created), created)
    started = known.started_at if known else None
    end = known.end if known else None
    if not facts.terminal:
        end = None
    elif end is None:
        end = _released(was, facts, seen)
        end = End(_latest(end.at, bound or created), end.after)
    if started is None:
        started = _started(was, facts, bound or created, seen, end)
    return Life(created, bound, started, end)


def _latest(one: Instant, other: Instant) -> Instant:
    return one if one > other else other


def _started(was: PodFacts | None, facts: PodFacts, since: Instant, seen: Seen, end: End | None) -> Instant | None:
    """When it began to run."""
    said = sound(facts.started_at, seen.at)
    if facts.phase == "Running":
        said = said or (seen.at if was is not None else sound(facts.start_time, seen.at) or since)
    elif end is None:
        return None
    if said is None:
        return None
    said = _latest(said, since)
    return said if end is None or said < end.at else end.at


def _released(was: PodFacts | None, facts: PodFacts, seen: Seen) -> End:
    """When a pod in a terminal phase let its GPUs go: as its last container finished, or as somebody gave it up."""
    last: Instant | None = None
    for status in facts.containers:
        over = status.state.terminated
        if over is None:
            if status.state.running is not None:  # nobody heard how it went on: given up by another than its kubelet
                last = None
                break
            continue
        at = sound(over.finished_at, seen.at)
        if at is not None and (last is None or at > last):
            last = at
    if last is None:
        last = _given_up(was, facts, seen)
    return seen_end(seen) if last is None else End(last)


_TELLING = {"DisruptionTarget": "True", "Ready": "False", "ContainersReady": "False"}


def _given_up(was: PodFacts | None, facts: PodFacts, seen: Seen) -> Instant | None:
    """The newest transition that tells of the end, of those that were not there before."""
    before = {(each.type, each.status) for each in was.conditions} if was is not None else set()
    found = [
        at
        for each in facts.conditions
        if _TELLING.get(each.type) == each.status and (each.type, each.status) not in before
        if (at := sound(each.last_transition_time, seen.at)) is not None
    ]
    return max(found, default=None)
