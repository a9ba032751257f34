"""Follow all objects of a kind, whatever happens to the connection: the shell around `reflector_core`.

    async with Reflector(cluster, POD) as batches:
        async for batch in batches:
            for change in batch.changes: ...

One task does what the core says and puts batches into a short queue. A slow consumer fills the queue, the task stops
reading, TCP holds the server back, and if the server then hangs up, the watch is taken up from the last revision: so
memory stays bounded and nothing is lost.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Protocol, TypeVar

import msgspec

from bayplan.cluster.kinds import Kind
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.reflector_core import (
    Change,
    Closed,
    Failed,
    Fetch,
    Instruction,
    Key,
    Known,
    Policy,
    Read,
    ReflectorCore,
    Rest,
    Rested,
    Stalled,
    Step,
    Stimulus,
    Stop,
    Stream,
    Told,
)
from bayplan.cluster.objects import version_of
from bayplan.cluster.port import Page, WatchEvent
from bayplan.model.clock import SECOND, Clock, Instant, SystemClock, seconds
from bayplan.model.errors import BayplanError
from bayplan.service.logging import get_logger

log = get_logger(__name__)

PAGE = 500
_QUEUE = 2
"""Batches that wait for the consumer. A page of large pods is megabytes."""

_PRESENT = 15.0
"""Seconds for asking how far the server is: a dead connection must not hold up a watch as long as its stall did."""

T = TypeVar("T")


Events = AsyncGenerator[list[WatchEvent]]


class Source(Protocol):
    """What a reflector needs of a cluster. Every engine has it; LiveCluster streams lists as well."""

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        after: str = "",
        metadata_only: bool = False,
    ) -> Page:
        """See the port. With `metadata_only` the objects have no sections."""
        ...

    def watch_batches(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        since: str = "",
        labels: str = "",
        fields: str = "",
        bookmarks: bool = False,
        metadata_only: bool = False,
    ) -> Events:
        """The port's watch, with what came together given together; `metadata_only` as in `list`.

        An empty batch says no more than that the server listens.
        """
        ...


class Batch(msgspec.Struct, frozen=True):
    """What came together. `revision` is how far the story is told; it is empty while the present is being read."""

    changes: tuple[Change, ...]
    revision: str
    synced: bool = False
    """With this batch the present is known completely, the first time or anew."""
    behind: int = 0
    """Changes of versions up to this one happened while nobody listened, at some time after the batch before: a watch
    was taken up that had broken, or that an earlier run had left. 0 where there are none such."""


class Reflector:
    """An async context manager that gives batches of changes until it is left.

    Iteration raises the server's error when it refuses for good: at once if nothing has ever worked, else after a
    minute of refusals. A server that cannot be reached is waited for, however long it takes.
    """

    def __init__(
        self,
        cluster: Source,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        since: str = "",
        known: Mapping[Key, Known] | None = None,
        policy: Policy = Policy(),  # noqa: B008 - frozen
        clock: Clock | None = None,
        random: Callable[[], float] = random.random,
        streams: bool = True,
        metadata_only: bool = False,
        on_failure: Callable[[BayplanError], None] = lambda _: None,
    ) -> None:
        """`since` (a batch's revision) and `known` take up where an earlier run ended.

        Without `since`, objects of `known` that are no more are told as DELETED, and unchanged ones not at all.
        With `metadata_only` objects come without their sections, which spares the server and the wire.
        `on_failure` is told of every attempt that failed; what can be borne is not raised.
        """
        self._cluster = cluster
        self._kind, self._namespace = kind, namespace
        self._labels, self._fields = labels, fields
        self._metadata_only = metadata_only
        self._on_failure = on_failure
        self._policy = policy
        self._clock = clock or SystemClock()
        streams = streams and isinstance(cluster, LiveCluster)
        self._core = ReflectorCore(kind, policy=policy, random=random, streams=streams, since=since, known=known)
        self._queue: asyncio.Queue[Batch | BayplanError] = asyncio.Queue(_QUEUE)
        self._stream: Events | None = None
        self._opened_at: Instant | None = None
        self._behind = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> AsyncIterator[Batch]:
        self._task = asyncio.create_task(self._run(), name=f"reflector of {self._kind.resource}")
        return self._batches(self._task)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _batches(self, task: asyncio.Task[None]) -> AsyncIterator[Batch]:
        while True:
            waiting = asyncio.ensure_future(self._queue.get())
            try:
                await asyncio.wait((waiting, task), return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done():
                    task.result()  # a fault of ours: let it be seen
                    raise AssertionError("a reflector ends only by an error")
                batch = waiting.result()
            finally:
                waiting.cancel()
            if isinstance(batch, BayplanError):
                raise batch
            yield batch

    async def _run(self) -> None:
        instruction = self._core.start()
        try:
            while not isinstance(instruction, Stop):
                stimulus = await self._do(instruction)
                step = self._core.handle(stimulus)
                self._say(stimulus, step)
                if step.changes or step.synced or isinstance(stimulus, Told):
                    await self._queue.put(self._batch(step))
                instruction = step.then
            await self._queue.put(instruction.error)
        finally:
            await self._close_stream()

    def _batch(self, step: Step) -> Batch:
        revision, behind = self._core.revision, self._behind
        if version_of(revision) >= behind:
            self._behind = 0
        return Batch(step.changes, revision, step.synced, behind)

    async def _do(self, instruction: Instruction) -> Stimulus:
        """Carry out one instruction; what came of it is the next stimulus."""
        try:
            match instruction:
                case Rest():
                    await self._close_stream()
                    await self._clock.sleep_until(Instant(self._clock.now() + seconds(instruction.seconds)))
                    return Rested()
                case Fetch():
                    await self._close_stream()
                    self._behind = 0
                    return await self._in_time(self._fetch(instruction.after))
                case Stream():
                    await self._close_stream()
                    if instruction.late:  # else as far behind as the watch before was when the server closed it
                        self._behind = await self._in_time(self._present(), _PRESENT)
                    self._stream = self._open(instruction)
                    return await self._read(self._stream)
                case Read():
                    assert self._stream is not None
                    return await self._read(self._stream)
                case Stop():
                    raise instruction.error
        except _StalledError:
            return Stalled()
        except BayplanError as error:
            self._on_failure(error)
            return Failed(error, self._lived())

    async def _present(self) -> int:
        """The server's revision now."""
        return version_of((await self._cluster.list(self._kind, self._namespace, limit=1, metadata_only=True)).revision)

    async def _fetch(self, after: str) -> Page:
        return await self._cluster.list(
            self._kind,
            self._namespace,
            labels=self._labels,
            fields=self._fields,
            limit=PAGE,
            after=after,
            metadata_only=self._metadata_only,
        )

    def _open(self, stream: Stream) -> Events:
        cluster = self._cluster
        if stream.initial and isinstance(cluster, LiveCluster):
            return cluster.watch_batches(
                self._kind,
                self._namespace,
                labels=self._labels,
                fields=self._fields,
                initial=True,
                metadata_only=self._metadata_only,
            )
        return cluster.watch_batches(
            self._kind,
            self._namespace,
            since=stream.since,
            labels=self._labels,
            fields=self._fields,
            bookmarks=True,
            metadata_only=self._metadata_only,
        )

    async def _read(self, stream: Events) -> Stimulus:
        try:
            while not (events := await self._in_time(anext(stream))):
                self._opened_at = self._clock.now()
        except StopAsyncIteration:
            return Closed(self._lived())
        return Told(events)

    def _lived(self) -> float:
        """Seconds since the server accepted the watch that is open."""
        return 0.0 if self._opened_at is None else (self._clock.now() - self._opened_at) / SECOND

    async def _in_time(self, work: Awaitable[T], within: float | None = None) -> T:
        """The result of `work`, unless it takes longer by our clock than a live connection would."""
        doing = asyncio.ensure_future(_awaited(work))
        deadline = Instant(self._clock.now() + seconds(within or self._policy.stall))
        timer = asyncio.ensure_future(self._clock.sleep_until(deadline))
        try:
            await asyncio.wait((doing, timer), return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise _StalledError
            return doing.result()
        finally:
            timer.cancel()
            if not doing.done():
                doing.cancel()
                await asyncio.wait((doing,))

    async def _close_stream(self) -> None:
        stream, self._stream, self._opened_at = self._stream, None, None
        if stream is not None:
            await stream.aclose()

    def _say(self, stimulus: Stimulus, step: Step) -> None:
        kind, then = self._kind.resource, step.then
        if step.synced:
            log.debug("synced", kind=kind, objects=len(self._core), revision=self._core.revision)
        if isinstance(then, Rest):
            pause = f"{then.seconds:.1f}s"
            if then.error is not None:
                log.warning("watch interrupted", kind=kind, why=then.error.message, again_in=pause)
            else:  # a kind in which nothing happens may look stalled until the server's first bookmark
                log.info("watch taken up anew", kind=kind, why=type(stimulus).__name__.lower(), again_in=pause)


class _StalledError(Exception):
    """Nothing came in time."""


async def _awaited(work: Awaitable[T]) -> T:
    """A coroutine for a task: `anext` gives an awaitable that is none."""
    return await work
