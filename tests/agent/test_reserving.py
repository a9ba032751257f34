"""Reservations as limits of groups, and their undoing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.agent.kubelet import OwnedByKubeletError
from bayplan.agent.reserving import Kept, Reserving, reservations_of
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.reservations import Reservations, writes
from bayplan.node.configuration import read_configuration
from bayplan.node.machine import Cpu, Machine, NumaNode, Topology
from bayplan.node.reservations import ReservationError

GIB = 1 << 30
MACHINE = Machine("four", Topology(tuple(Cpu(each, each, 0, 0, 0) for each in range(4))), (NumaNode(0, 16 * GIB),))
FLAGS = (
    "--system-reserved=cpu=500m,memory=1Gi",
    "--kube-reserved=cpu=500m,memory=2Gi",
    "--system-reserved-cgroup=/system",
    "--kube-reserved-cgroup=/runtime",
    "--enforce-node-allocatable=pods,system-reserved",
)


def _wanted(*more: str) -> Reservations:
    return reservations_of(read_configuration(None, [*FLAGS, *more]), MACHINE)


def test_a_reservation_that_is_not_enforced_counts_all_the_same() -> None:
    wanted = _wanted()
    assert [each.group for each in wanted.reserves] == ["/system", ""]
    assert wanted.pods_group == "/kubepods"


def test_pods_that_are_not_to_be_limited_are_not() -> None:
    wanted = reservations_of(
        read_configuration(None, [*FLAGS[:-1], "--enforce-node-allocatable=system-reserved"]), MACHINE
    )
    assert {each.group for each in writes(wanted)} == {"/system"}


def test_systemd_names_the_group_of_pods_its_own_way() -> None:
    assert _wanted("--cgroup-driver=systemd").pods_group == "/kubepods.slice"


def test_an_impossible_reservation_is_refused_with_the_numbers() -> None:
    with pytest.raises(ReservationError, match="capacity of 4"):
        _wanted("--kube-reserved=cpu=5")


async def _kept(tree: FakeTree, place: Path, *, write: bool, beside_kubelet: bool = True) -> list[Kept]:
    told: list[Kept] = []
    part = Reserving(tree, _wanted(), place / "reservations.journal", told.append, beside_kubelet=beside_kubelet)
    task = asyncio.create_task(part.run(write=write))
    await asyncio.sleep(0)
    if write and beside_kubelet:
        assert tree.group("/kubepods").memory_limit() == 13 * GIB
        assert tree.group("/system").memory_limit() == GIB
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        await task
    return told


@pytest.fixture
def tree() -> FakeTree:
    tree = FakeTree()
    tree.create("/system")
    return tree


async def test_limits_are_written_and_taken_back(tree: FakeTree, tmp_path: Path) -> None:
    told = await _kept(tree, tmp_path, write=True)

    assert all(each.written for each in told)
    assert tree.group("/system").memory_limit() is None
    assert [group.path for group in tree.walk("/kubepods")] == []


async def test_to_advise_is_to_say_and_to_write_nothing(tree: FakeTree, tmp_path: Path) -> None:
    told = await _kept(tree, tmp_path, write=False)

    assert [str(each.write) for each in told] == [
        f"/kubepods: memory limit {13 * GIB}",
        "/kubepods: cpu shares 3072",
        f"/system: memory limit {GIB}",
        "/system: cpu shares 512",
    ]
    assert tree.group("/system").memory_limit() is None


async def test_the_group_of_pods_is_the_kubelets_unless_told(tree: FakeTree, tmp_path: Path) -> None:
    with pytest.raises(OwnedByKubeletError):
        await _kept(tree, tmp_path, write=True, beside_kubelet=False)
    assert tree.group("/system").memory_limit() is None
