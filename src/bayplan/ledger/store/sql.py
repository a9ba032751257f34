"""The store: a database of ledgers behind `Store`, opened once its schema is found to be this program's."""

from __future__ import annotations

import asyncio
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from bayplan.ledger.rows import (
    ROWS,
    GpuNode,
    GpuPod,
    GpuWorkload,
    Period,
    Row,
    Rows,
    SpecBlob,
    StreamPosition,
    WorkloadPodReference,
)
from bayplan.ledger.snapshots import squeezed, unpack
from bayplan.ledger.store.engines import engine_for
from bayplan.ledger.store.faults import translated
from bayplan.ledger.store.merging import folded
from bayplan.ledger.store.migrating import check
from bayplan.ledger.store.port import Remembered
from bayplan.ledger.store.reading import last_versions, rows_on, select_rows
from bayplan.ledger.store.schema import TABLES
from bayplan.ledger.store.settings import Address, StoreSettings, parse_url
from bayplan.ledger.store.writers import Batch, Writer, writer_for

_PERIODS = tuple(kind for kind in ROWS if issubclass(kind, Period))


class SqlStore:
    """A database of ledgers, of one cluster or several."""

    def __init__(self, address: Address, engine: AsyncEngine, writer: Writer) -> None:
        self.address = address
        self.engine = engine
        self.writing = asyncio.Lock()
        """One transaction at a time: commits keep their order. Retention takes its turn where it must."""
        self.used: set[bytes] | None = None
        """While retention looks for specifications that nobody uses: those that were written meanwhile."""
        self._writer = writer

    async def commit(self, rows: Rows) -> None:
        """Write all or nothing. Raises StoreUnavailableError (try again), StoreRefusedError."""
        if not len(rows):
            return
        async with self.writing:
            if self.used is not None:
                self.used.update(row.hash for row in rows.by_type.get(SpecBlob, ()) if isinstance(row, SpecBlob))
            batch = await asyncio.to_thread(_made_ready, rows)
            with translated(self.address):
                await self._writer.write(batch)

    async def remembered(self, cluster: str) -> Remembered:
        """What has not ended in a cluster, and the workloads of its pods. Raises StoreUnavailableError."""
        with translated(self.address):
            async with self.engine.connect() as connection:

                async def read(kind: type[Row], *where: sa.ColumnElement[bool]) -> tuple[Any, ...]:
                    of_cluster = TABLES[kind].c.cluster == cluster
                    return tuple(await rows_on(connection, select_rows(kind).where(of_cluster, *where)))

                pods = _present(cluster)
                last = await connection.execute(last_versions(self.address.dialect, cluster, pods))
                streams = await read(StreamPosition)
                return Remembered(
                    pods=await read(GpuPod, TABLES[GpuPod].c.gone_at.is_(None)),
                    workloads=await read(GpuWorkload, _unfinished(cluster, pods)),
                    nodes=await read(GpuNode, TABLES[GpuNode].c.end_at.is_(None)),
                    periods=tuple(
                        [row for kind in _PERIODS for row in await read(kind, TABLES[kind].c.end_at.is_(None))]
                    ),
                    last={row.pod_uid: unpack(row.state, row.data) for row in last},
                    streams={each.kind: each.revision for each in streams},
                    told_at={each.kind: each.at for each in streams},
                )

    async def close(self) -> None:
        """Let go of connections."""
        await self._writer.close()
        await self.engine.dispose()


def _made_ready(rows: Rows) -> Batch:
    rows = squeezed(rows)
    return [(kind, folded(kind, rows.by_type[kind])) for kind in ROWS if rows.by_type.get(kind)]


def _present(cluster: str) -> sa.Select[Any]:
    pod = TABLES[GpuPod].c
    return sa.select(pod.uid).where(pod.cluster == cluster, pod.gone_at.is_(None))


def _unfinished(cluster: str, pods: sa.Select[Any]) -> sa.ColumnElement[bool]:
    """Workloads that have not ended, or still have pods: those need their owners' story."""
    workload, reference = TABLES[GpuWorkload].c, TABLES[WorkloadPodReference].c
    owners = sa.select(reference.workload_uid).where(reference.cluster == cluster, reference.pod_uid.in_(pods))
    return sa.or_(workload.end_at.is_(None), workload.uid.in_(owners))


async def open_store(url: str, settings: StoreSettings | None = None) -> SqlStore:
    """A database that has been migrated. Writes nothing.

    Raises DatabaseUrlError, StoreUnavailableError, StoreRefusedError, SchemaError.
    """
    address = parse_url(url)
    settings = settings or StoreSettings()
    engine = engine_for(address, settings)
    try:
        with translated(address):
            async with engine.connect() as connection:
                await check(connection, address)
    except BaseException:
        await engine.dispose()
        raise
    return SqlStore(address, engine, writer_for(address, settings, engine))
