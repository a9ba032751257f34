"""An embedded cluster recorded from inside: every change at the instant at which it happened, in virtual time too.

A reflector sees changes when it is its turn, and virtual time does not wait for it. Here the store's own listener notes
them, and `flush` commits what has come since. Owners are followed from their beginning, so all chains are known.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.store import Change as Stored
from bayplan.cluster.kinds import EVENT, NAMESPACE, NODE, POD, Kind, is_built_in
from bayplan.cluster.live.reflector_core import Change
from bayplan.ledger.listeners import CONTROLLERS
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import Rows, StreamPosition
from bayplan.ledger.store.port import Store
from bayplan.ledger.streams import DEVICES, RecordedAlreadyError
from bayplan.model.clock import SECOND, Instant
from bayplan.service.logging import get_logger

log = get_logger(__name__)

_ALWAYS = frozenset({POD, NODE, EVENT, *DEVICES, *CONTROLLERS})
_COLLECT_EVERY = 10 * SECOND
_TELL_EVERY = 60 * SECOND
MOST = 5000
"""Changes that wait before a flush is due."""
_Type = Literal["ADDED", "MODIFIED", "DELETED"]


class Following:
    """Notes what happens to an embedded cluster from now on."""

    def __init__(self, cluster: EmbeddedCluster, store: Store, name: str) -> None:
        self.recording = Recording(name)
        self._cluster = cluster
        self._store = store
        self._noted: list[tuple[Instant, Kind, Change]] = []
        self._collected_at = self._told_at = Instant(0)
        self._told: dict[str, int] = {}
        self._flushing = asyncio.Lock()
        world = cluster.world.store
        for kind in world.kinds():
            if _followed(kind):
                self._noted += [(cluster.world.now, kind, Change("ADDED", each)) for each in world.objects(kind)]
        for kind in DEVICES:
            self.recording.devices.complete(kind.name)
        world.listeners.append(self._note)

    @classmethod
    async def begin(cls, cluster: EmbeddedCluster, store: Store) -> Following:
        """Follow a cluster under the uid of its namespace kube-system. Raises RecordedAlreadyError."""
        name = (await cluster.get(NAMESPACE, "kube-system")).uid
        if (await store.remembered(name)).streams:
            raise RecordedAlreadyError(
                "this ledger holds an earlier run with the same seed", hint="another --seed, or another --ledger FILE"
            )
        return cls(cluster, store, name)

    @property
    def due(self) -> bool:
        """Whether so much waits that a flush should not."""
        return len(self._noted) >= MOST

    def _note(self, change: Stored) -> None:
        kind = change.new.kind
        if _followed(kind):
            said: _Type = change.type.value
            self._noted.append((self._cluster.world.now, kind, Change(said, change.new)))

    async def flush(self) -> None:
        """Commit what has come. Raises as the store does."""
        async with self._flushing:
            noted, self._noted = self._noted, []
            rows = Rows()
            at = now = self._cluster.world.now
            for at, kind, change in noted:
                self.recording.take(kind, (change,), When(at), rows)
                if kind not in (NODE, EVENT):
                    self.recording.settle(at, rows)
            if at - self._collected_at >= _COLLECT_EVERY:
                self._collected_at = at
                self.recording.collect(at)
                self.recording.settle(at, rows)
            for where, odd in self.recording.odd:
                log.warning("odd object", code=odd.code, object=where, what=odd.what)
            self.recording.odd.clear()
            rows.add(*self._positions(noted, now))
            await self._store.commit(rows)

    def _positions(self, noted: list[tuple[Instant, Kind, Change]], at: Instant) -> list[StreamPosition]:
        """How far each kind is told; where nothing happens, that once a minute."""
        versions = {kind.resource: change.object.version for _, kind, change in noted}
        self._told |= versions
        if at - self._told_at < _TELL_EVERY:
            told = versions
        else:
            told, self._told_at = self._told, at
        return [
            StreamPosition(
                cluster=self.recording.cluster, kind=resource, resource_version=version, revision=str(version), at=at
            )
            for resource, version in told.items()
        ]

    async def run(self, every: float = 1.0) -> None:
        """Flush from time to time (of the machine, not the cluster), until cancelled."""
        while True:
            await asyncio.sleep(every)
            await asyncio.shield(self.flush())  # what was taken must be stored, even if this ends now


def _followed(kind: Kind) -> bool:
    return kind in _ALWAYS or not is_built_in(kind)
