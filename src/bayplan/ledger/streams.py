"""The kinds that are followed, a reflector each: what they bring goes into one inbox, with the time at which it came.

    pods, nodes, events   from where the last run ended; without them there is no ledger
    claims and slices     read anew, where the cluster has them; looked for again from time to time where it has not
    owners                read anew, of whatever kinds turn up (listeners.py), metadata alone where that suffices

Owners are read anew because chains lead through those without GPU pods too, which nobody has stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from bayplan.cluster.kinds import EVENT, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE, Kind
from bayplan.cluster.live.reflector import Batch, Reflector, Source
from bayplan.cluster.live.reflector_core import Policy
from bayplan.cluster.objects import version_of
from bayplan.ledger.lateness import Lateness
from bayplan.ledger.listeners import Action, Listeners, Sign, Timing
from bayplan.ledger.recording import Recording
from bayplan.ledger.status.kinds import GroupKind
from bayplan.ledger.store.port import Remembered
from bayplan.model.clock import SECOND, Clock, Instant
from bayplan.model.errors import BayplanError, PermanentError, TemporaryError
from bayplan.service.logging import get_logger

log = get_logger(__name__)

CORE = (NODE, POD, EVENT)
DEVICES = (RESOURCE_CLAIM, RESOURCE_SLICE)
_INBOX = 8
_LOOK_AGAIN = 600 * SECOND
"""For kinds that a cluster does not have, or does not let us see."""
FindKind = Callable[[str, str], Awaitable[Kind | None]]
"""The kind of an apiVersion and a name; None: the cluster does not have it."""


class RecordedAlreadyError(PermanentError):
    """The ledger holds another run of the same cluster."""

    code = "BP-D035"


def check_goes_on(told: str, revision: str) -> None:
    """Whether a server that is at a revision can be the one whose story was told so far. Raises RecordedAlreadyError:
    versions are compared by their number, so what a cluster that was set back does would count as long past.
    """
    if version_of(revision) < version_of(told):
        raise RecordedAlreadyError(
            f"the cluster is at revision {revision}, this ledger was told up to {told}: it was restored or made anew",
            hint="give it another name (ledger.cluster) or another database; what is recorded stays as it is",
        )


class Stream(msgspec.Struct, kw_only=True):
    """A kind that is followed."""

    kind: Kind
    metadata_only: bool = False
    revision: str = ""
    heard_at: Instant | None = None
    """When all of it was known last, also by an earlier run."""
    sign_at: Instant = Instant(0)
    ended: str | None = None
    task: asyncio.Task[None] | None = None


class Ended(msgspec.Struct, frozen=True):
    """A stream will bring nothing more."""

    error: Exception


class Item(NamedTuple):
    """What a stream brought, and when: what waits here is no younger for it."""

    stream: Stream
    news: Batch | Ended
    at: Instant

    @property
    def size(self) -> int:
        """How many changes it has."""
        return len(self.news.changes) if isinstance(self.news, Batch) else 0


class Streams:
    """Runs reflectors for a recording, from `begin` to `end`."""

    def __init__(
        self,
        cluster: Source,
        recording: Recording,
        kept: Remembered,
        find_kind: FindKind,
        *,
        clock: Clock,
        stamp: Callable[[], Instant],
        policy: Policy,
        timing: Timing,
    ) -> None:
        self.inbox: asyncio.Queue[Item] = asyncio.Queue(_INBOX)
        self.owners: dict[GroupKind, Stream] = {}
        """Those of owners, which come and go."""
        self._cluster = cluster
        self._recording = recording
        self._kept = kept
        self._find_kind = find_kind
        self._clock = clock
        self._stamp = stamp
        self._policy = policy
        self._listeners = Listeners(timing)
        self._lasting: list[Stream] = []

    def begin(self) -> None:
        """Follow what is always followed, and owners of stored pods."""
        for kind in (*CORE, *DEVICES):
            stream = Stream(kind=kind, heard_at=self._kept.told_at.get(kind.resource))
            work = self._follow(stream) if kind in CORE else self._follow_if_there(stream)
            stream.task = asyncio.create_task(work, name=f"ledger of {kind.resource}")
            self._lasting.append(stream)
        self.settle()

    async def end(self) -> None:
        """Follow nothing any more."""
        tasks = [each.task for each in (*self._lasting, *self.owners.values()) if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def due(self) -> Instant:
        """When `settle` is to be called at the latest."""
        return self._listeners.due(self._clock.now())

    def settle(self) -> None:
        """Follow the kinds of owners that are wanted now."""
        signs = {kind: Sign(stream.sign_at, stream.ended) for kind, stream in self.owners.items()}
        for action in self._listeners.step(self._clock.now(), self._recording.owners.kinds(), signs):
            self._act(action)

    def ended(self, stream: Stream, error: Exception) -> None:
        """A listener is started again by the next health check, claims and slices after a while; else raises."""
        if stream.kind in CORE or not isinstance(error, BayplanError | LookupError):
            raise error
        stream.ended = str(error)
        if stream.kind in DEVICES:
            there_are_none = isinstance(error, LookupError)
            if there_are_none:
                self._recording.devices.complete(stream.kind.name)
            self._recording.devices.interrupted(stream.kind.name)
            if there_are_none:
                log.debug("no devices by claims", kind=stream.kind.qualified, why=str(error))
                return
        log.warning("listener failed", kind=stream.kind.qualified, why=str(error))

    # --- following one kind

    async def _follow(self, stream: Stream) -> None:
        kind = stream.kind
        stream.revision = self._kept.streams.get(kind.resource, "") if kind in CORE else ""
        stream.heard_at = stream.heard_at or self._kept.told_at.get(kind.resource)
        reflector = Reflector(
            self._cluster,
            kind,
            since=stream.revision,
            known=self._recording.known(kind),
            policy=self._policy,
            clock=self._clock,
            metadata_only=stream.metadata_only,
        )
        lateness = Lateness()
        try:
            async with reflector as batches:
                async for batch in batches:
                    stream.sign_at = self._clock.now()
                    await self._hand_on(stream, lateness.marked(batch, stream.sign_at))
                    now = self._clock.now()
                    if lateness.handed_on(batch, now):
                        lateness.is_behind(await self._present(kind), now)
        except Exception as error:  # whoever reads the inbox decides what it means
            await self._hand_on(stream, Ended(error))

    async def _follow_if_there(self, stream: Stream) -> None:
        """Follow a built-in kind that not every cluster has, or tell that it is not there; and look again."""
        while True:
            if await self._found(stream) is not None:
                await self._follow(stream)
            await self._clock.sleep_until(Instant(self._clock.now() + _LOOK_AGAIN))

    async def _listen(self, stream: Stream) -> None:
        """Follow a kind of owners, once the cluster has said what it is called."""
        kind = await self._found(stream)
        if kind is not None:
            stream.kind = kind
            await self._follow(stream)

    async def _found(self, stream: Stream) -> Kind | None:
        """What the cluster calls a stream's kind; where there is none, the stream has ended."""
        try:
            kind = await self._find_kind(stream.kind.api_version, stream.kind.name)
        except Exception as error:  # whoever reads the inbox decides what it means
            await self._hand_on(stream, Ended(error))
            return None
        if kind is None:
            await self._hand_on(stream, Ended(LookupError("the cluster does not have this kind")))
        return kind

    async def _hand_on(self, stream: Stream, news: Batch | Ended) -> None:
        await self.inbox.put(Item(stream, news, self._stamp()))

    async def _present(self, kind: Kind) -> int | None:
        """The server's revision now: what waits to be read happened while nobody looked, up to that.

        None: it refuses to say. That is no reason to end the stream: whether it does so for good, the reflector finds
        out, which bears the refusals of a server that has just started.
        """
        while True:
            try:
                return version_of((await self._cluster.list(kind, limit=1, metadata_only=True)).revision)
            except BayplanError as error:
                log.warning("cluster away", kind=kind.resource, why=error.message)
                if not isinstance(error, TemporaryError):
                    return None
                await self._clock.sleep_until(Instant(self._clock.now() + SECOND))

    # --- owners' kinds

    def _act(self, action: Action) -> None:
        log.info(action.event, **action.fields)
        old = self.owners.pop(action.kind, None)
        if old is not None and old.task is not None:
            old.task.cancel()
        if action.verb == "stop":
            if old is not None:
                self._leave_unread(old)
            self._recording.owners.forget(action.kind)
            return
        watch = action.watch
        unknown = Kind(action.kind.group, watch.api_version.rpartition("/")[2], watch.kind, "", namespaced=True)
        stream = self.owners[action.kind] = Stream(
            kind=unknown,
            metadata_only=not watch.whole,
            sign_at=self._clock.now(),
            heard_at=old.heard_at if old is not None else None,
        )
        stream.task = asyncio.create_task(self._listen(stream), name=f"listener of {action.kind}")

    def _leave_unread(self, stream: Stream) -> None:
        """Take what a stream brought out of the inbox: nobody would tell the end of workloads that it tells of now."""
        for item in [self.inbox.get_nowait() for _ in range(self.inbox.qsize())]:
            if item.stream is not stream:
                self.inbox.put_nowait(item)
