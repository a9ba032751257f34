"""What is asked of one VM from several sides at once is done one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import POD
from bayplan.simulate.vms import VM, Migration, Node, PodManager
from bayplan.testing import fake_cluster


class _Slow(EmbeddedCluster):
    """A cluster that lets others have their turn before and after it makes something, as one over the network does."""

    async def create(self, *given: Any, **more: Any) -> Any:
        await _others()
        made = await super().create(*given, **more)
        await _others()
        return made


async def _others() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def cluster() -> EmbeddedCluster:
    found = fake_cluster()
    found.__class__ = _Slow
    return found


@pytest.fixture
def pods(cluster: EmbeddedCluster) -> Iterator[PodManager]:
    with PodManager(backend=cluster) as manager:
        manager.ensure_nodes([Node("n1"), Node("n2")])
        yield manager


def _present(cluster: EmbeddedCluster) -> list[str]:
    return [item.name for item in cluster.world.store.objects(POD)]


@pytest.mark.parametrize("first", [pytest.param(True, id="asked for first"), pytest.param(False, id="brought in line")])
def test_a_vm_that_is_asked_for_while_all_are_brought_in_line_gets_one_pod(
    first: bool, pods: PodManager, cluster: EmbeddedCluster
) -> None:
    vm, placing = VM("vm", 0.1, 0.1), pods._placing

    async def both() -> None:
        work = [placing.ensure_pod(vm, ""), placing.sync([vm])]
        await asyncio.gather(*(work if first else reversed(work)))

    pods._thread.call(both())
    assert _present(cluster) == [vm.pod_name]


def test_a_vm_of_another_size_that_is_asked_for_meanwhile_is_replaced(
    pods: PodManager, cluster: EmbeddedCluster
) -> None:
    small, large, placing = VM("vm", 0.1, 0.1), VM("vm", 0.2, 0.1), pods._placing

    async def both() -> dict[str, int]:
        made, counts = await asyncio.gather(placing.ensure_pod(small, ""), placing.sync([large]))
        assert made[0] != large.pod_name
        return counts

    assert pods._thread.call(both()) == {"created": 0, "deleted": 0, "updated": 1}
    assert _present(cluster) == [large.pod_name]


def test_a_migration_under_way_is_let_finish(pods: PodManager, cluster: EmbeddedCluster) -> None:
    vm, placing = VM("vm", 0.1, 0.1), pods._placing
    pods.create_pod(vm, "n1")

    async def in_the_midst() -> dict[str, int]:
        while len(pods.mirror.of("vm")) < 2:  # noqa: ASYNC110 - the mirror tells nobody
            await asyncio.sleep(0)
        return await placing.sync([vm])

    async def both() -> tuple[Migration, dict[str, int]]:
        return await asyncio.gather(pods._migrating.migrate(vm, "n1", only="n2"), in_the_midst())

    moved, counts = pods._thread.call(both())
    assert (moved.moved, moved.chosen, vm.scheduled_node) == (True, "n2", "n2")
    assert counts == {"created": 0, "deleted": 0, "updated": 0}
    assert _present(cluster) == [vm.pod_name]


def test_a_vm_that_is_removed_while_it_is_made_leaves_nothing(pods: PodManager, cluster: EmbeddedCluster) -> None:
    vm, placing = VM("vm", 0.1, 0.1), pods._placing

    async def both() -> int:
        _, had = await asyncio.gather(placing.ensure_pod(vm, ""), placing.remove_vm("vm"))
        return had

    assert pods._thread.call(both()) == 1
    assert _present(cluster) == []
    assert placing._owners == {}
