"""What every implementation of the port promises, tried on both fakes and on the kernel itself."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bayplan.node.cgroup.port import (
    Bandwidth,
    Counters,
    GroupGoneError,
    Partition,
    UnsupportedError,
    WriteRefusedError,
)
from bayplan.node.sets import mask_of

from .worlds import FileGroup, RealWorld, World, real_version, until

MIB = 1 << 20


@pytest.fixture
def group(world: World) -> FileGroup:
    return world.tree.create(f"{world.base}/g")


def test_this_suite_runs_on_version_2_somewhere() -> None:
    if real_version() != 2:
        pytest.skip("no control groups of version 2 on this machine: make test-cgroup2 brings one that has them")


def test_a_created_group_is_found_walked_and_removed(world: World) -> None:
    tree, base = world.tree, world.base
    made = tree.create(f"{base}/a/b")
    assert made.path == f"{base}/a/b"
    assert tree.create(f"{base}/a/b/").path == made.path, "creating again returns it as it is"
    tree.create(f"{base}/c")
    assert [each.path for each in tree.walk(base)] == [base, f"{base}/a", f"{base}/a/b", f"{base}/c"]
    tree.remove(made.path)
    tree.remove(made.path)
    assert [each.path for each in tree.walk(base)] == [base, f"{base}/a", f"{base}/c"]
    with pytest.raises(GroupGoneError, match="/a/b"):
        tree.group(made.path)


def test_a_group_with_children_is_not_removed(world: World) -> None:
    world.tree.create(f"{world.base}/a/b")
    with pytest.raises(WriteRefusedError, match="EBUSY"):
        world.tree.remove(f"{world.base}/a")


def test_a_group_with_a_process_is_not_removed(world: World, group: FileGroup) -> None:
    pid = world.sleeper()
    group.add(pid)
    assert group.processes() == (pid,)
    with pytest.raises(WriteRefusedError, match="EBUSY"):
        world.tree.remove(group.path)


def test_every_call_on_a_removed_group_says_that_it_is_gone(world: World, group: FileGroup) -> None:
    world.tree.remove(group.path)
    for call in (group.bandwidth, group.weight, group.cpuset, group.memory_limit, group.counters, group.processes):
        with pytest.raises(GroupGoneError):
            call()
    with pytest.raises(GroupGoneError):
        group.set_weight(50)
    with pytest.raises(GroupGoneError):
        group.set_bandwidth(Bandwidth(50_000))
    with pytest.raises(GroupGoneError):
        group.add(os.getpid())
    assert list(world.tree.walk(group.path)) == []


def test_a_new_group_has_the_kernels_defaults(world: World, group: FileGroup) -> None:
    parent = world.tree.group(world.base)
    assert group.bandwidth() == Bandwidth()
    assert group.weight() == 100
    assert group.memory_limit() is None
    assert group.counters() == Counters()
    assert group.processes() == ()
    assert group.cpuset().effective_cpus == parent.cpuset().effective_cpus
    assert group.cpuset().effective_mems == parent.cpuset().effective_mems
    assert group.cpuset().partition is Partition.MEMBER
    assert not group.frozen()


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param(Bandwidth(50_000), Bandwidth(20_000), id="the quota falls"),
        pytest.param(Bandwidth(50_000), Bandwidth(), id="the limit is lifted"),
        pytest.param(Bandwidth(), Bandwidth(150_000, 100_000, 150_000), id="a limit comes with as much burst"),
        pytest.param(Bandwidth(50_000, 100_000, 50_000), Bandwidth(10_000, 100_000, 5_000), id="quota and burst fall"),
        pytest.param(Bandwidth(10_000, 100_000, 5_000), Bandwidth(50_000, 100_000, 40_000), id="quota and burst rise"),
        pytest.param(Bandwidth(50_000), Bandwidth(100_000, 200_000), id="the period doubles, the ratio stays"),
        pytest.param(
            Bandwidth(100_000, 200_000), Bandwidth(25_000, 50_000, 10_000), id="the period falls, a burst comes"
        ),
        pytest.param(Bandwidth(None, 50_000), Bandwidth(1_000, 1_000_000), id="the least quota in the longest period"),
        pytest.param(Bandwidth(None, 100_000, 90_000), Bandwidth(50_000), id="a burst without a limit makes room"),
    ],
)
def test_bandwidth_goes_from_any_value_to_any_other(
    group: FileGroup, world: World, first: Bandwidth, then: Bandwidth
) -> None:
    for wanted in (first, then, first):
        group.set_bandwidth(wanted)
        assert group.bandwidth() == wanted


def test_bandwidth_changes_between_a_parent_and_a_child_with_the_same_limit(world: World) -> None:
    parent, child = world.tree.create(f"{world.base}/p"), world.tree.create(f"{world.base}/p/g/c")
    group = world.tree.group(f"{world.base}/p/g")
    for each in (parent, group, child):
        each.set_bandwidth(Bandwidth(50_000, 100_000))
    group.set_bandwidth(Bandwidth(100_000, 200_000, 30_000))
    assert group.bandwidth() == Bandwidth(100_000, 200_000, 30_000)


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(Bandwidth(50_000, 100_000, 60_000), id="more burst than quota"),
        pytest.param(Bandwidth(500), id="less than a millisecond"),
        pytest.param(Bandwidth(50_000, 2_000_000), id="a period above a second"),
        pytest.param(Bandwidth(50_000, 500), id="a period below a millisecond"),
    ],
)
def test_an_impossible_bandwidth_is_refused_and_leaves_the_old_one(group: FileGroup, wanted: Bandwidth) -> None:
    before = Bandwidth(40_000, 100_000, 10_000)
    group.set_bandwidth(before)
    with pytest.raises(WriteRefusedError, match="EINVAL") as refused:
        group.set_bandwidth(wanted)
    assert refused.value.hint
    assert group.bandwidth() == before


def test_version_1_refuses_a_child_above_its_parent_and_version_2_takes_it(world: World) -> None:
    parent, child = world.tree.create(f"{world.base}/p"), world.tree.create(f"{world.base}/p/c")
    parent.set_bandwidth(Bandwidth(50_000))
    if world.tree.version == 2:
        child.set_bandwidth(Bandwidth(60_000))
        assert child.bandwidth() == Bandwidth(60_000)
        return
    with pytest.raises(WriteRefusedError, match=r'cpu.cfs_quota_us: the kernel refuses "60000": EINVAL') as refused:
        child.set_bandwidth(Bandwidth(60_000))
    assert "parent" in refused.value.hint
    child.set_bandwidth(Bandwidth(50_000))
    with pytest.raises(WriteRefusedError, match="EINVAL"):
        parent.set_bandwidth(Bandwidth(40_000))


@pytest.mark.parametrize("weight", [1, 2, 39, 100, 101, 9_999, 10_000])
def test_a_weight_is_read_back_as_it_was_set(group: FileGroup, weight: int) -> None:
    group.set_weight(weight)
    assert group.weight() == weight


@pytest.mark.parametrize("weight", [0, 10_001])
def test_a_weight_out_of_range_is_refused(group: FileGroup, weight: int) -> None:
    with pytest.raises(WriteRefusedError, match="ERANGE"):
        group.set_weight(weight)
    assert group.weight() == 100


def test_cpus_are_set_and_inherited(world: World, group: FileGroup) -> None:
    whole = group.cpuset()
    last = 1 << (whole.effective_cpus.bit_length() - 1)
    group.set_cpuset(last, 1)
    assert (group.cpuset().cpus, group.cpuset().mems) == (last, 1)
    assert world.tree.create(f"{group.path}/below").cpuset().effective_cpus == last
    group.set_cpuset(0, 0)
    assert group.cpuset().effective_cpus == whole.effective_cpus, "an empty set is the parent's"
    assert group.cpuset().effective_mems == whole.effective_mems


def test_a_set_that_processes_use_is_given_back_too(world: World, group: FileGroup) -> None:
    whole = group.cpuset()
    group.add(world.sleeper())
    group.set_cpuset(0b1, 0b1)
    group.set_cpuset(0, 0)
    assert group.cpuset().effective_cpus == whole.effective_cpus
    assert group.cpuset().effective_mems == whole.effective_mems


def test_cpus_that_the_machine_does_not_have_are_refused_and_nothing_changes(group: FileGroup) -> None:
    before = group.cpuset()
    with pytest.raises(WriteRefusedError, match=r"ERANGE|EINVAL|EACCES"):
        group.set_cpuset(1 << 8000, 1)
    with pytest.raises(WriteRefusedError, match=r"cpuset.mems"):
        group.set_cpuset(1, 1 << 900)
    assert group.cpuset() == before


def test_version_1_keeps_children_within_their_parent(world: World, group: FileGroup) -> None:
    if world.tree.version == 2:
        pytest.skip("version 2 narrows what is effective instead")
    child = world.tree.create(f"{group.path}/c")
    with pytest.raises(WriteRefusedError, match="EBUSY"):
        group.set_cpuset(0b1, 1)
    child.set_cpuset(0b1, 1)
    group.set_cpuset(0b1, 1)
    with pytest.raises(WriteRefusedError, match="EACCES") as refused:
        child.set_cpuset(0b11, 1)
    assert "widen from the top" in refused.value.hint


@pytest.mark.slow  # while it holds a CPU for itself no other test may want it
def test_exclusive_cpus_are_accepted_or_refused_in_the_kernels_words(world: World, group: FileGroup) -> None:
    base = world.tree.group(world.base)
    last = 1 << (base.cpuset().effective_cpus.bit_length() - 1)
    sibling = world.tree.create(f"{world.base}/s")
    group.set_cpuset(last, 1)
    if Path(f"/sys/fs/cgroup/{group.path}/cpuset.cpus.exclusive").exists():
        group.set_partition(Partition.ROOT)  # Linux 6.7 and newer: the groups above need not be partitions
        assert (group.cpuset().partition, group.cpuset().effective_cpus) == (Partition.ROOT, last)
        assert not base.cpuset().effective_cpus & last
        group.set_partition(Partition.MEMBER)
        assert base.cpuset().effective_cpus & last
    else:
        with pytest.raises(WriteRefusedError, match=r"EACCES|Parent is not a partition root") as refused:
            group.set_partition(Partition.ROOT)
        assert refused.value.hint
    assert group.cpuset().partition is Partition.MEMBER
    for each in (sibling, base):
        each.set_cpuset(last, 1)
    try:
        base.set_partition(Partition.ROOT)
    except WriteRefusedError as error:
        assert world.real, "a fake has no others that could hold the CPU"
        pytest.skip(f"others hold the CPU: {error.message}")
    try:
        assert base.cpuset().partition is Partition.ROOT
        with pytest.raises(WriteRefusedError, match=r"EINVAL|not exclusive|nable to distribute|nvalid cpu list"):
            group.set_partition(Partition.ROOT)
    finally:
        base.set_partition(Partition.MEMBER)
    assert base.cpuset().partition is Partition.MEMBER


def test_version_1_has_no_isolated_partition_and_no_pressure(world: World, group: FileGroup) -> None:
    if world.tree.version == 2:
        assert group.pressure().some_total_us == 0
        return
    with pytest.raises(UnsupportedError):
        group.set_partition(Partition.ISOLATED)
    with pytest.raises(UnsupportedError):
        group.pressure()


def test_a_memory_limit_is_kept_in_whole_pages(group: FileGroup) -> None:
    group.set_memory_limit(64 * MIB + 5)
    assert group.memory_limit() == 64 * MIB
    group.set_memory_limit(None)
    assert group.memory_limit() is None
    assert group.memory_usage() >= 0


def test_a_frozen_group_is_frozen_with_all_below_until_it_is_let_go(world: World, group: FileGroup) -> None:
    child = world.tree.create(f"{group.path}/c")
    pid = world.sleeper()
    child.add(pid)
    group.freeze(True)
    until(group.frozen, "the group froze")
    until(child.frozen, "its child froze with it")
    group.freeze(False)
    until(lambda: not group.frozen() and not child.frozen(), "both go on")
    assert child.processes() == (pid,)


def test_a_process_that_is_gone_cannot_be_added(group: FileGroup) -> None:
    with pytest.raises(WriteRefusedError, match="ESRCH"):
        group.add(4_194_304)


def test_a_process_moves_and_its_cpus_follow(world: World, group: FileGroup) -> None:
    last = 1 << (group.cpuset().effective_cpus.bit_length() - 1)
    group.set_cpuset(last, group.cpuset().effective_mems)
    pid = world.sleeper()
    group.add(pid)
    assert group.processes() == (pid,)
    if world.real:
        assert mask_of(os.sched_getaffinity(pid)) == last
    other = world.tree.create(f"{world.base}/other")
    other.add(pid)
    assert (group.processes(), other.processes()) == ((), (pid,))


def test_version_2_keeps_processes_out_of_groups_that_pass_controllers_on(world: World, group: FileGroup) -> None:
    if world.tree.version == 1:
        pytest.skip("version 1 has no such rule")
    pid = world.sleeper()
    group.add(pid)
    with pytest.raises(WriteRefusedError, match="EBUSY") as refused:
        world.tree.create(f"{group.path}/c")
    assert "leaf" in refused.value.hint
    other = world.tree.create(f"{world.base}/other")
    world.tree.create(f"{world.base}/other/c")
    with pytest.raises(WriteRefusedError, match="EBUSY"):
        other.add(pid)


def test_a_spinning_process_is_throttled_and_the_counters_are_the_kernels(machine: RealWorld) -> None:
    group = machine.tree.create(f"{machine.base}/g")
    group.set_bandwidth(Bandwidth(1_000, 10_000))
    group.add(machine.spinner())
    until(lambda: group.counters().throttled_periods > 2, "it was throttled")
    group.freeze(True)
    until(group.frozen, "it stopped")
    seen = group.counters()
    assert seen.periods >= seen.throttled_periods > 2
    assert seen.throttled_ns > 0
    assert seen.usage_ns > 0
    folder = "cpu/" if machine.tree.version == 1 else ""
    text = Path(f"/sys/fs/cgroup/{folder}{group.path}/cpu.stat").read_text()
    assert int(re.findall(r"nr_throttled (\d+)", text)[0]) == seen.throttled_periods


def test_frozen_processes_do_not_run(machine: RealWorld) -> None:
    group = machine.tree.create(f"{machine.base}/g")
    pid = machine.spinner()
    group.add(pid)
    group.freeze(True)
    until(group.frozen, "it stopped")
    before = group.counters().usage_ns
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    assert state in "DS", "waits uninterruptibly in version 1, in a trap of its own in version 2"
    assert group.counters().usage_ns == before
    group.freeze(False)
    until(lambda: group.counters().usage_ns > before, "it runs again")
