"""Twins of the past: the ledger's GPU pods and nodes, at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.cluster.kinds import NODE, POD
from bayplan.ledger.following import Following
from bayplan.ledger.questions.asking import open_ledger
from bayplan.ledger.rows import Row
from bayplan.ledger.store.sql import open_store
from bayplan.model.clock import Instant
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.scheduling.profiles import default_profile
from bayplan.simulate.twin.capacity import how_many, searching
from bayplan.simulate.twin.filling import twin_of
from bayplan.simulate.twin.from_ledger import ClusterNotNamedError, read_ledger
from bayplan.simulate.twin.questions import overview
from bayplan.simulate.twin.snapshot import Snapshot
from bayplan.testing import fake_cluster, pod, priority_class
from tests.ledger.books import hour, node, offered, roomy, took, version, written
from tests.ledger.books import pod as row
from tests.ledger.databases import prepared
from tests.simulate.twin.clusters import gpu_node


async def a_ledger(path: Path) -> tuple[str, Instant]:
    """A ledger in which `early` is gone and `late` has come after the time that is told."""
    url = await prepared(f"sqlite:///{path}")
    store = await open_store(url)
    cluster = fake_cluster(gpu_node("a"), gpu_node("b"))
    following = await Following.begin(cluster, store)
    await cluster.advance(5)
    await pod("early").requests(gpu=4).create(cluster)
    await pod("wide").requests(gpu=9).create(cluster)
    await cluster.advance(60)
    await following.flush()
    then = cluster.clock.now()
    await cluster.advance(1)
    await cluster.delete(POD, "early", "default", grace=0)
    await cluster.advance(10)
    await pod("late").requests(gpu=8).create(cluster)
    await cluster.advance(60)
    await following.flush()
    await store.close()
    return url, then


async def test_the_cluster_as_it_was(tmp_path: Path) -> None:
    url, then = await a_ledger(tmp_path / "day.db")
    store = await open_ledger(url)
    try:
        snapshot = await read_ledger(store, then, None, "day")
    finally:
        await store.close()
    places = {item.name: item.view(Pod).spec.node_name for item in snapshot.of(POD)}
    assert places.keys() == {"early", "wide"}
    assert places["early"]
    assert not places["wide"]
    assert [item.name for item in snapshot.of(NODE)] == ["a", "b"]
    found = overview(snapshot, default_profile())
    assert {each.devices: fit.number for each, fit in found.gpus} == {1: 12, 2: 6, 4: 3, 8: 1}
    assert snapshot.notes
    twin = twin_of(snapshot)
    await twin.advance(60)
    assert {item.name: item.view(Pod).spec.node_name for item in twin.world.store.objects(POD)} == places


async def _told(folder: Path, *rows: Row) -> Snapshot:
    """What a ledger of these rows knows of ten o'clock."""
    store = await written(str(folder / "day.db"), [*rows])
    try:
        return await read_ledger(store, hour(10), None, "day")
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("ready", "schedulable", "updated", "found"),
    [
        pytest.param(True, True, 5, ("True", False), id="a node that is well"),
        pytest.param(False, True, 5, ("False", False), id="one that is not ready"),
        pytest.param(True, False, 5, ("True", True), id="one that is cordoned"),
        pytest.param(False, False, 10, ("False", True), id="both, as of that very instant"),
        pytest.param(False, False, 11, ("True", False), id="both, but later: taken to have been well"),
    ],
)
async def test_how_nodes_were(
    ready: bool, schedulable: bool, updated: int, found: tuple[str, bool], tmp_path: Path
) -> None:
    last = node("a", "A100", ready=ready, schedulable=schedulable, updated_at=hour(updated))
    snapshot = await _told(tmp_path, last)
    (there,) = (item.view(Node) for item in snapshot.of(NODE))
    assert (there.status.conditions[0].status, there.spec.unschedulable) == found


@pytest.mark.parametrize(
    ("hurdle", "found"),
    [
        pytest.param("", ("True", False), id="well"),
        pytest.param("cordoned", ("True", True), id="cordoned"),
        pytest.param("not ready, cordoned", ("False", True), id="neither ready nor for pods"),
    ],
)
async def test_how_a_node_with_gpus_was_is_known_of_any_time(
    hurdle: str, found: tuple[str, bool], tmp_path: Path
) -> None:
    late = node("a", "A100", ready=not hurdle, updated_at=hour(20))
    snapshot = await _told(tmp_path, late, roomy("a", hour(5), hour(15), hurdle), roomy("a", hour(15), None, "late"))
    (there,) = (item.view(Node) for item in snapshot.of(NODE))
    assert (there.status.conditions[0].status, there.spec.unschedulable) == found


async def test_what_a_node_had_beside_its_gpus_and_what_pods_without_gpus_took_of_it(tmp_path: Path) -> None:
    trainer = row("trainer", gpu_allocated=2000, node_name="a")
    snapshot = await _told(
        tmp_path,
        *(node("a", "A100"), offered("a", hour(0)), roomy("a", hour(0), cpu=64_000, memory=256 << 30, pods=20)),
        *(trainer, *version(trainer, hour(1), 1, "Running", "a"), took("trainer", hour(1), cpu=8000, node="a")),
        *(took("web", hour(2), cpu=60_000, node="a"), took("gone", hour(2), hour(9), node="a")),
        *(took("later", hour(11), node="a"), took("elsewhere", hour(2), node="no-more")),
    )
    (there,) = (item.view(Node) for item in snapshot.of(NODE))
    offer = {"cpu": "64000m", "memory": str(256 << 30), "pods": "20", "nvidia.com/gpu": "8"}
    assert offer.items() <= there.status.allocatable.items()
    assert [(item.name, item.view(Pod).spec.node_name) for item in snapshot.of(POD)] == [("trainer", "a"), ("web", "a")]
    fits = {
        cores: how_many(snapshot.state(), searching(default_profile()), pod().requests(cpu=cores, gpu=1).view()).number
        for cores in (1, 4, 5)
    }
    assert fits == {1: 4, 4: 1, 5: 0}
    assert len(snapshot.notes) == 1

    twin = twin_of(snapshot)
    await priority_class("urgent", 1000).create(twin)
    await pod("urgent").requests(cpu=32, gpu=1).prioritized("urgent").create(twin)
    await twin.advance(600)
    places = {item.name: item.view(Pod).spec.node_name for item in twin.world.store.objects(POD)}
    assert places == {"trainer": "a", "web": "a", "urgent": ""}


async def test_where_nothing_tells_what_nodes_had_gpus_alone_decide_and_that_is_said(tmp_path: Path) -> None:
    snapshot = await _told(tmp_path, node("a", "A100"), node("b", "A100"), offered("a", hour(0)), roomy("b", hour(0)))
    assert how_many(snapshot.state(), searching(default_profile()), pod().requests(cpu=999, gpu=1).view()).number == 8
    assert snapshot.notes[1] == "of 1 of 2 nodes cores and memory are not known, so GPUs alone decide there"


async def test_a_ledger_without_clusters_has_no_twin(tmp_path: Path) -> None:
    store = await open_store(await prepared(f"sqlite:///{tmp_path / 'none.db'}"))
    try:
        with pytest.raises(ClusterNotNamedError, match="0 clusters"):
            await read_ledger(store, Instant(0), None, "none")
    finally:
        await store.close()
