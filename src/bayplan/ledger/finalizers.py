"""A finalizer on GPU pods, so that none goes before its last state is stored. Off unless `ledger.finalizers` is on.

`Finalizers` decides: versions of pods in, patches out. A pod that is not going gets the finalizer; one that is loses it
once the version that says so is durable. Every patch names the uid and resourceVersion that it was decided by: whatever
else happens to the pod makes it fail, and the pod's next version is decided anew. So a terminating pod never gets it,
and a new pod of the same name is never touched.

Nobody waits for ever: what cannot be stored within a minute is let go without, by `sweep`, which looks at the cluster
itself, because a recorder that cannot write does not read either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from bayplan.cluster.kinds import POD, Kind
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Cluster, PatchType
from bayplan.model.clock import SECOND, Clock, Instant
from bayplan.model.errors import BayplanError, Conflict, Invalid, NotFound
from bayplan.service.logging import get_logger

log = get_logger(__name__)

FINALIZER = "bayplan.dev/ledger"
DEADLINE = 60 * SECOND
_SWEEP_EVERY = 10 * SECOND
_RETRY = SECOND
_PAGE = 500
_ROUNDS = 5


class Mark(msgspec.Struct, frozen=True):
    """A patch of an object's finalizers."""

    namespace: str
    name: str
    uid: str
    version: str
    finalizers: tuple[str, ...]

    @property
    def adds(self) -> bool:
        """Whether it puts ours on; else it takes it off."""
        return FINALIZER in self.finalizers

    def body(self) -> dict[str, Any]:
        """As a merge patch that holds for this very version only."""
        meta = {"uid": self.uid, "resourceVersion": self.version, "finalizers": list(self.finalizers)}
        return {"metadata": meta}


def decided(obj: Object) -> Mark | None:
    """What must be done about a version: on while it stays, off when it goes; None: nothing."""
    meta = obj.meta
    going, has = meta.deletion_timestamp is not None, FINALIZER in meta.finalizers
    if going != has:
        return None
    others = tuple(each for each in meta.finalizers if each != FINALIZER)
    return Mark(meta.namespace, meta.name, meta.uid, meta.resource_version, others if going else (*others, FINALIZER))


class Finalizers:
    """Keeps the finalizer where it belongs. `durable` is called with versions once they are stored."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self.added = self.removed = 0
        self._cluster = cluster
        self._clock = clock
        self._marks: dict[str, Mark] = {}
        """By uid: the latest decision that was not carried out yet."""
        self._wake = asyncio.Event()

    def durable(self, versions: Iterable[Object]) -> None:
        """These versions are stored."""
        for obj in versions:
            mark = decided(obj)
            if mark is not None:
                self._marks[obj.uid] = mark
            else:
                self._marks.pop(obj.uid, None)
        if self._marks:
            self._wake.set()

    async def run(self, stuck_since: Callable[[], Instant | None]) -> None:
        """Carry out what is decided, and sweep while nothing can be stored, until cancelled."""
        sweeping = asyncio.create_task(self._keep_sweeping(stuck_since), name="sweep of finalizers")
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if not await self._carry_out():
                    await self._clock.sleep_until(Instant(self._clock.now() + _RETRY))
                    self._wake.set()
        finally:
            sweeping.cancel()
            await asyncio.gather(sweeping, return_exceptions=True)

    async def _carry_out(self) -> bool:
        """Whether all is done; what failed for now stays."""
        done = True
        for uid, mark in list(self._marks.items()):
            try:
                patched = await patch(self._cluster, POD, mark)
            except BayplanError as error:
                log.warning("finalizer not patched", pod=f"{mark.namespace}/{mark.name}", why=error.message)
                done = False
                continue
            if self._marks.get(uid) is mark:
                del self._marks[uid]
            if patched:
                self.added += mark.adds
                self.removed += not mark.adds
        return done

    async def _keep_sweeping(self, stuck_since: Callable[[], Instant | None]) -> None:
        while True:
            await self._clock.sleep_until(Instant(self._clock.now() + _SWEEP_EVERY))
            since = stuck_since()
            if since is None or self._clock.now() - since < DEADLINE - _SWEEP_EVERY:
                continue
            try:
                freed = await sweep(self._cluster, POD, going_only=True)
            except BayplanError as error:
                log.warning("finalizers not swept", why=error.message)
                continue
            self.removed += freed
            if freed:
                log.warning("finalizers given up", pods=freed, why="nothing could be stored for a minute")


async def patch(cluster: Cluster, kind: Kind, mark: Mark) -> bool:
    """Carry out one decision; False: the object has changed or gone, so it no longer holds."""
    try:
        await cluster.patch(kind, mark.body(), mark.name, mark.namespace, type=PatchType.MERGE)
    except (Conflict, NotFound, Invalid) as error:
        log.debug("finalizer decision outdated", object=f"{mark.namespace}/{mark.name}", why=error.message)
        return False
    log.debug("finalizer added" if mark.adds else "finalizer removed", uid=mark.uid, version=mark.version)
    return True


async def sweep(cluster: Cluster, kind: Kind, *, going_only: bool = False) -> int:
    """Take the finalizer off every object of a kind that has it, or of those that are going; how many.

    An object that changes meanwhile is looked at again, a few times.
    """
    freed = 0
    for _ in range(_ROUNDS):
        patched = [await patch(cluster, kind, mark) for mark in await _held(cluster, kind, going_only=going_only)]
        freed += sum(patched)
        if all(patched):
            break
    return freed


async def _held(cluster: Cluster, kind: Kind, *, going_only: bool) -> list[Mark]:
    """How to free each object that has the finalizer."""
    marks: list[Mark] = []
    after = ""
    while True:
        page = await cluster.list(kind, limit=_PAGE, after=after)
        for meta in (obj.meta for obj in page.items):
            if FINALIZER in meta.finalizers and (meta.deletion_timestamp is not None or not going_only):
                others = tuple(each for each in meta.finalizers if each != FINALIZER)
                marks.append(Mark(meta.namespace, meta.name, meta.uid, meta.resource_version, others))
        after = page.next
        if not after:
            return marks
