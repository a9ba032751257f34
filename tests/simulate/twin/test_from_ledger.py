"""Twins of the past: the ledger's GPU pods and nodes, at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.cluster.kinds import NODE, POD
from bayplan.ledger.following import Following
from bayplan.ledger.questions.asking import open_ledger
from bayplan.ledger.store.sql import open_store
from bayplan.model.clock import Instant
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.scheduling.profiles import default_profile
from bayplan.simulate.twin.filling import twin_of
from bayplan.simulate.twin.from_ledger import ClusterNotNamedError, read_ledger
from bayplan.simulate.twin.questions import overview
from bayplan.testing import fake_cluster, pod
from tests.ledger.books import hour, node, written
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
    row = node("a", "A100", ready=ready, schedulable=schedulable, updated_at=hour(updated))
    store = await written(str(tmp_path / "day.db"), [row])
    try:
        snapshot = await read_ledger(store, hour(10), None, "day")
    finally:
        await store.close()
    (there,) = (item.view(Node) for item in snapshot.of(NODE))
    assert (there.status.conditions[0].status, there.spec.unschedulable) == found


async def test_a_ledger_without_clusters_has_no_twin(tmp_path: Path) -> None:
    store = await open_store(await prepared(f"sqlite:///{tmp_path / 'none.db'}"))
    try:
        with pytest.raises(ClusterNotNamedError, match="0 clusters"):
            await read_ledger(store, Instant(0), None, "none")
    finally:
        await store.close()
