"""The three ways of deleting an owner, and what happens to whom when owners are missing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.cluster.embedded.controllers.garbage_collector import GarbageCollector
from bayplan.cluster.embedded.deletion import DeleteOptions, Propagation
from bayplan.cluster.embedded.world import World
from bayplan.cluster.kinds import CONFIG_MAP, DEPLOYMENT, POD, REPLICA_SET
from bayplan.cluster.objects import Object
from tests.cluster.controllers.stage import START, Stage, workload


def owner_reference(owner: Object, **more: Any) -> dict[str, Any]:
    """How a dependent names an owner."""
    return {
        "apiVersion": owner.kind.api_version,
        "kind": owner.kind.name,
        "name": owner.name,
        "uid": owner.uid,
        **more,
    }


class Attic(World):
    """A world of ConfigMaps that own each other."""

    def __init__(self) -> None:
        super().__init__([GarbageCollector()], seed=1, start=START)

    def put(self, name: str, *owners: dict[str, Any], finalizers: tuple[str, ...] = ()) -> Object:
        """Store a ConfigMap."""
        meta = {"name": name, "ownerReferences": list(owners), "finalizers": list(finalizers)}
        made = self.server.create(CONFIG_MAP, "default", {"metadata": meta}).object
        self.settle()
        return made

    def take(self, name: str, propagation: Propagation | None = None) -> None:
        """Delete a ConfigMap."""
        self.server.delete(CONFIG_MAP, "default", name, DeleteOptions(propagation=propagation))
        self.settle()

    def change(self, name: str, **meta: Any) -> None:
        """Patch a ConfigMap's metadata."""
        body = msgspec.json.encode({"metadata": meta})
        self.server.patch(CONFIG_MAP, "default", name, "application/merge-patch+json", body)
        self.settle()

    def names(self) -> list[str]:
        """What is left."""
        return [item.name for item in self.store.objects(CONFIG_MAP, "default")]


def test_dependents_go_after_their_owner_in_the_background() -> None:
    attic = Attic()
    top = attic.put("top")
    middle = attic.put("middle", owner_reference(top))
    attic.put("bottom", owner_reference(middle))
    attic.take("top", "Background")
    assert attic.names() == []


def test_orphans_stay_and_forget_their_owner() -> None:
    attic = Attic()
    top = attic.put("top")
    attic.put("child", owner_reference(top))
    attic.take("top", "Orphan")
    assert attic.names() == ["child"]
    assert attic.server.get(CONFIG_MAP, "default", "child").meta.owner_references == ()


def test_in_the_foreground_an_owner_goes_after_those_that_block_it() -> None:
    attic = Attic()
    top = attic.put("top")
    attic.put("child", owner_reference(top, blockOwnerDeletion=True), finalizers=("example.com/hold",))
    attic.take("top", "Foreground")
    assert attic.names() == ["child", "top"]
    held = attic.server.get(CONFIG_MAP, "default", "child")
    assert held.meta.deletion_timestamp is not None
    attic.server.patch(
        CONFIG_MAP, "default", "child", "application/merge-patch+json", b'{"metadata":{"finalizers":null}}'
    )
    attic.settle()
    assert attic.names() == []


def test_a_dependent_that_does_not_block_is_deleted_but_not_waited_for() -> None:
    attic = Attic()
    top = attic.put("top")
    attic.put("child", owner_reference(top), finalizers=("example.com/hold",))
    attic.take("top", "Foreground")
    assert attic.names() == ["child"]


def test_the_foreground_reaches_down_through_all_generations() -> None:
    attic = Attic()
    top = attic.put("top")
    middle = attic.put("middle", owner_reference(top, blockOwnerDeletion=True))
    attic.put("bottom", owner_reference(middle, blockOwnerDeletion=True), finalizers=("example.com/hold",))
    attic.take("top", "Foreground")
    assert attic.names() == ["bottom", "middle", "top"]
    assert "foregroundDeletion" in attic.server.get(CONFIG_MAP, "default", "middle").meta.finalizers


def test_an_object_with_another_owner_stays_and_forgets_the_lost_one() -> None:
    attic = Attic()
    one, other = attic.put("one"), attic.put("other")
    attic.put("child", owner_reference(one), owner_reference(other))
    attic.take("one")
    assert attic.names() == ["child", "other"]
    (left,) = attic.server.get(CONFIG_MAP, "default", "child").meta.owner_references
    assert left.name == "other"


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param({"uid": "another"}, ["top"], id="an owner with another uid is another owner"),
        pytest.param({"name": "nobody"}, ["top"], id="a name that nobody bears is no owner"),
        pytest.param({"kind": "Widget"}, ["child", "top"], id="of an unknown kind nothing is known"),
        pytest.param({"apiVersion": "example.com/v7"}, ["child", "top"], id="nor of an unknown version"),
        pytest.param({}, ["child", "top"], id="an owner that is there keeps it"),
    ],
)
def test_new_objects_are_judged_by_their_owners(change: dict[str, str], left: list[str]) -> None:
    attic = Attic()
    attic.put("child", owner_reference(attic.put("top")) | change)
    assert attic.names() == left


def test_an_owner_that_came_again_under_the_same_name_does_not_count() -> None:
    attic = Attic()
    top = attic.put("top")
    attic.put("child", owner_reference(top), finalizers=("example.com/hold",))
    attic.server.delete(CONFIG_MAP, "default", "top")
    attic.put("top")
    assert attic.server.get(CONFIG_MAP, "default", "child").meta.deletion_timestamp is not None


def test_two_that_own_each_other_go_in_the_foreground_all_the_same() -> None:
    attic = Attic()
    one = attic.put("one")
    other = attic.put("other", owner_reference(one, blockOwnerDeletion=True))
    attic.change("one", ownerReferences=[owner_reference(other, blockOwnerDeletion=True)])
    attic.take("one", "Foreground")
    assert attic.names() == []


@pytest.mark.parametrize(
    ("propagation", "left"),
    [
        pytest.param("Background", (0, 0), id="in the background everything goes"),
        pytest.param("Foreground", (0, 0), id="in the foreground everything goes"),
        pytest.param("Orphan", (1, 2), id="orphaned, ReplicaSet and pods stay"),
    ],
)
def test_a_deployment_and_what_it_made(propagation: Propagation, left: tuple[int, int]) -> None:
    stage = Stage(GarbageCollector())
    stage.create(DEPLOYMENT, "web", workload(2))
    stage.server.delete(DEPLOYMENT, "default", "web", DeleteOptions(propagation=propagation))
    stage.settle()
    assert (stage.store.count(REPLICA_SET, "default"), stage.store.count(POD, "default")) == left
    assert stage.store.get(DEPLOYMENT, "default", "web") is None
