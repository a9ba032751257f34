"""Recording a live cluster: the ledger's reflector for each kind that matters, one file for all of them.

Connections may break, history may be lost: a reflector takes up what it can and infers the rest, so the file tells a
correct story. What happened while nobody listened is marked as late. Kinds that must not be read are left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from bayplan.cluster.kinds import Kind
from bayplan.cluster.live.reflector import Batch, Reflector, Source
from bayplan.cluster.live.reflector_core import Policy
from bayplan.model.clock import Clock, Instant
from bayplan.model.errors import BayplanError, Forbidden, NotFound
from bayplan.service.logging import get_logger
from bayplan.simulate.recording.file import Entry, Writer
from bayplan.simulate.twin.kinds import ALL, NEEDED

log = get_logger(__name__)
_INBOX = 16


class Progress(msgspec.Struct):
    """How far a recording has come."""

    synced: bool = False
    changes: int = 0
    """Since all that was there at the beginning is known."""
    lacking: tuple[str, ...] = ()


class Recorder:
    """Writes what reflectors tell until it is cancelled; `finish` then ends the story."""

    def __init__(
        self,
        cluster: Source,
        writer: Writer,
        *,
        clock: Clock,
        stamp: Callable[[], Instant],
        kinds: Sequence[Kind] = ALL,
        policy: Policy | None = None,
        synced: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self.progress = Progress()
        self._cluster, self._writer = cluster, writer
        self._clock, self._stamp = clock, stamp
        self._kinds = kinds
        self._policy = policy or Policy()
        self._synced = synced
        self._inbox: asyncio.Queue[tuple[Kind, Batch | BayplanError, Instant]] = asyncio.Queue(_INBOX)
        self._unknown = set(kinds)

    async def run(self) -> None:
        """Record until cancelled. Raises what a reflector of nodes or pods does."""
        tasks = [asyncio.create_task(self._follow(kind), name=f"recording of {kind.resource}") for kind in self._kinds]
        try:
            while True:
                self._take(*await self._inbox.get())
                if self._inbox.empty():
                    self._writer.flush()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def finish(self) -> None:
        """Write the last line."""
        self._writer.add(Entry(self._stamp(), "END"))

    async def _follow(self, kind: Kind) -> None:
        try:
            async with Reflector(self._cluster, kind, policy=self._policy, clock=self._clock) as batches:
                async for batch in batches:
                    await self._inbox.put((kind, batch, self._stamp()))
        except BayplanError as error:
            await self._inbox.put((kind, error, self._stamp()))

    def _take(self, kind: Kind, news: Batch | BayplanError, at: Instant) -> None:
        if isinstance(news, BayplanError):
            self._miss(kind, news)
        else:
            reading_anew = kind not in self._unknown and (news.synced or not news.revision)
            for change in news.changes:
                late = reading_anew or change.object.version <= news.behind
                self._writer.add(Entry(at, change.type, change.object, late=late))
            self.progress.changes += len(news.changes) if self.progress.synced else 0
        if isinstance(news, BayplanError) or news.synced:
            self._unknown.discard(kind)
            if not self._unknown and not self.progress.synced:
                self.progress.synced = True
                self._writer.add(Entry(at, "SYNCED", lacking=self.progress.lacking))
                self._synced(self.progress)

    def _miss(self, kind: Kind, error: BayplanError) -> None:
        if kind in NEEDED:
            raise error
        if isinstance(error, Forbidden):
            self.progress.lacking += (kind.resource,)
        elif not isinstance(error, NotFound):  # a cluster may lack the kind
            log.warning("not recorded any more", kind=kind.resource, why=error.message)
