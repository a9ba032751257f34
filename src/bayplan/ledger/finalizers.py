"""A finalizer on GPU pods and on the workloads at the top of their chains, so that none goes before its last state is
stored. Off unless `ledger.finalizers` is on.

`Finalizers` decides: versions in, patches out. An object that is not going gets the finalizer; one that is loses it
once the version that says so is durable. Every patch names the uid and resourceVersion that it was decided by: whatever
else happens to the object makes it fail, and its next version is decided anew. So a terminating object never gets it,
and a new one of the same name is never touched.

Nobody waits for ever: what cannot be stored within a minute is let go without, by `sweep`, which looks at the cluster
itself, because a recorder that cannot write does not read either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.cluster.paging import all_of
from bayplan.cluster.port import Cluster, PatchType
from bayplan.ledger.listeners import CONTROLLERS
from bayplan.model.clock import SECOND, Clock, Instant
from bayplan.model.errors import BayplanError, Conflict, Forbidden, Invalid, NotFound, TemporaryError
from bayplan.service.logging import get_logger

log = get_logger(__name__)

FINALIZER = "bayplan.dev/ledger"
DEADLINE = 60 * SECOND
"""A finalizer must free its object after so long, saved or not."""
_SWEEP_EVERY = 10 * SECOND
_RETRY = SECOND
_ROUNDS = 5


class Mark(msgspec.Struct, frozen=True):
    """A patch of an object's finalizers."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    version: str
    finalizers: tuple[str, ...]

    @property
    def adds(self) -> bool:
        """Whether it puts ours on; else it takes it off."""
        return FINALIZER in self.finalizers

    def __str__(self) -> str:
        return f"{self.kind.name} {self.namespace}/{self.name}"

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
    return _mark(obj, on=not going)


def _mark(obj: Object, *, on: bool) -> Mark:
    meta = obj.meta
    others = tuple(each for each in meta.finalizers if each != FINALIZER)
    wanted = (*others, FINALIZER) if on else others
    return Mark(obj.kind, meta.namespace, meta.name, meta.uid, meta.resource_version, wanted)


