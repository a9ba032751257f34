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
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import msgspec

from bayplan.cluster.kinds import EVENT, NODE, POD, Kind
from bayplan.cluster.live.reflector import Batch, Reflector, Source
from bayplan.cluster.live.reflector_core import Policy
from bayplan.cluster.objects import Object
from bayplan.ledger.listeners import Action, Listeners, Sign, Timing
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import Gap, Rows, StreamPosition
from bayplan.ledger.status.kinds import GroupKind
from bayplan.ledger.store.port import Remembered
from bayplan.model.clock import SECOND, Clock, Instant
from bayplan.model.errors import BayplanError, TemporaryError
from bayplan.service.logging import get_logger

log = get_logger(__name__)

MOST_CHANGES = 2000
"""That one transaction takes in; a batch is never split."""
_INBOX = 8
_RETRY = SECOND
FindKind = Callable[[str, str], Awaitable[Kind | None]]
"""The kind of an apiVersion and a name; None: the cluster does not have it."""
Durable = Callable[[Sequence[Object]], None]


class _Stream(msgspec.Struct, kw_only=True):
    """A kind that is followed."""

    kind: Kind
    revision: str = ""
    heard_at: Instant | None = None
    """When all of it was known last, also by an earlier run."""
    behind: int | None = None
    """Versions up to this one happened before this run began to listen."""
    sign_at: Instant = Instant(0)
    ended: str | None = None
    task: asyncio.Task[None] | None = None


class _Ended(msgspec.Struct, frozen=True):
    error: Exception


