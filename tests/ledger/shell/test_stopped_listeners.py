"""What a listener brought that is stopped before it is read."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.cluster.kinds import POD, Kind
from bayplan.cluster.live.reflector import Batch
from bayplan.cluster.live.reflector_core import Policy
from bayplan.ledger.listeners import Timing
from bayplan.ledger.owners import Watch
from bayplan.ledger.recording import Recording
from bayplan.ledger.status.kinds import GroupKind
from bayplan.ledger.store.port import Remembered
from bayplan.ledger.streams import Item, Stream, Streams
from bayplan.model.clock import SECOND, Instant, VirtualClock
from tests.ledger.shell.scenes import CLUSTER, gpu_cluster

JOBS = GroupKind("batch", "Job")


async def nothing_yet(_api_version: str, _name: str) -> Kind | None:
    await asyncio.Event().wait()
    return None


async def test_batches_of_a_stopped_listener_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, recording = VirtualClock(), Recording(CLUSTER)
    wanted = {JOBS: Watch("batch/v1", "Job", whole=True)}
    monkeypatch.setattr(recording.owners, "kinds", lambda: wanted)
    streams = Streams(
        await gpu_cluster(),
        recording,
        Remembered(),
        nothing_yet,
        clock=clock,
        stamp=clock.now,
        policy=Policy(),
        timing=Timing(),
    )
    streams.settle()
    jobs, pods = streams.owners[JOBS], Stream(kind=POD)
    for number, stream in enumerate((pods, jobs, pods, jobs, pods)):
        streams.inbox.put_nowait(Item(stream, Batch((), str(number)), clock.now()))
    wanted.clear()
    clock.advance_to(Instant(clock.now() + 11 * SECOND))
    streams.settle()
    assert JOBS not in streams.owners
    left = [streams.inbox.get_nowait() for _ in range(streams.inbox.qsize())]
    assert [(item.stream.kind.name, getattr(item.news, "revision", "")) for item in left] == [
        ("Pod", "0"),
        ("Pod", "2"),
        ("Pod", "4"),
    ]
    await streams.end()