class Stored(msgspec.Struct, frozen=True):
    """A version that is stored and of which only that is known: its object came by before it mattered."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    version: int


class Finalizers:
    """Keeps the finalizer where it belongs. `durable` is called with versions once they are stored."""

    def __init__(self, cluster: Cluster, clock: Clock, stored: Mapping[str, int] | None = None) -> None:
        """`stored`: by uid, the versions that an earlier run stored; it may have ended before it acted on them."""
        self.added = self.removed = 0
        self._cluster = cluster
        self._clock = clock
        self._stored = stored or {}
        self._marks: dict[str, Mark] = {}
        """By uid: the latest decision that was not carried out yet."""
        self._unread: list[Stored] = []
        self._refused: set[Kind] = set()
        """Kinds that this account may not read, as far as that was told."""
        self._wake = asyncio.Event()

    def durable(self, versions: Iterable[Object], unread: Sequence[Stored] = ()) -> None:
        """These versions are stored."""
        self._unread += unread
        for obj in versions:
            mark = decided(obj)
            if mark is not None:
                self._marks[obj.uid] = mark
            else:
                self._marks.pop(obj.uid, None)
        if self._marks or self._unread:
            self._wake.set()

    async def run(self, stuck_since: Callable[[], Instant | None], kinds: Callable[[], Sequence[Kind]]) -> None:
        """Carry out what is decided, and sweep these kinds while nothing can be stored, until cancelled."""
        sweeping = asyncio.create_task(self._keep_sweeping(stuck_since, kinds), name="sweep of finalizers")
        try:
            while self._stored and not await self._take_up():
                await self._clock.sleep_until(Instant(self._clock.now() + _RETRY))
            while True:
                await self._wake.wait()
                self._wake.clear()
                if not await self._carry_out():
                    await self._clock.sleep_until(Instant(self._clock.now() + _RETRY))
                    self._wake.set()
        finally:
            sweeping.cancel()
            await asyncio.gather(sweeping, return_exceptions=True)

    async def _take_up(self) -> bool:
        """Decide by what an earlier run stored; whatever is newer comes by itself. Whether that worked."""
        try:
            async for obj in all_of(self._cluster, POD):
                if obj.uid not in self._marks and obj.version <= self._stored.get(obj.uid, 0):
                    self.durable([obj])
        except BayplanError as error:
            log.warning("finalizers not taken up", why=error.message)
            return False
        return True

    async def _carry_out(self) -> bool:
        """Whether all is done; what failed for now stays."""
        done = await self._read()
        for uid, mark in list(self._marks.items()):
            try:
                patched = await patch(self._cluster, mark)
            except BayplanError as error:
                why = error.message
                log.warning(
                    "finalizer not patched", object=str(mark), uid=mark.uid, resource_version=mark.version, why=why
                )
                if isinstance(error, TemporaryError):
                    done = False
                    continue
                patched = False  # no right to patch that kind: the next version asks again
            if self._marks.get(uid) is mark:
                del self._marks[uid]
            if patched:
                self.added += mark.adds
                self.removed += not mark.adds
        return done

    async def _read(self) -> bool:
        """Get the objects of versions that are stored; where there is a newer one by now, that comes by itself."""
        unread, self._unread = self._unread, []
        for each in unread:
            try:
                obj = await self._cluster.get(each.kind, each.name, each.namespace)
            except TemporaryError:
                self._unread.append(each)
                continue
            except BayplanError as error:
                log.debug("finalizer not decided", kind=each.kind.qualified, uid=each.uid, why=error.message)
                if isinstance(error, Forbidden) and each.kind not in self._refused:
                    self._refused.add(each.kind)
                    log.warning("finalizers not allowed", kind=each.kind.qualified, why=error.message)
                continue
            if obj.uid == each.uid and obj.version <= each.version:
                self.durable([obj])
        return not self._unread

    async def _keep_sweeping(
        self, stuck_since: Callable[[], Instant | None], kinds: Callable[[], Sequence[Kind]]
    ) -> None:
        while True:
            await self._clock.sleep_until(Instant(self._clock.now() + _SWEEP_EVERY))
            since = stuck_since()
            if since is None or self._clock.now() - since < DEADLINE - _SWEEP_EVERY:
                continue
            freed = 0
            for kind in kinds():
                try:
                    freed += await sweep(self._cluster, kind, going_only=True)
                except BayplanError as error:  # one that may not be read must not keep the others
                    log.warning("finalizers not swept", why=error.message)
            self.removed += freed
            if freed:
                log.warning("finalizers given up", objects=freed, why="nothing could be stored for a minute")


async def patch(cluster: Cluster, mark: Mark) -> bool:
    """Carry out one decision; False: the object has changed or gone, so it no longer holds."""
    try:
        await cluster.patch(mark.kind, mark.body(), mark.name, mark.namespace, type=PatchType.MERGE)
    except (Conflict, NotFound, Invalid) as error:
        why = error.message
        log.debug("finalizer outdated", object=str(mark), uid=mark.uid, resource_version=mark.version, why=why)
        return False
    name = "finalizer added" if mark.adds else "finalizer removed"
    log.debug(name, object=str(mark), uid=mark.uid, resource_version=mark.version)
    return True


async def sweep(cluster: Cluster, kind: Kind, *, going_only: bool = False) -> int:
    """Take the finalizer off every object of a kind that has it, or of those that are going; how many.

    An object that changes meanwhile is looked at again, a few times.
    """
    freed = 0
    for _ in range(_ROUNDS):
        patched = [await patch(cluster, mark) for mark in await _held(cluster, kind, going_only=going_only)]
        freed += sum(patched)
        if all(patched):
            break
    return freed


async def kinds_with_finalizers(cluster: Cluster) -> list[Kind]:
    """The kinds of which objects may have the finalizer: pods, and whatever may stand above them in this cluster."""
    custom = [
        Kind(spec["group"], version["name"], spec["names"]["kind"], spec["names"]["plural"], spec["scope"] != "Cluster")
        async for obj in all_of(cluster, CUSTOM_RESOURCE_DEFINITION)
        for spec in (obj.doc()["spec"],)
        for version in spec["versions"]
        if version["storage"] and version["served"]
    ]
    return [POD, *CONTROLLERS, *custom]


async def _held(cluster: Cluster, kind: Kind, *, going_only: bool) -> list[Mark]:
    """How to free each object that has the finalizer."""
    marks: list[Mark] = []
    async for obj in all_of(cluster, kind):
        meta = obj.meta
        if FINALIZER in meta.finalizers and (meta.deletion_timestamp is not None or not going_only):
            marks.append(_mark(obj, on=False))
    return marks
