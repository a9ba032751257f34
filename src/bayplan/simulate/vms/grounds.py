"""Where VMs are placed: a cluster, the watches that follow it, and what waiting means there.

`VirtualGround` is the embedded engine in virtual time: waiting lets time pass, from one thing that happens to the next,
and every change is seen the moment it is made. `LiveGround` is an API server: reflectors follow it, through broken
connections and lost history (410), and waiting is waiting for what they tell. Neither ever looks again and again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.store import Change, ChangeType
from bayplan.cluster.kinds import EVENT, NODE, POD, POD_DISRUPTION_BUDGET, Kind
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.faults import Unreachable
from bayplan.cluster.live.reflector import Reflector
from bayplan.cluster.port import Cluster
from bayplan.model.clock import SECOND, Clock, Instant, SystemClock, seconds
from bayplan.model.errors import BayplanError, TemporaryError
from bayplan.service.logging import get_logger
from bayplan.simulate.vms.launcher import OURS
from bayplan.simulate.vms.mirror import Mirror

log = get_logger(__name__)
T = TypeVar("T")
_FOLLOWED: tuple[Kind, ...] = (NODE, POD, POD_DISRUPTION_BUDGET)


class ClusterAway(TemporaryError):
    """The API server cannot be reached now."""

    code = "BP-X032"


class LoopThread:
    """An event loop on a thread of its own, for callers that have none."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it there, and wait for it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("the loop would wait for itself")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End it. What is under way there is cancelled, so that nobody waits for it for ever."""
        self.call(_drain())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _drain() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _nothing() -> None:
    """Nobody wants to know."""


class Ground(Protocol):
    """A cluster that is followed. All but `name` is used on one loop alone."""

    name: str
    hasty: bool
    """Whether a refusal may be out of date by the time it is read: then it is worth a second look."""
    on_break: Callable[[], None]
    """Called whenever a watch finds the server out of reach. It goes on trying by itself."""

    @property
    def cluster(self) -> Cluster:
        """The way to it."""
        ...

    def now(self) -> Instant:
        """What its clock says: waiting goes by it."""
        ...

    async def follow(self, mirror: Mirror) -> None:
        """Feed a mirror from now on; returns once it knows the present. May be called anew after an outage."""
        ...

    async def until(self, holds: Callable[[], bool], within: float) -> bool:
        """Wait until something holds that the mirror knows of, at most so many seconds; whether it does."""
        ...

    async def close(self) -> None:
        """Stop following."""
        ...


class VirtualGround:
    """The embedded engine, in time that passes only while somebody waits."""

    hasty = False

    def __init__(self, cluster: EmbeddedCluster, name: str = "embedded") -> None:
        self.on_break = _nothing
        self.cluster = cluster
        self.name = name
        self._mirror: Mirror | None = None

    def now(self) -> Instant:
        return self.cluster.clock.now()

    async def follow(self, mirror: Mirror) -> None:
        store = self.cluster.world.store
        if self._mirror is None:
            store.listeners.append(self._heard)
        self._mirror = mirror
        for kind in _FOLLOWED:
            for item in store.objects(kind):
                mirror.note(item, self.cluster.world.now, gone=False)

    def _heard(self, change: Change) -> None:
        if self._mirror is not None:
            self._mirror.note(change.new, self.cluster.world.now, gone=change.type is ChangeType.DELETED)

    async def until(self, holds: Callable[[], bool], within: float) -> bool:
        cluster = self.cluster
        end = Instant(cluster.clock.now() + seconds(within))
        await cluster.advance(0)
        while not holds():
            due = cluster.world.next_timer
            if due is None or due > end:
                await cluster.advance(max(0, end - cluster.clock.now()) / SECOND)
                return holds()
            await cluster.advance((due - cluster.clock.now()) / SECOND)
        return True

    async def close(self) -> None:
        if self._mirror is not None:
            self.cluster.world.store.listeners.remove(self._heard)
            self._mirror = None


class LiveGround:
    """An API server, followed by reflectors."""

    hasty = True

    def __init__(self, cluster: LiveCluster, name: str = "", clock: Clock | None = None) -> None:
        self.on_break = _nothing
        self.cluster = cluster
        self.name = name or cluster.access.context
        self._clock = clock or SystemClock()
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: set[asyncio.Future[None]] = set()

    def now(self) -> Instant:
        return self._clock.now()

    async def follow(self, mirror: Mirror) -> None:
        await self._stop()
        loop = asyncio.get_running_loop()
        synced: list[asyncio.Future[None]] = []
        for kind in (*_FOLLOWED, EVENT):
            synced.append(loop.create_future())
            self._tasks.append(asyncio.create_task(self._feed(kind, mirror, synced[-1]), name=f"follow {kind.plural}"))
        await asyncio.gather(*synced)
        self._wake()

    async def _feed(self, kind: Kind, mirror: Mirror, synced: asyncio.Future[None]) -> None:
        namespace = None if kind is NODE else mirror.namespace
        labels, fields = OURS if kind is POD else "", "reason=Scheduled" if kind is EVENT else ""
        known = mirror.names(kind)
        reflector = Reflector(
            self.cluster,
            kind,
            namespace,
            labels=labels,
            fields=fields,
            clock=self._clock,
            on_failure=self._failed,
        )
        try:
            async with reflector as batches:
                async for batch in batches:
                    now = self._clock.now()
                    for change in batch.changes:
                        known.discard(change.object.name)
                        mirror.note(change.object, now, gone=change.type == "DELETED")
                    if batch.synced and not synced.done():
                        mirror.lose(kind, known)
                        synced.set_result(None)
                    self._wake()
        except BayplanError as error:
            if not synced.done():
                synced.set_exception(error)
            else:
                log.error("cannot be followed any more", kind=kind.resource, why=error.message)
        finally:
            if not synced.done():  # somebody follows anew: whoever waits for this is not to wait for ever
                synced.set_exception(Unreachable("the watches broke off before the present was known"))

    def _failed(self, error: BayplanError) -> None:
        if isinstance(error, Unreachable):
            self.on_break()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def until(self, holds: Callable[[], bool], within: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not holds():
                    change = asyncio.get_running_loop().create_future()
                    self._waiting.add(change)
                    await change
        return holds()

    async def _stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        await self._stop()
        await self.cluster.close()
