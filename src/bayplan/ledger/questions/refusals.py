"""How long a quota kept a workload from making its pods: from a refusal until its next pod is made, or it ends.

What is stored are the Events, and most of them tell of an instant: each attempt has a pod's name of its own in its
words, so hardly two are counted as one. Between two of them the workload waited all the same. Whoever is refused tries
again, after pauses that double up to 1000 s (client-go util/workqueue, DefaultControllerRateLimiter), so after a longer
silence nobody wanted the pod any more: a rollout was taken back, a Job suspended.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

import msgspec
import sqlalchemy as sa

from bayplan.ledger.questions.asking import Scope, read
from bayplan.ledger.rows import GpuPod, GpuWorkload, PendingPeriod, WorkloadPodReference
from bayplan.ledger.store.reading import TABLES, Readable
from bayplan.model.clock import SECOND, Instant

SILENCE = 2 * 1000 * SECOND
"""Twice the longest pause: the server may drop an Event, and the next attempt tells of it again."""
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
    return end if (at if end is None else end) - last <= SILENCE else last


def joined(periods: Iterable[PendingPeriod]) -> list[PendingPeriod]:
    """In order of time, without overlaps; what follows without a pause and says the same is one, in its latest words.

    Refusals that held for no time at all are left out, unless there was nothing else.
    """
    found: list[PendingPeriod] = []
    for each in sorted(periods, key=_started):
        before = found[-1] if found else None
        if before is None or (before.end_at is not None and before.end_at < each.start_at):
            found.append(each)
            continue
        end = None if before.end_at is None or each.end_at is None else max(before.end_at, each.end_at)
        if _says(before) == _says(each):
            latest = max(before, each, key=lambda one: one.resource_version)
            found[-1] = msgspec.structs.replace(latest, start_at=before.start_at, end_at=end)
            continue
        if before.start_at == each.start_at:
            found.pop()
        else:
            found[-1] = msgspec.structs.replace(before, end_at=each.start_at)
        found.append(msgspec.structs.replace(each, end_at=end))
    return [each for each in found if each.end_at != each.start_at] or found[-1:]


def _says(period: PendingPeriod) -> tuple[str, str]:
    """What tells one wait from another: its reason, and which quota it was."""
    quota = _QUOTA.search(period.message)
    return period.reason, quota[1] if quota else ""


def _started(period: PendingPeriod) -> Instant:
    return period.start_at


async def refusals(store: Readable, workload: GpuWorkload, pods: Sequence[GpuPod], at: Instant) -> list[PendingPeriod]:
    """The waits of a workload, and of those below it that make its pods. Raises StoreUnavailableError,
    StoreRefusedError.
    """
    scope, link, pod = Scope(workload.cluster), TABLES[WorkloadPodReference].c, TABLES[GpuPod].c
    below = sa.select(link.pod_uid).where(link.cluster == workload.cluster, link.workload_uid == workload.uid)
    owners = sa.select(pod.owner_uid).where(pod.cluster == workload.cluster, pod.uid.in_(below))
    period, row = TABLES[PendingPeriod].c, TABLES[GpuWorkload].c
    of_these = sa.or_(period.pod_uid == workload.uid, period.pod_uid.in_(owners))
    told: dict[str, list[PendingPeriod]] = {}
    for each in await read(store, PendingPeriod, scope, of_these, period.start_at <= at):
        told.setdefault(each.pod_uid, []).append(each)
    if not told:
        return []
    rows: list[GpuWorkload] = await read(store, GpuWorkload, scope, row.uid.in_(owners))
    ended = {each.uid: each.end_at for each in (*rows, workload) if each.end_at is not None and each.end_at <= at}
    made: dict[str, list[Instant]] = {}
    for each in pods:
        made.setdefault(each.owner_uid, []).append(each.created_at)
    return joined(
        wait
        for uid, periods in told.items()
        for wait in waits(periods, Maker(tuple(sorted(made.get(uid, ()))), ended.get(uid)), at)
    )
