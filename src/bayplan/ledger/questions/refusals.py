"""How long a quota kept a workload from making its pods: from a refusal until its next pod is made, or it ends.

What is stored are the Events, and most of them tell of an instant: each attempt has a pod's name of its own in its
words, so hardly two are counted as one. Between two of them the workload waited all the same. Whoever is refused tries
again, after pauses that double up to 1000 s (client-go util/workqueue, DefaultControllerRateLimiter), so after a longer
silence nobody wanted the pod any more: a rollout was taken back, a Job suspended.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from bayplan.ledger.questions.asking import Scope, read_each
from bayplan.ledger.questions.below import makers
from bayplan.ledger.rows import GpuPod, GpuWorkload, PendingPeriod
from bayplan.ledger.store.reading import TABLES, Readable
from bayplan.model.clock import SECOND, Instant

GIVEN_UP = 2 * 1000 * SECOND
"""After so long without another refusal nobody tries any more. Twice the longest pause: the server may drop an Event,
and the next attempt tells of it again."""
_FOREVER = Instant(2**63 - 1)
_QUOTA = re.compile(r"exceeded quota: ([^,]+)")


class Maker(msgspec.Struct, frozen=True):
    """Who is refused: when it has made pods, in order, and when it ended."""

    made: tuple[Instant, ...] = ()
    ended: Instant | None = None


def waits(periods: Iterable[PendingPeriod], maker: Maker, at: Instant) -> list[PendingPeriod]:
    """The refusals of one workload, each for as long as it held, as known at `at`."""
    known = sorted(periods, key=_started)
    starts = [each.start_at for each in known]
    found = []
    for each in known:
        last = at if each.end_at is None else min(each.end_at, at)
        again = bisect_right(starts, last)
        end = _held(last, starts[again] if again < len(starts) else None, maker, at)
        found.append(msgspec.structs.replace(each, end_at=end))
    return found


def _held(last: Instant, again: Instant | None, maker: Maker, at: Instant) -> Instant | None:
    """Until when a refusal held that was `last` told at that time; `again` is the next one. None: it still does."""
    if maker.ended is not None and maker.ended <= last:
        return last
    position = bisect_right(maker.made, last)
    made = maker.made[position] if position < len(maker.made) else maker.ended
    within = position > 0 and maker.made[position - 1] // SECOND == last // SECOND
    if within and (again is None or (made is not None and made < again)):
        return last  # times are in whole seconds: as it was not refused again, the pod came after the refusal
    end = min((each for each in (made, again) if each is not None), default=None)
    return end if (at if end is None else end) - last <= GIVEN_UP else last


def joined(periods: Iterable[PendingPeriod]) -> list[PendingPeriod]:
    """In order of time, without overlaps; what follows without a pause and says the same is one, in its latest words.

    Where several held at once, the one that began last is told while it held, and then the rest of the others. Refusals
    that held for no time at all are left out, unless there was nothing else.
    """
    known = sorted(periods, key=_rank)
    found: list[PendingPeriod] = []
    for piece in _pieces([each for each in known if each.end_at != each.start_at]):
        before = found[-1] if found else None
        if before is not None and before.end_at == piece.start_at and _says(before) == _says(piece):
            found[-1] = msgspec.structs.replace(
                max(before, piece, key=_version), start_at=before.start_at, end_at=piece.end_at
            )
        else:
            found.append(piece)
    if not found:
        return known[-1:]
    instants: dict[tuple[str, str], list[PendingPeriod]] = {}
    for each in known:
        if each.end_at == each.start_at:
            instants.setdefault(_says(each), []).append(each)
    return [_in_latest_words(each, instants.get(_says(each), ())) for each in found]


def _pieces(known: Sequence[PendingPeriod]) -> Iterable[PendingPeriod]:
    """From each beginning or end to the next what is told of it, of periods in their rank: the last that goes on."""
    edges = sorted({edge for each in known for edge in (each.start_at, _end(each))})
    begun, top = 0, list[PendingPeriod]()
    for start, end in pairwise(edges):
        while begun < len(known) and known[begun].start_at == start:
            top.append(known[begun])
            begun += 1
        while top and _end(top[-1]) <= start:
            top.pop()
        if top:
            yield msgspec.structs.replace(top[-1], start_at=start, end_at=None if end == _FOREVER else end)


def _in_latest_words(wait: PendingPeriod, instants: Sequence[PendingPeriod]) -> PendingPeriod:
    """A wait as the last refusal of it said, if only for an instant; those that say the same are given, in order."""
    first = bisect_left(instants, wait.start_at, key=_started)
    within = instants[first : bisect_right(instants, _end(wait), key=_started)]
    latest = max((wait, *within), key=_version)
    return msgspec.structs.replace(latest, start_at=wait.start_at, end_at=wait.end_at)


def _says(period: PendingPeriod) -> tuple[str, str]:
    """What tells one wait from another: its reason, and which quota it was."""
    quota = _QUOTA.search(period.message)
    return period.reason, quota[1] if quota else ""


def _started(period: PendingPeriod) -> Instant:
    return period.start_at


def _end(period: PendingPeriod) -> Instant:
    return _FOREVER if period.end_at is None else period.end_at


def _version(period: PendingPeriod) -> int:
    return period.resource_version


def _rank(period: PendingPeriod) -> tuple[int, int, int]:
    """Of those that began together, the one that ended first is told first, so that each is told of."""
    return period.start_at, -_end(period), period.resource_version


async def refusals(store: Readable, workload: GpuWorkload, pods: Sequence[GpuPod], at: Instant) -> list[PendingPeriod]:
    """The waits of a workload, and of those below it that make its pods. Raises StoreUnavailableError,
    StoreRefusedError.
    """
    ends = await makers(store, workload, pods)
    by_then = TABLES[PendingPeriod].c.start_at <= at
    told: dict[str, list[PendingPeriod]] = {}
    for each in await read_each(store, PendingPeriod, "pod_uid", ends, Scope(workload.cluster), by_then):
        told.setdefault(each.pod_uid, []).append(each)
    ended = {uid: end for uid, end in ends.items() if end is not None and end <= at}
    made: dict[str, list[Instant]] = {}
    for each in pods:
        made.setdefault(each.owner_uid, []).append(each.created_at)
    return joined(
        wait
        for uid, periods in told.items()
        for wait in waits(periods, Maker(tuple(sorted(made.get(uid, ()))), ended.get(uid)), at)
    )
