"""A VM has one pod, however often it is asked for; what is too much is removed, and counted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import POD
from bayplan.model.pods import Pod
from bayplan.simulate.vms import VM, Node, PodManager
from bayplan.simulate.vms.launcher import FORCED, launcher
from bayplan.testing import fake_cluster


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return fake_cluster()


@pytest.fixture
def pods(cluster: EmbeddedCluster) -> Iterator[PodManager]:
    with PodManager(backend=cluster) as manager:
        manager.ensure_nodes([Node("n1"), Node("n2")])
        yield manager


def present(cluster: EmbeddedCluster) -> list[Pod]:
    return [item.view(Pod) for item in cluster.world.store.objects(POD)]


def test_a_vm_that_has_a_pod_keeps_it(pods: PodManager, cluster: EmbeddedCluster) -> None:
    vm = VM("vm", 0.1, 0.1)
    name = pods.create_pod(vm)
    node = pods.get_pod_node_assignment("vm")

    again = VM("vm", 0.1, 0.1)
    assert pods.create_pod(again) == again.pod_name == name
    assert again.scheduled_node == node
    assert [pod.metadata.name for pod in present(cluster)] == [name]


def test_forced_to_where_it_is_it_keeps_it_too(pods: PodManager, cluster: EmbeddedCluster) -> None:
    vm = VM("vm", 0.1, 0.1)
    name = pods.create_pod(vm, "n2")

    assert pods.create_pod(vm, "n2") == pods.create_pod(vm) == name
    assert (vm.scheduled_node, len(present(cluster))) == ("n2", 1)


def test_forced_elsewhere_it_has_another_one_and_the_first_goes(pods: PodManager, cluster: EmbeddedCluster) -> None:
    vm = VM("vm", 0.1, 0.1)
    first = pods.create_pod(vm, "n1")

    second = pods.create_pod(vm, "n2")

    (left,) = present(cluster)
    assert second != first
    assert (left.metadata.name, left.spec.node_name, vm.scheduled_node) == (second, "n2", "n2")
    assert left.metadata.annotations[FORCED] == "n2"
    assert pods.get_pod_node_assignment("vm") == "n2"


def test_two_that_ask_at_once_get_the_same_one(pods: PodManager, cluster: EmbeddedCluster) -> None:
    vm, placing = VM("vm", 0.1, 0.1), pods._placing
    create = placing.create

    async def slowly(*given: VM, node_name: str = "") -> str:
        await asyncio.sleep(0)  # as a request over the network lets others have their turn
        return await create(*given, node_name=node_name)

    async def both() -> Sequence[tuple[str, str]]:
        return await asyncio.gather(placing.ensure_pod(vm, ""), placing.ensure_pod(vm, ""))

    placing.create = slowly  # type: ignore[method-assign, assignment]  # only for a while
    found = pods._thread.call(both())

    assert len({*found}) == len(present(cluster)) == 1


def test_what_is_removed_of_a_vm_that_has_too_many_is_counted(pods: PodManager, cluster: EmbeddedCluster) -> None:
    keeps, grows = VM("keeps", 0.1, 0.1), VM("grows", 0.1, 0.1)
    for vm in (keeps, grows):
        for _ in range(3):  # as others may, or an earlier version did
            cluster.world.server.create(POD, "default", launcher(vm, pods.shape))
    grows.cpu_consumption = 0.2

    assert pods.sync_pods_with_vms([keeps, grows]) == {"created": 0, "deleted": 4, "updated": 1}
    assert pods.sync_pods_with_vms([keeps, grows]) == {"created": 0, "deleted": 0, "updated": 0}
    assert len(present(cluster)) == 2
