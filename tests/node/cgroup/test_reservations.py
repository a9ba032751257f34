"""Reservations become limits as kubelet writes them, on fakes and on the kernel's own groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.journalled import JournalledTree
from bayplan.node.cgroup.reservations import (
    Amount,
    EnforcementError,
    Reservations,
    Reserved,
    What,
    Write,
    allocatable,
    enforce,
    writes,
)

from .test_journal import picture
from .worlds import World

GIB = 1 << 30
SYSTEM = Reserved("/system", Amount(500, GIB))
KUBE = Reserved("/kube", Amount(250, GIB // 2))
NODE = Reservations(Amount(4000, 8 * GIB), "/kubepods", (SYSTEM, KUBE))


def below(base: str, *, cpus: int = 0) -> Reservations:
    reserves = tuple(Reserved(base + each.group, each.amount, each.compressible_only) for each in NODE.reserves)
    return Reservations(NODE.capacity, base + NODE.pods_group, reserves, cpus)


def test_pods_get_what_is_left_and_the_reserves_their_own() -> None:
    assert [str(each) for each in writes(NODE)] == [
        f"/kubepods: memory limit {6 * GIB + GIB // 2}",
        "/kubepods: cpu shares 3328",
        f"/system: memory limit {GIB}",
        "/system: cpu shares 512",
        f"/kube: memory limit {GIB // 2}",
        "/kube: cpu shares 256",
    ]


@pytest.mark.parametrize(
    ("reserve", "expected"),
    [
        pytest.param(Reserved("", Amount(500, GIB)), [], id="a reserve that is not enforced counts only"),
        pytest.param(Reserved("/s", Amount(500)), [Write("/s", What.SHARES, 512)], id="no memory, no limit"),
        pytest.param(
            Reserved("/s", Amount(500, GIB), compressible_only=True),
            [Write("/s", What.SHARES, 512)],
            id="the compressible part only",
        ),
    ],
)
def test_a_reserve_is_enforced_as_far_as_it_says(reserve: Reserved, expected: list[Write]) -> None:
    wanted = Reservations(Amount(4000, 8 * GIB), "/kubepods", (reserve,))
    assert writes(wanted)[2:] == expected
    assert allocatable(wanted).cpu_milli == 3500


def test_more_than_there_is_cannot_be_reserved() -> None:
    with pytest.raises(EnforcementError, match="cpu_milli: 750 reserved of 600"):
        writes(Reservations(Amount(600, 8 * GIB), "/kubepods", (SYSTEM, KUBE)))


def test_reservations_are_enforced_and_undone(world: World, tmp_path: Path) -> None:
    tree, base = world.tree, world.base
    for name in ("system/daemon", "kube"):
        tree.create(f"{base}/{name}")
    tree.group(f"{base}/system/daemon").add(world.sleeper())
    before = picture(tree, base, effective=True)
    with JournalledTree.open(tree, tmp_path / "journal") as journalled:
        assert enforce(journalled, below(base, cpus=0b10)) == writes(below(base, cpus=0b10))
        system, pods = tree.group(f"{base}/system"), tree.group(f"{base}/kubepods")
        assert (system.weight(), system.memory_limit()) == (50 if tree.version == 1 else 59, GIB)
        assert pods.memory_limit() == 6 * GIB + GIB // 2
        assert tree.group(f"{base}/system/daemon").cpuset().effective_cpus == 0b10
        enforce(journalled, below(base, cpus=0b01))
        assert tree.group(f"{base}/system/daemon").cpuset().effective_cpus == 0b01, "other CPUs, all at once"
    assert picture(tree, base, effective=True) == before


def test_a_reserved_group_that_does_not_exist_is_refused_before_any_write(tmp_path: Path) -> None:
    fake = FakeTree(2)
    fake.create("/system")
    with (
        JournalledTree.open(fake, tmp_path / "journal") as tree,
        pytest.raises(EnforcementError, match="/kube does not exist"),
    ):
        enforce(tree, NODE)
    assert [each.path for each in fake.walk()] == ["/", "/system"]