class _Item(NamedTuple):
    """What a stream brought, and when: what waits here is no younger for it."""

    stream: _Stream
    news: Batch | _Ended
    at: Instant


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
    ) -> None:
        """`durable` is told of the versions of GPU pods that each transaction made so."""
        self.recording = recording
        self.changes: Counter[str] = Counter()
        """By resource."""
        self.told = {kind: int(revision) for kind, revision in kept.streams.items() if revision.isdigit()}
        """How far each stream is durable, as a revision."""
        self.waiting_since: Instant | None = None
        """When the oldest batch that is not durable yet was taken in."""
        self._cluster = cluster
        self._outlet = outlet
        self._kept = kept
        self._clock = clock
        self._find_kind = find_kind
        self._most_changes = most_changes
        self._policy = policy
        self._inbox: asyncio.Queue[_Item] = asyncio.Queue(_INBOX)
        self._listeners = Listeners(timing)
        self._streams: dict[GroupKind, _Stream] = {}
        """Those of owners, which come and go."""
        self._writing: asyncio.Task[None] | None = None
        self._durable = durable

    @property
    def listeners(self) -> int:
        """How many kinds of owners are followed."""
        return len(self._streams)

    async def run(self) -> None:
        """Record until cancelled; then what is under way is completed.

        Raises what a server says that refuses pods, nodes or events for good, and as `Outlet.put` does.
        """
        core = [self._begin(_Stream(kind=kind)) for kind in (NODE, POD, EVENT)]
        self._settle_listeners()
        replaying = asyncio.create_task(self._outlet.run(), name="replay of the spool")
        try:
            while True:
                items = await self._gather(replaying)
                rows = self._digest(items)
                await self._written()
                if len(rows):
                    self._writing = asyncio.create_task(self._write(rows, self._versions(items)), name="transaction")
                self._settle_listeners()
        finally:
            following = [stream.task for stream in (*core, *self._streams.values()) if stream.task is not None]
            for task in (*following, replaying):
                task.cancel()
            await asyncio.gather(*following, replaying, return_exceptions=True)
            if self._writing is not None and self._outlet.away:
                self._writing.cancel()
            await self._last_written()

    # --- following

    def _begin(self, stream: _Stream) -> _Stream:
        stream.sign_at, stream.ended = self._clock.now(), None
        stream.task = asyncio.create_task(self._follow(stream), name=f"ledger of {stream.kind.resource}")
        return stream

    async def _follow(self, stream: _Stream) -> None:
        kind = stream.kind
        resumes = kind in (POD, NODE, EVENT)  # owners are all read anew: chains go through those without GPU pods too
        stream.revision = self._kept.streams.get(kind.resource, "")
        stream.heard_at = stream.heard_at or self._kept.told_at.get(kind.resource)
        try:
            if resumes and stream.revision:
                stream.behind = await self._present(kind)
            reflector = Reflector(
                self._cluster,
                kind,
                since=stream.revision if resumes else "",
                known=self.recording.known(kind),
                policy=self._policy,
                clock=self._clock,
            )
            async with reflector as batches:
                async for batch in batches:
                    stream.sign_at = self._clock.now()
                    await self._hand_on(stream, batch)
        except Exception as error:  # whoever reads the inbox decides what it means
            await self._hand_on(stream, _Ended(error))

    async def _hand_on(self, stream: _Stream, news: Batch | _Ended) -> None:
        await self._inbox.put(_Item(stream, news, self._clock.now()))

    async def _present(self, kind: Kind) -> int:
        """The server's revision now."""
        while True:
            try:
                revision = (await self._cluster.list(kind, limit=1)).revision
                return int(revision) if revision.isdigit() else 0
            except TemporaryError as error:
                log.warning("cluster away", kind=kind.resource, why=error.message)
                await self._clock.sleep_until(Instant(self._clock.now() + _RETRY))

    # --- taking in

    async def _gather(self, replaying: asyncio.Task[None]) -> list[_Item]:
        """What has come, at least one batch unless the listeners are due first."""
        first = asyncio.ensure_future(self._inbox.get())
        due = self._listeners.due(self._clock.now())
        timer = asyncio.ensure_future(self._clock.sleep_until(due))
        waits: list[asyncio.Future[None] | asyncio.Future[_Item]] = [first, timer]
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
        while items and sum(map(_size, items)) < self._most_changes and not self._inbox.empty():
            items.append(self._inbox.get_nowait())
        return items

    def _digest(self, items: Sequence[_Item]) -> Rows:
        """What batches add to the ledger, with how far each stream is told by them."""
        rows, at = Rows(), self._clock.now()
        touched: dict[str, _Stream] = {}
        for stream, batch, came in items:
            if isinstance(batch, _Ended):
                self._ended(stream, batch.error)
                continue
            self._take(stream, batch, came, rows)
            if stream.revision:
                touched[stream.kind.resource] = stream
        self.recording.settle(at, rows)
        for resource, stream in touched.items():
            rows.add(self._position(resource, stream, at))
        for where, odd in self.recording.odd:
            log.warning("odd object", code=odd.code, object=where, what=odd.what)
        self.recording.odd.clear()
        return rows

    def _take(self, stream: _Stream, batch: Batch, at: Instant, rows: Rows) -> None:
        reading_anew = batch.synced or not batch.revision
        unseen, up_to = None, None
        if reading_anew:
            unseen = stream.heard_at
        elif stream.behind is not None:
            unseen, up_to = stream.heard_at, stream.behind
        self.recording.take(stream.kind, batch.changes, When(at, unseen, up_to), rows)
        self.changes[stream.kind.resource] += len(batch.changes)
        if log.debugs:
            for change in batch.changes:
                obj = change.object
                log.debug("took", type=change.type, kind=obj.kind.name, uid=obj.uid, version=obj.version)
        if not batch.revision:
            return
        if batch.synced and stream.heard_at is not None and stream.kind in (POD, NODE):
            rows.add(self._gap(stream, stream.heard_at, at, batch.revision))
        if stream.behind is not None and int(batch.revision) >= stream.behind:
            stream.behind = None
        if stream.behind is None:
            stream.heard_at = at
        stream.revision = batch.revision

    def _gap(self, stream: _Stream, since: Instant, at: Instant, revision: str) -> Gap:
        log.warning("history is gone", kind=stream.kind.resource, after=stream.revision, up_to=revision)
        return Gap(
            cluster=self.recording.cluster,
            kind=stream.kind.resource,
            from_at=since,
            to_at=at,
            after_revision=stream.revision,
            up_to_revision=revision,
            why="the server no longer had what happened: the present was read anew",
        )

    def _position(self, resource: str, stream: _Stream, at: Instant) -> StreamPosition:
        revision = stream.revision
        return StreamPosition(
            cluster=self.recording.cluster,
            kind=resource,
            resource_version=int(revision) if revision.isdigit() else 0,
            revision=revision,
            at=at if stream.behind is None or stream.heard_at is None else stream.heard_at,
        )

    # --- writing

    def _versions(self, items: Sequence[_Item]) -> list[Object]:
        """Those of GPU pods, where somebody wants to know of them."""
        if self._durable is None:
            return []
        batches = [each.news for each in items if each.stream.kind is POD and isinstance(each.news, Batch)]
        there = [change.object for batch in batches for change in batch.changes if change.type != "DELETED"]
        return [obj for obj in there if obj.uid in self.recording.pods]

    async def _write(self, rows: Rows, versions: Sequence[Object]) -> None:
        self.waiting_since = self._clock.now()
        await self._outlet.put(rows)
        self.waiting_since = None
        for position in rows.by_type.get(StreamPosition, ()):
            assert isinstance(position, StreamPosition)
            self.told[position.kind] = position.resource_version
        if self._durable is not None and versions:
            self._durable(versions)

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
            log.info("ends without its last batch", why="the database is away")
        except BayplanError as error:
            log.warning("ends without its last batch", why=error.message)

    # --- owners' kinds

    def _settle_listeners(self) -> None:
        now = self._clock.now()
        signs = {kind: Sign(stream.sign_at, stream.ended) for kind, stream in self._streams.items()}
        for action in self._listeners.step(now, self.recording.owners.kinds(), signs):
            self._act(action)
        self.recording.collect(now)

    def _act(self, action: Action) -> None:
        log.info(action.event, **action.fields)
        old = self._streams.pop(action.kind, None)
        if old is not None and old.task is not None:
            old.task.cancel()
        if action.verb == "stop":
            self.recording.owners.forget(action.kind)
            return
        watch = action.watch
        unknown = Kind(action.kind.group, watch.api_version.rpartition("/")[2], watch.kind, "", namespaced=True)
        heard_at = old.heard_at if old is not None else None
        stream = self._streams[action.kind] = _Stream(kind=unknown, sign_at=self._clock.now(), heard_at=heard_at)
        stream.task = asyncio.create_task(self._listen(stream), name=f"listener of {action.kind}")

    async def _listen(self, stream: _Stream) -> None:
        """Follow a kind of owners, once the cluster has said what it is called."""
        try:
            kind = await self._find_kind(stream.kind.api_version, stream.kind.name)
        except Exception as error:  # whoever reads the inbox decides what it means
            await self._hand_on(stream, _Ended(error))
            return
        if kind is None:
            await self._hand_on(stream, _Ended(LookupError("the cluster does not have this kind")))
            return
        stream.kind = kind
        await self._follow(stream)

    def _ended(self, stream: _Stream, error: Exception) -> None:
        """A listener is started again by the next health check; without pods, nodes and events there is no ledger."""
        if stream.kind in (POD, NODE, EVENT) or not isinstance(error, BayplanError | LookupError):
            raise error
        stream.ended = str(error)
        log.warning("listener failed", kind=stream.kind.qualified, why=str(error))


def _size(item: _Item) -> int:
    return len(item.news.changes) if isinstance(item.news, Batch) else 0
