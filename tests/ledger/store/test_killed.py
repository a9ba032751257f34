"""A writer that is killed in the middle of its commits leaves whole batches or nothing of them."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from bayplan.ledger.rows import GpuPod, GpuPodsEvent, PodSnapshot, StreamPosition
from bayplan.ledger.store.migrating import migrate
from bayplan.ledger.store.reading import TABLES, fetch
from bayplan.ledger.store.sql import open_store
from bayplan.model.clock import Instant
from tests.ledger.store.made import batch, event, pod, snapshot

ROWS_A_BATCH = 300


async def write_for_ever(url: str) -> None:
    """Batch n holds version n of each pod, an event and a snapshot of each, and the position n."""
    store = await open_store(url)
    uids = [f"pod-{i}" for i in range(ROWS_A_BATCH)]
    start = (await store.remembered("c")).streams.get("pods", "0")
    n = int(start)
    while True:
        n += 1
        place = StreamPosition(cluster="c", kind="pods", resource_version=n, revision=str(n), at=Instant(n))
        versions = (row for uid in uids for row in snapshot("c", uid, n, n))
        rows = batch(*(pod("c", uid, n) for uid in uids), *(event("c", uid, n) for uid in uids), *versions, place)
        sys.stdout.write(".")
        sys.stdout.flush()
        await store.commit(rows)


@pytest.mark.slow
async def test_kill_9_leaves_all_of_a_batch_or_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    await migrate(url)
    chance = random.Random(7)
    for _ in range(6):
        kill_in_the_middle(url, chance)
        await check(url)


def kill_in_the_middle(url: str, chance: random.Random) -> None:
    """Start a writer, and kill it when it is about to commit, or in the middle of it."""
    command = [sys.executable, "-m", "tests.ledger.store.test_killed", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as writer:
        assert writer.stdout is not None
        writer.stdout.read(chance.randint(1, 5))
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(chance.uniform(0, 0.05))
        writer.kill()


async def check(url: str) -> None:
    """Whatever the last position is, everything up to it is there, and nothing beyond."""
    store = await open_store(url)
    n = int((await store.remembered("c")).streams.get("pods", "0"))
    state = TABLES[GpuPod].c
    versions = await fetch(store, sa.select(state.resource_version, sa.func.count()).group_by(state.resource_version))
    assert versions == ([(n, ROWS_A_BATCH)] if n else [])
    for kind in (GpuPodsEvent, PodSnapshot):
        ((count,),) = await fetch(store, sa.select(sa.func.count()).select_from(TABLES[kind]))
        assert count == n * ROWS_A_BATCH
    ((sound,),) = await fetch(store, sa.select(sa.column("quick_check")).select_from(sa.func.pragma_quick_check()))
    assert sound == "ok"
    await store.close()


if __name__ == "__main__":
    asyncio.run(write_for_ever(sys.argv[1]))
