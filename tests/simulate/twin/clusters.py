"""Small clusters for twins, in virtual time, and what happens on them as a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.store import Change
from bayplan.simulate.recording.file import Entry, Writer
from bayplan.simulate.twin.kinds import ALL
from bayplan.simulate.twin.snapshot import Snapshot, read_cluster
from bayplan.testing import deployment, fake_cluster, job, node, pod, stateful_set
from bayplan.testing.builder import Manifest

GPU_MODEL = {"nvidia.com/gpu.product": "H100"}


def gpu_node(name: str, gpus: int = 8) -> Manifest[Any]:
    """A node of 32 cores with GPUs."""
    hostname = {"kubernetes.io/hostname": name}
    return node(name).offers(cpu=32, memory="256Gi", gpu=gpus).labelled({**GPU_MODEL, **hostname})


async def busy(*more: Manifest[Any]) -> EmbeddedCluster:
    """Three nodes with a Deployment, a StatefulSet, a Job, and a pod that fits nowhere."""
    cluster = fake_cluster(
        gpu_node("a"),
        gpu_node("b"),
        gpu_node("c"),
        deployment("web").replicas(4).requests(cpu=1, gpu=1),
        stateful_set("db").replicas(2).requests(cpu=2),
        job("train").requests(cpu=4, gpu=4),
        pod("big").requests(cpu=64),
        *more,
    )
    await cluster.advance(10)
    return cluster


async def snapshot_of(cluster: EmbeddedCluster) -> Snapshot:
    """What a twin is made of."""
    return await read_cluster(cluster, "test", cluster.clock.now())


class Tape:
    """Writes what happens on an embedded cluster, at the very instant, as a recorder would."""

    def __init__(self, cluster: EmbeddedCluster, path: Path) -> None:
        self._cluster = cluster
        self.writer = Writer(path, "test", cluster.clock.now())
        cluster.world.store.listeners.append(self._note)

    def __enter__(self) -> Tape:
        self.writer.__enter__()
        store = self._cluster.world.store
        for kind in ALL:
            for item in store.objects(kind):
                self.writer.add(Entry(self._cluster.clock.now(), "ADDED", item))
        self.writer.add(Entry(self._cluster.clock.now(), "SYNCED"))
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.add(Entry(self._cluster.clock.now(), "END"))
        self.writer.__exit__(None, None, None)
        self._cluster.world.store.listeners.remove(self._note)

    def _note(self, change: Change) -> None:
        if change.kind in ALL:
            self.writer.add(Entry(self._cluster.world.now, change.type.value, change.new))
