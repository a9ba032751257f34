"""What only a fake can do: fail on demand, lose groups, and say what it is told."""

from __future__ import annotations

import errno

import pytest

from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.port import (
    Bandwidth,
    Counters,
    Group,
    GroupGoneError,
    Pressure,
    UnsupportedError,
    WriteRefusedError,
)

versions = pytest.mark.parametrize("version", [1, 2])
QUOTA_FILE = {1: "cpu.cfs_quota_us", 2: "cpu.max"}


def keep_changing(group: Group) -> None:
    for quota in range(50_000, 50_012):
        group.set_bandwidth(Bandwidth(quota))


@versions
@pytest.mark.parametrize("number", [errno.EBUSY, errno.EINVAL, errno.EACCES, errno.EROFS])
def test_a_refused_write_names_file_value_and_errno(version: int, number: int) -> None:
    tree = FakeTree(version)
    group = tree.create("/g")
    tree.fail("/g", QUOTA_FILE[version], number)
    with pytest.raises(
        WriteRefusedError, match=rf'{QUOTA_FILE[version]}: .* "50000.*": {errno.errorcode[number]}'
    ) as error:
        group.set_bandwidth(Bandwidth(50_000))
    assert error.value.hint
    tree.heal()
    group.set_bandwidth(Bandwidth(50_000))
    assert group.bandwidth() == Bandwidth(50_000)


@versions
def test_a_group_may_vanish_between_two_accesses(version: int) -> None:
    tree = FakeTree(version)
    for after in range(1, 12):
        group = tree.create("/g")
        tree.vanish("/g", after=after)
        with pytest.raises(GroupGoneError):
            keep_changing(group)


@versions
def test_a_device_that_is_gone_is_a_group_that_is_gone(version: int) -> None:
    tree = FakeTree(version)
    group = tree.create("/g")
    tree.fail("/g", "cpu.stat", errno.ENODEV, reading=True)
    with pytest.raises(GroupGoneError):
        group.counters()


@versions
def test_a_walk_leaves_out_what_vanished(version: int) -> None:
    tree = FakeTree(version)
    tree.create("/a/b")
    tree.create("/c")
    walk = tree.walk()
    assert next(walk).path == "/"
    tree.vanish("/a")
    assert [each.path for each in walk] == ["/c"]


@versions
def test_an_old_kernel_has_no_burst(version: int) -> None:
    tree = FakeTree(version)
    group = tree.create("/g")
    file = {1: "cpu.cfs_burst_us", 2: "cpu.max.burst"}[version]
    tree.fail("/g", file, errno.ENOENT)
    tree.fail("/g", file, errno.ENOENT, reading=True)
    group.set_bandwidth(Bandwidth(50_000))
    assert group.bandwidth() == Bandwidth(50_000)
    with pytest.raises(UnsupportedError, match="burst"):
        group.set_bandwidth(Bandwidth(60_000, 100_000, 1_000))
    assert group.bandwidth() == Bandwidth(50_000), "nothing of it stays"


@versions
def test_counters_and_memory_say_what_they_are_told(version: int) -> None:
    tree = FakeTree(version)
    group = tree.create("/g")
    counters = Counters(10, 3, 4_000_000, 2, 1_000_000, 9_000_000)
    tree.set_counters("/g", counters)
    tree.set_memory_usage("/g", 12_345)
    assert (group.counters(), group.memory_usage()) == (counters, 12_345)


def test_pressure_says_what_it_is_told() -> None:
    tree = FakeTree(2)
    group = tree.create("/g")
    tree.set_pressure("/g", Pressure(1.5, 10, 0.25, 4))
    assert group.pressure() == Pressure(1.5, 10, 0.25, 4)


def test_version_1_refuses_a_memory_limit_below_what_is_in_use() -> None:
    tree = FakeTree(1)
    group = tree.create("/g")
    tree.set_memory_usage("/g", 1 << 20)
    with pytest.raises(WriteRefusedError, match="EBUSY") as refused:
        group.set_memory_limit(1 << 19)
    assert "in use" in refused.value.hint


@versions
def test_a_process_that_exits_leaves_its_group(version: int) -> None:
    tree = FakeTree(version)
    group = tree.create("/g")
    pid = tree.spawn("/g")
    assert group.processes() == (pid,)
    tree.exit(pid)
    tree.remove("/g")
