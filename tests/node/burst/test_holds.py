"""Holds: limits that go up and come back, with those above them; what others write stays."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bayplan.model.clock import Instant
from bayplan.node.burst.holds import Hold, Holds, Release
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.journal import Entry, FullJournalError
from bayplan.node.cgroup.journalled import JournalledTree
from bayplan.node.cgroup.port import Bandwidth, GroupGoneError, WriteRefusedError

POD, ONE, TWO = "/kubepods/pod", "/kubepods/pod/one", "/kubepods/pod/two"


def tree_of(version: int) -> FakeTree:
    tree = FakeTree(version)
    for path, quota in ((POD, 150_000), (ONE, 50_000), (TWO, 100_000)):
        tree.create(path).set_bandwidth(Bandwidth(quota))
    return tree


def quotas(tree: FakeTree) -> list[int | None]:
    return [tree.group(path).bandwidth().quota_us for path in (POD, ONE, TWO)]


@pytest.fixture(params=[1, 2], ids=["version 1", "version 2"])
def tree(request: pytest.FixtureRequest) -> FakeTree:
    return tree_of(request.param)


def test_a_hold_raises_the_limits_above_it_and_all_come_back(tree: FakeTree) -> None:
    holds = Holds(tree)
    holds.hold(Hold(ONE, Bandwidth(120_000), Instant(5)))
    holds.hold(Hold(TWO, Bandwidth(200_000), Instant(3)))
    assert quotas(tree) == [320_000, 120_000, 200_000]
    assert holds.next_due == 3
    assert holds.release_due(Instant(4)) == [Release(TWO, Instant(3))]
    assert quotas(tree) == [220_000, 120_000, 100_000]
    assert holds.release_due(Instant(5)) == [Release(ONE, Instant(5))]
    assert quotas(tree) == [150_000, 50_000, 100_000]
    assert holds.next_due is None


def test_a_hold_may_change_while_it_lasts(tree: FakeTree) -> None:
    holds = Holds(tree)
    for quota in (60_000, 72_000, 57_600):
        holds.hold(Hold(ONE, Bandwidth(quota)))
        assert quotas(tree) == [100_000 + quota, quota, 100_000]
    assert holds.own(ONE) == Bandwidth(50_000)
    holds.release_all()
    assert quotas(tree) == [150_000, 50_000, 100_000]


def test_a_hold_below_the_own_limit_leaves_those_above_alone(tree: FakeTree) -> None:
    holds = Holds(tree)
    holds.hold(Hold(TWO, Bandwidth(25_000)))
    assert quotas(tree) == [150_000, 50_000, 25_000]
    holds.release(TWO)
    assert quotas(tree) == [150_000, 50_000, 100_000]


def test_a_group_without_a_limit_can_be_given_one(tree: FakeTree) -> None:
    tree.create("/free")
    holds = Holds(tree)
    holds.hold(Hold("/free", Bandwidth(25_000)))
    assert tree.group("/free").bandwidth() == Bandwidth(25_000)
    holds.release("/free")
    assert tree.group("/free").bandwidth() == Bandwidth(None)


def test_a_burst_is_no_larger_than_the_quota(tree: FakeTree) -> None:
    Holds(tree).hold(Hold(ONE, Bandwidth(60_000, burst_us=500_000)))
    assert tree.group(ONE).bandwidth() == Bandwidth(60_000, burst_us=60_000)


def test_a_burst_reaches_the_limits_above(tree: FakeTree) -> None:
    holds = Holds(tree)
    holds.hold(Hold(ONE, Bandwidth(50_000, burst_us=50_000)))
    holds.hold(Hold(TWO, Bandwidth(100_000, burst_us=60_000)))
    assert tree.group(POD).bandwidth() == Bandwidth(150_000, burst_us=110_000)
    holds.release_all()
    assert tree.group(POD).bandwidth() == Bandwidth(150_000)


def test_limits_above_with_another_period_rise_by_as_many_cpus(tree: FakeTree) -> None:
    tree.group(POD).set_bandwidth(Bandwidth(300_000, 200_000))
    holds = Holds(tree)
    holds.hold(Hold(ONE, Bandwidth(100_001)))
    assert tree.group(POD).bandwidth() == Bandwidth(400_002, 200_000)
    holds.release(ONE)
    assert tree.group(POD).bandwidth() == Bandwidth(300_000, 200_000)


def test_what_somebody_else_wrote_stays(tree: FakeTree) -> None:
    holds = Holds(tree)
    holds.hold(Hold(ONE, Bandwidth(120_000), Instant(5)))
    tree.group(ONE).set_bandwidth(Bandwidth(70_000))
    assert holds.release(ONE) == Release(ONE, Instant(5), "somebody else set it to 70000 of 100000 us")
    assert quotas(tree) == [150_000, 70_000, 100_000]
    assert holds.own(ONE) == Bandwidth(70_000)


def test_nothing_is_given_to_a_group_that_somebody_else_has_just_changed(tree: FakeTree) -> None:
    holds = Holds(tree)
    holds.hold(Hold(ONE, Bandwidth(120_000)))
    tree.group(ONE).set_bandwidth(Bandwidth(70_000))
    assert holds.hold(Hold(ONE, Bandwidth(140_000))) == "somebody else set it to 70000 of 100000 us"
    assert quotas(tree) == [150_000, 70_000, 100_000]


def test_a_group_that_is_gone_gives_back_what_those_above_it_had_for_it(tree: FakeTree) -> None:
    holds = Holds(tree)
    holds.hold(Hold(ONE, Bandwidth(120_000), Instant(5)))
    tree.vanish(ONE)
    assert holds.release_due(Instant(9)) == [Release(ONE, Instant(5), "the group is gone")]
    assert tree.group(POD).bandwidth() == Bandwidth(150_000)


def test_a_refused_hold_leaves_everything_as_it_was() -> None:
    tree = tree_of(1)
    holds = Holds(tree)
    tree.fail(ONE, "cpu.cfs_quota_us", errno.EINVAL)
    with pytest.raises(WriteRefusedError):
        holds.hold(Hold(ONE, Bandwidth(120_000)))
    tree.heal()
    assert quotas(tree) == [150_000, 50_000, 100_000]
    assert holds.release_all() == []


@given(
    st.lists(st.tuples(st.sampled_from([POD, ONE, TWO]), st.none() | st.integers(10_000, 600_000)), max_size=20),
    st.sampled_from([1, 2]),
)
@example([(TWO, 10_000), (POD, 50_000), (TWO, None)], 1)  # what TWO gets back is above POD at that time
def test_however_holds_come_and_go_everything_comes_back(orders: list[tuple[str, int | None]], version: int) -> None:
    tree = tree_of(version)
    holds = Holds(tree)
    for path, quota in orders:
        if quota is None:
            holds.release(path)
        else:
            try:
                holds.hold(Hold(path, Bandwidth(quota)))
            except WriteRefusedError:  # a pod below its containers: version 1 does not have that
                assert version == 1
    holds.release_all()
    assert quotas(tree) == [150_000, 50_000, 100_000]


@given(st.sampled_from([1, 2]), st.integers(1, 80), st.booleans())
def test_a_group_may_vanish_between_any_two_reads(version: int, after: int, together: bool) -> None:
    tree = tree_of(version)
    holds = Holds(tree)
    holds.hold(Hold(TWO, Bandwidth(120_000)))
    tree.vanish(ONE, after=after)
    with contextlib.suppress(GroupGoneError):
        holds.hold(Hold(ONE, Bandwidth(120_000), Instant(5)))
    holds.release_due(Instant(9))
    if together:
        tree.vanish(ONE)
    holds.release_all()
    assert [tree.group(path).bandwidth().quota_us for path in (POD, TWO)] == [150_000, 100_000]
    assert holds.next_due is None


@given(st.sampled_from([1, 2]), st.integers(0, 4))
def test_a_journal_that_is_full_leaves_nothing_held(version: int, fits: int) -> None:
    tree = tree_of(version)
    with tempfile.TemporaryDirectory() as folder, JournalledTree.open(tree, Path(folder) / "journal") as journalled:
        holds, append, left = Holds(journalled, tree), journalled.journal.append, iter(range(fits))

        def full(entry: Entry) -> None:
            if next(left, None) is None:
                raise FullJournalError("journal: No space left on device")
            append(entry)

        with mock.patch.object(journalled.journal, "append", full):
            with contextlib.suppress(FullJournalError):
                holds.hold(Hold(ONE, Bandwidth(120_000)))
                holds.hold(Hold(TWO, Bandwidth(140_000)))
            held = holds.release_all()
        assert len(held) <= fits
        assert quotas(tree) == [150_000, 50_000, 100_000]


@pytest.mark.parametrize("version", [1, 2])
def test_a_limit_that_was_changed_between_two_holds_is_the_one_that_comes_back(version: int, tmp_path: Path) -> None:
    """A kubelet resizes a container in place: neither the end nor a sudden death may bring the old limit back."""
    tree = tree_of(version)
    with JournalledTree.open(tree, tmp_path / "journal") as journalled:
        holds = Holds(journalled, tree)
        holds.hold(Hold(ONE, Bandwidth(120_000)))
        holds.release(ONE)
        tree.group(ONE).set_bandwidth(Bandwidth(40_000))
        holds.hold(Hold(ONE, Bandwidth(110_000)))
    assert quotas(tree) == [150_000, 40_000, 100_000]
