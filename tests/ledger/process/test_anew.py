"""`bayplan ledger run --anew`: a ledger that the cluster contradicts is put right."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bayplan.cluster.kinds import POD
from bayplan.ledger.rows import Gap, GpuPod, Rows
from bayplan.ledger.store.sql import open_store
from tests.ledger.databases import EMPTY
from tests.ledger.process.running import happens, ledger, listens, served, stored
from tests.ledger.shell.scenes import gpu_pod

pytestmark = pytest.mark.slow  # every start of a process takes a second


async def haunted(database: str) -> None:
    """Add a pod to the ledger that the cluster does not have."""
    (there,) = await stored(database, GpuPod)
    rows = Rows()
    rows.add(msgspec.structs.replace(there, uid="ghost", name="ghost"))
    store = await open_store(database)
    await store.commit(rows)
    await store.close()


async def test_a_pod_that_the_cluster_has_not_is_closed_by_reading_anew_alone(tmp_path: Path) -> None:
    database = EMPTY["SQLite"]()

    async def open_pods(name: str, *flags: str) -> set[str]:
        """Of a ledger that ran until it had heard of a new pod of that name."""
        async with ledger(tmp_path, world, database, *flags, name=name, election="off") as process:
            await process.tells("recording started")
            await listens(database)
            await world.cluster.create(POD, gpu_pod(name), "default")

            async def heard() -> bool:
                return name in {row.name for row in await stored(database, GpuPod)}

            await happens(heard)
            assert await process.end() == 0
        return {row.name for row in await stored(database, GpuPod) if row.gone_at is None}

    async with served(tmp_path) as world:
        assert await open_pods("first") == {"first"}
        await haunted(database)
        assert await open_pods("second") == {"first", "second", "ghost"}
        assert await open_pods("third", "--anew") == {"first", "second", "third"}
    assert sorted(row.kind for row in await stored(database, Gap)) == ["nodes", "pods"]
