"""Where the ledger is kept: one protocol, three databases behind it.

`commit` is the only way to write: all rows in one transaction, or none. It may be called again with the same rows (the
answer to an earlier call was lost): the second time changes nothing.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from bayplan.cluster.objects import version_of
from bayplan.ledger.rows import GpuNode, GpuPod, GpuWorkload, Period, Rows, StreamPosition
from bayplan.model.clock import Instant
from bayplan.model.errors import PermanentError, TemporaryError


class StoreUnavailableError(TemporaryError):
    """The database cannot be reached, or ended the connection; nothing of the transaction was kept."""

    code = "BP-D001"


class StoreRefusedError(PermanentError):
    """The database refuses for good: wrong password, no such database, no rights."""

    code = "BP-D002"


class SchemaError(PermanentError):
    """The database's schema is not this program's: older (run the migration), newer, or somebody else's."""

    code = "BP-D003"


class Remembered(msgspec.Struct, frozen=True):
    """What a ledger must know to go on where it ended: everything of a cluster that has not ended."""

    pods: tuple[GpuPod, ...] = ()
    workloads: tuple[GpuWorkload, ...] = ()
    nodes: tuple[GpuNode, ...] = ()
    periods: tuple[Period, ...] = ()
    """All that are open."""
    last: dict[str, bytes] = msgspec.field(default_factory=dict)
    """The last stored version of each such pod as its whole JSON, by uid."""
    streams: dict[str, str] = msgspec.field(default_factory=dict)
    """Revision by kind."""
    told_at: dict[str, Instant] = msgspec.field(default_factory=dict)
    """When each of them was told so far, by kind: what came later, nobody saw."""

    def positions(self, cluster: str) -> dict[str, StreamPosition]:
        """How far each kind's story is told, as rows."""
        return {
            kind: StreamPosition(
                cluster=cluster,
                kind=kind,
                resource_version=version_of(revision),
                revision=revision,
                at=self.told_at[kind],
            )
            for kind, revision in self.streams.items()
        }


class Store(Protocol):
    """A database of ledgers, of one cluster or several."""

    async def commit(self, rows: Rows) -> None:
        """Write all or nothing. Raises StoreUnavailableError (try again), StoreRefusedError."""
        ...

    async def remembered(self, cluster: str) -> Remembered:
        """What has not ended in a cluster. Raises StoreUnavailableError."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
