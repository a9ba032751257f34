"""Twins: what is read is what lives, and nothing moves that does not move in the cluster itself."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import DEPLOYMENT, JOB, NODE, POD, REPLICA_SET, Kind
from bayplan.cluster.objects import Object, Section
from bayplan.cluster.port import Page
from bayplan.model.clock import Instant
from bayplan.model.errors import Forbidden
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.simulate.recording.file import Entry, Writer
from bayplan.simulate.twin.filling import twin_of
from bayplan.simulate.twin.kinds import ALL, NEEDED
from bayplan.simulate.twin.snapshot import Snapshot, read_cluster, read_snapshot, write_snapshot
from tests.simulate.twin.clusters import busy, gpu_node, snapshot_of


def _places(cluster: EmbeddedCluster) -> dict[tuple[str, str], tuple[str, str, str]]:
    pods = ((item, item.view(Pod)) for item in cluster.world.store.objects(POD))
    return {item.key: (item.uid, view.spec.node_name, view.status.phase) for item, view in pods}


async def test_a_twin_has_the_same_pods_in_the_same_places_and_they_stay(tmp_path: Path) -> None:
    cluster = await busy()
    path = tmp_path / "prod.twin"
    write_snapshot(path, await snapshot_of(cluster))
    twin = twin_of(read_snapshot(path))
    assert _places(twin) == _places(cluster)
    await twin.advance(3600)
    assert _places(twin) == _places(cluster)


@pytest.mark.parametrize(
    ("types", "notes"),
    [
        pytest.param(("SYNCED", "END"), ("by hand",), id="a whole file has the notes that were made"),
        pytest.param(("SYNCED",), ("by hand",), id="one that was cut off later has all that was there"),
        pytest.param(
            (), ("by hand", "the file ends before all was read that was there"), id="one that was cut off before"
        ),
    ],
)
def test_a_file_that_lacks_objects_says_so(
    types: tuple[Literal["SYNCED", "END"], ...], notes: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "prod.twin"
    with Writer(path, "test", Instant(0), ["by hand"]) as file:
        for each in types:
            file.add(Entry(Instant(0), each))
    assert read_snapshot(path).notes == notes


async def test_a_twin_lives_its_own_life() -> None:
    cluster = await busy()
    twin = twin_of(await snapshot_of(cluster))
    await twin.scale(DEPLOYMENT, "web", "default", 6)
    await gpu_node("d").having("status.capacity.cpu", "96").having("status.allocatable.cpu", "96").create(twin)
    await twin.advance(60)
    assert len(_places(twin)) == len(_places(cluster)) + 2
    assert _places(twin)["default", "big"][1] == "d"
    assert _places(cluster)["default", "big"][1] == ""


async def test_a_node_that_is_not_ready_stays_so() -> None:
    cluster = await busy()
    stopped = {"metadata": {"annotations": {"bayplan.dev/kubelet": "stopped-at=2026-01-01T00:00:10Z"}}}
    await cluster.patch(NODE, stopped, "b")
    await cluster.advance(100)
    snapshot = await snapshot_of(cluster)
    bare = [_without_annotations(item) if item.kind is NODE else item for item in snapshot.objects]  # as in real life
    twin = twin_of(msgspec.structs.replace(snapshot, objects=tuple(bare)))
    await twin.advance(60)
    ready = {item.name: item.view(Node).status.conditions for item in twin.world.store.objects(NODE)}
    assert {name: [each.status for each in found if each.type == "Ready"] for name, found in ready.items()} == {
        "a": ["True"],
        "b": ["Unknown"],
        "c": ["True"],
    }


def _without_annotations(item: Object) -> Object:
    return Object(item.kind, msgspec.structs.replace(item.meta, annotations={}), item.sections, item.version)


class _Shy:
    """A cluster that lets nobody list some kinds."""

    def __init__(self, cluster: EmbeddedCluster, *hidden: Kind) -> None:
        self._cluster, self._hidden = cluster, hidden

    async def list(self, kind: Kind, namespace: str | None = None, **how: object) -> Page:
        if kind in self._hidden:
            raise Forbidden("no")
        return await self._cluster.list(kind, namespace, **how)  # type: ignore[arg-type]  # handed on as given


async def _read(cluster: EmbeddedCluster, *hidden: Kind) -> Snapshot:
    return await read_cluster(_Shy(cluster, *hidden), "shy", cluster.clock.now())  # type: ignore[arg-type]  # lists alone


async def test_with_nothing_but_nodes_and_pods_all_pods_stay_though_nobody_owns_them() -> None:
    cluster = await busy()
    snapshot = await _read(cluster, *(kind for kind in ALL if kind not in NEEDED))
    twin = twin_of(snapshot)
    await twin.advance(3600)
    assert _places(twin) == _places(cluster)
    assert len(snapshot.lacking) == len(ALL) - len(NEEDED)


async def test_a_deployment_whose_replica_sets_are_not_known_is_left_out() -> None:
    twin = twin_of(await _read(await busy(), REPLICA_SET))
    await twin.advance(60)
    assert not twin.world.store.count(DEPLOYMENT)
    assert twin.world.store.count(JOB)


@pytest.mark.parametrize("kind", [pytest.param(kind, id=f"without {kind.plural}") for kind in NEEDED])
async def test_without_nodes_or_pods_there_is_no_twin(kind: Kind) -> None:
    with pytest.raises(Forbidden, match=kind.plural):
        await _read(await busy(), kind)


async def test_an_image_that_the_kubelet_names_otherwise_restarts_nothing() -> None:
    cluster = await busy()
    snapshot = await snapshot_of(cluster)
    raw = b"".join(item.raw() + b"\n" for item in snapshot.objects if item.kind is POD)
    assert b"registry.example/app:1" in raw
    renamed = [_renamed(item) if item.kind is POD else item for item in snapshot.objects]
    twin = twin_of(msgspec.structs.replace(snapshot, objects=tuple(renamed)))
    await twin.advance(60)
    restarts = [
        status.restart_count
        for item in twin.world.store.objects(POD)
        for status in item.view(Pod).status.container_statuses
    ]
    assert not any(restarts)


def _renamed(item: Object) -> Object:
    status = item.sections["status"].raw.replace(b"registry.example/app:1", b"registry.example/app@sha256:0")
    return Object(item.kind, item.meta, {**item.sections, "status": Section(status)}, item.version)


async def test_a_twin_of_a_rollout_under_way_finishes_it() -> None:
    cluster = await busy()
    await cluster.patch(
        DEPLOYMENT,
        {"spec": {"template": {"metadata": {"annotations": {"again": "1"}}}}},
        "web",
        "default",
    )
    await cluster.advance(1)
    twin = twin_of(await snapshot_of(cluster))
    await twin.advance(120)
    status = (await twin.get(DEPLOYMENT, "web", "default")).doc()["status"]
    assert status["updatedReplicas"] == status["availableReplicas"] == 4
