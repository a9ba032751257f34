"""From reflectors to the database: one reflector a kind, all batches through one recording, one transaction a batch.

    reflectors -> inbox -> Recording (pure) -> Outlet -> spool or database

While one transaction is under way the next batch is made ready; no more than that is ever ahead, so a slow database
slows the reflectors, and the server holds what they have not read. With its rows each batch commits how far each stream
is told. A recorder that is started anew begins there: what the server still has is told as if nothing had happened,
what it has not is found by comparing what is known with what there is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NoReturn

from bayplan.cluster.kinds import NODE, POD, Kind
from bayplan.cluster.live.reflector import Batch, Source
from bayplan.cluster.live.reflector_core import Policy
from bayplan.cluster.objects import Object, version_of
from bayplan.ledger.finalizers import Stored
from bayplan.ledger.listeners import Timing
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import Gap, Rows, StreamPosition
from bayplan.ledger.status.kinds import GroupKind
from bayplan.ledger.store.port import Remembered
from bayplan.ledger.streams import DEVICES, Ended, FindKind, Item, Stream, Streams, check_goes_on
from bayplan.model.clock import Clock, Instant
from bayplan.model.errors import BayplanError
from bayplan.service.collecting import seldom
from bayplan.service.logging import get_logger

log = get_logger(__name__)

MOST_CHANGES = 1500
"""That one transaction takes in; a batch is never split."""
_AT_ONCE = 16
"""Changes that are looked at before whoever waits has a turn: a millisecond or two."""
Durable = Callable[[Sequence[Object], Sequence[Stored]], None]


class Recorder:
    """Records one cluster until cancelled."""

    def __init__(
        self,
        cluster: Source,
        recording: Recording,
        outlet: Outlet,
        kept: Remembered,
        *,
        clock: Clock,
        find_kind: FindKind,
        most_changes: int = MOST_CHANGES,
        policy: Policy = Policy(),  # noqa: B008 - frozen
        timing: Timing = Timing(),  # noqa: B008 - frozen
        durable: Durable | None = None,
        stamp: Callable[[], Instant] | None = None,
    ) -> None:
        """`durable` is told of the versions of GPU pods and root workloads that each transaction made so.

        `stamp` says what time it is for the cluster; the clock paces our own work.
        """
        self.recording = recording
        self.changes: Counter[str] = Counter()
        """By resource."""
        self.told = {kind: int(revision) for kind, revision in kept.streams.items() if revision.isdecimal()}
        """How far each stream is durable, as a revision."""
        self.waiting_since: Instant | None = None
        """When the oldest batch that is not durable yet was taken in."""
        self._outlet = outlet
        self._clock = clock
        self._stamp = stamp or clock.now
        self._most_changes = most_changes
        self._streams = Streams(
            cluster, recording, kept, find_kind, clock=clock, stamp=self._stamp, policy=policy, timing=timing
        )
        self._writing: asyncio.Task[None] | None = None
        self._durable = durable

    @property
    def kinds(self) -> list[Kind]:
        """Pods, and the kinds of owners that are followed."""
        return [POD, *(stream.kind for stream in self._streams.owners.values() if stream.kind.plural)]

    @property
    def listeners(self) -> int:
        """How many kinds of owners are followed."""
        return len(self._streams.owners)

    async def run(self) -> None:
        """Record until cancelled; then what is under way is completed.

        Raises what a server says that refuses pods, nodes or events for good, RecordedAlreadyError, and as `Outlet.put`
        does.
        """
        self._streams.begin()
        replaying = asyncio.create_task(self._outlet.run(), name="replay of the spool")
        try:
            with seldom():
                await self._record(replaying)
        finally:
            await self._streams.end()
            replaying.cancel()
            await asyncio.gather(replaying, return_exceptions=True)
            if self._writing is not None and self._outlet.away:
                self._writing.cancel()
            await self._last_written()

    async def _record(self, replaying: asyncio.Task[None]) -> NoReturn:
        while True:
            items = await self._gather(replaying)
            taken_at = self._clock.now()
            rows = await self._digest(items)
            await self._written()
            if len(rows):
                self.waiting_since = taken_at
                work = self._write(rows, self._versions(items), self._unread())
                self._writing = asyncio.create_task(work, name="transaction")
            self._streams.settle()
            self.recording.collect(self._stamp())

    # --- taking in

    async def _gather(self, replaying: asyncio.Task[None]) -> list[Item]:
        """What has come, at least one batch unless the listeners are due first."""
        inbox = self._streams.inbox
        first = asyncio.ensure_future(inbox.get())
        timer = asyncio.ensure_future(self._clock.sleep_until(self._streams.due()))
        waits: list[asyncio.Future[None] | asyncio.Future[Item]] = [first, timer]
        if not replaying.done():
            waits.append(replaying)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            if not first.done():
                first.cancel()
        if replaying.done():
            replaying.result()
        items = [first.result()] if first.done() and not first.cancelled() else []
        if items:
            self._fill(items)
        return items

    def _fill(self, items: list[Item]) -> None:
        """Add what else has come, as much as one transaction takes in."""
        inbox, size = self._streams.inbox, sum(item.size for item in items)
        while size < self._most_changes and not inbox.empty():
            items.append(inbox.get_nowait())
            size += items[-1].size

    async def _digest(self, items: list[Item]) -> Rows:
        """What batches add to the ledger, with how far each stream is told by them.

        What comes while the transaction before is under way comes along, rather than wait for the next.
        """
        rows = Rows()
        touched: dict[str, Stream] = {}
        for stream, batch, came in items:
            if isinstance(batch, Ended):
                self._streams.ended(stream, batch.error)
                continue
            await self._take(stream, batch, came, rows)
            if stream.revision:
                touched[stream.kind.resource] = stream
            if self._writing is not None and not self._writing.done():
                self._fill(items)
        at = self._stamp()  # after all that came meanwhile
        self.recording.settle(at, rows)
        for resource, stream in touched.items():
            rows.add(self._position(resource, stream, at))
        for where, odd in self.recording.odd:
            log.warning("odd object", code=odd.code, object=where, what=odd.what)
        self.recording.odd.clear()
        if log.debugs:
            _say(rows)
        return rows

    async def _take(self, stream: Stream, batch: Batch, at: Instant, rows: Rows) -> None:
        reading_anew = batch.synced or not batch.revision
        unseen, up_to = None, None
        if reading_anew:
            unseen = stream.heard_at
        elif batch.behind:
            unseen, up_to = stream.heard_at, batch.behind
        when = When(at, unseen, up_to)
        for first in range(0, len(batch.changes), _AT_ONCE):
            self.recording.take(stream.kind, batch.changes[first : first + _AT_ONCE], when, rows)
            if self._writing is not None:
                await asyncio.sleep(0)  # a transaction is a dozen answers of the database, each to be heard
        self.changes[stream.kind.resource] += len(batch.changes)
        if log.debugs:
            _say_taken(batch)
        if not batch.revision:
            return
        if batch.synced and stream.heard_at is not None and stream.kind in (POD, NODE):
            rows.add(self._gap(stream, stream.heard_at, at, batch.revision))
        if batch.synced and stream.kind in DEVICES:
            self.recording.devices.complete(stream.kind.name)
        if not batch.behind or version_of(batch.revision) >= batch.behind:
            stream.heard_at = at
        stream.revision = batch.revision

    def _gap(self, stream: Stream, since: Instant, at: Instant, revision: str) -> Gap:
        check_goes_on(stream.revision, revision)
        if stream.revision:
            why = "the server no longer had what happened: the present was read anew"
            log.warning("history is gone", kind=stream.kind.resource, after=stream.revision, up_to=revision)
        else:
            why = "the present was read anew, as was asked for"
            log.info("present read anew", kind=stream.kind.resource, up_to=revision)
        return Gap(
            cluster=self.recording.cluster,
            kind=stream.kind.resource,
            from_at=since,
            to_at=at,
            after_revision=stream.revision,
            up_to_revision=revision,
            why=why,
        )

    def _position(self, resource: str, stream: Stream, at: Instant) -> StreamPosition:
        told = version_of(stream.revision)
        until = self.recording.told(stream.kind, told)
        return StreamPosition(
            cluster=self.recording.cluster,
            kind=resource,
            resource_version=until,
            revision=stream.revision if until == told else str(until),
            at=at if stream.heard_at is None else stream.heard_at,
        )

    # --- writing

    def _versions(self, items: Sequence[Item]) -> list[Object]:
        """Those of GPU pods and of workloads at the top, where somebody wants to know of them."""
        if self._durable is None:
            return []
        batches = [each.news for each in items if isinstance(each.news, Batch)]
        there = [change.object for batch in batches for change in batch.changes if change.type != "DELETED"]
        return [obj for obj in there if self.recording.is_kept(obj)]

    def _unread(self) -> list[Stored]:
        """Workloads at the top that came to matter by this batch, by a pod: their objects were told before."""
        found = []
        for row in self.recording.met if self._durable is not None else ():
            stream = self._streams.owners.get(GroupKind(row.group_version.rpartition("/")[0], row.kind))
            if stream is not None and not row.parent_uid and row.resource_version:
                found.append(Stored(stream.kind, row.namespace, row.name, row.uid, row.resource_version))
        return found

    async def _write(self, rows: Rows, versions: Sequence[Object], unread: Sequence[Stored]) -> None:
        await self._outlet.put(rows)
        self.waiting_since = None
        for position in rows.by_type.get(StreamPosition, ()):
            assert isinstance(position, StreamPosition)
            self.told[position.kind] = position.resource_version
        if self._durable is not None and (versions or unread):
            self._durable(versions, unread)

    async def _written(self) -> None:
        """Until the transaction under way is durable."""
        writing, self._writing = self._writing, None
        if writing is not None:
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                self._writing = writing  # the end completes it
                raise

    async def _last_written(self) -> None:
        """At the end: what is not durable by then is read again by the next run, from where the streams were told."""
        try:
            await self._written()
        except asyncio.CancelledError:
            log.warning("last batch left", why="the database is away")
        except BayplanError as error:
            log.warning("last batch left", why=error.message)


def _say_taken(batch: Batch) -> None:
    for change in batch.changes:
        obj = change.object
        log.debug("change taken", type=change.type, kind=obj.kind.name, uid=obj.uid, resource_version=obj.version)


def _say(rows: Rows) -> None:
    """What was decided of which version of what."""
    for row in rows:
        uid = next((name for name in row.key if name.endswith("uid")), "")
        version = getattr(row, "resource_version", None)
        if uid and version is not None:
            log.debug("row made", table=row.table, uid=getattr(row, uid), resource_version=version)
