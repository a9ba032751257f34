"""Whatever was written through a journal is undone, however the writer ended."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.node.cgroup import journal as journals
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.journal import (
    BusyJournalError,
    Change,
    CorruptJournalError,
    Entry,
    FullJournalError,
    Journal,
    Made,
    Moved,
    Removed,
    compact,
)
from bayplan.node.cgroup.journalled import Foreign, JournalledTree
from bayplan.node.cgroup.port import Bandwidth
from bayplan.node.cgroup.trees import FileTree

from .restless import change_for_ever, furnish
from .worlds import RealWorld, World


def picture(tree: FileTree, base: str, *, effective: bool = False) -> list[object]:
    """Every value below a group, in the kernel's own words; of the CPUs only the effective ones, if told."""
    seen: list[object] = []
    for each in tree.walk(base):
        share = each.shares() if hasattr(each, "shares") else each.weight()
        cpuset = each.cpuset()
        where = (cpuset.effective_cpus, cpuset.effective_mems) if effective else cpuset
        limits = (each.bandwidth(), share, where, each.memory_limit(), each.frozen())
        seen.append((each.path, limits, each.processes()))
    return seen


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "groups.journal"


def test_everything_is_put_back_at_the_end(world: World, path: Path) -> None:
    furnish(world.tree, world.base)
    world.tree.create(f"{world.base}/c/old")
    pid = world.sleeper()
    world.tree.group(f"{world.base}/c/old").add(pid)
    before = picture(world.tree, world.base)
    with JournalledTree.open(world.tree, path) as tree:
        tree.group(f"{world.base}/a/b").set_bandwidth(Bandwidth(30_000, 100_000, 7_000))
        tree.group(f"{world.base}/a").set_bandwidth(Bandwidth(60_000, 200_000))
        tree.group(f"{world.base}/a/b").set_cpuset(0b10, 1)
        tree.group(f"{world.base}/a").set_cpuset(0b10, 1)
        tree.group(f"{world.base}/a").set_weight(50)
        tree.group(f"{world.base}/c").set_memory_limit(None)
        tree.create(f"{world.base}/c/x/y").add(pid)
        tree.group(f"{world.base}/c").freeze(True)
        assert picture(world.tree, world.base) != before
    assert picture(world.tree, world.base) == before
    assert Journal(path).entries == []


def test_values_between_two_limits_that_block_each_other_are_put_back(world: World, path: Path) -> None:
    for name in ("p", "p/g", "p/g/c"):
        world.tree.create(f"{world.base}/{name}").set_bandwidth(Bandwidth(50_000, 100_000))
    before = picture(world.tree, world.base)
    with JournalledTree.open(world.tree, path) as tree:
        tree.group(f"{world.base}/p/g").set_bandwidth(Bandwidth(100_000, 200_000))
    assert picture(world.tree, world.base) == before


def test_what_someone_else_has_changed_since_is_left_and_reported(world: World, path: Path) -> None:
    group = world.tree.create(f"{world.base}/g")
    tree = JournalledTree.open(world.tree, path)
    tree.group(group.path).set_memory_limit(64 << 20)
    tree.group(group.path).set_weight(50)
    group.set_memory_limit(96 << 20)
    undone = tree.close()
    assert (group.memory_limit(), group.weight()) == (96 << 20, 100)
    (foreign,) = undone.foreign
    assert isinstance(foreign, Foreign)
    assert (foreign.found, foreign.ours) == (str(96 << 20), str(64 << 20))
    assert len(undone.restored) == 1


def test_what_someone_else_wrote_between_two_writes_of_ours_comes_back(world: World, path: Path) -> None:
    group = world.tree.create(f"{world.base}/g")
    tree = JournalledTree.open(world.tree, path)
    tree.group(group.path).set_weight(50)
    group.set_weight(200)
    tree.group(group.path).set_weight(300)
    tree.close()
    assert group.weight() == 200


def test_a_group_that_vanished_is_done(world: World, path: Path) -> None:
    world.tree.create(f"{world.base}/g")
    tree = JournalledTree.open(world.tree, path)
    tree.group(f"{world.base}/g").set_weight(50)
    world.tree.remove(f"{world.base}/g")
    undone = tree.close()
    assert (len(undone.gone), undone.foreign, undone.stuck) == (1, (), ())


def test_what_the_kernel_refuses_to_undo_stays_in_the_journal_for_the_next_time(path: Path) -> None:
    fake = FakeTree(1)
    fake.create("/g")
    tree = JournalledTree.open(fake, path)
    tree.group("/g").set_weight(50)
    fake.fail("/g", "cpu.shares", errno.EACCES)
    assert tree.close().stuck == (("/cpu/g/cpu.shares", "EACCES"),)
    fake.heal()
    again = JournalledTree.open(fake, path)
    assert again.recovered.restored == ("/cpu/g/cpu.shares",)
    assert fake.group("/g").weight() == 100


def test_a_group_of_ours_with_processes_of_others_is_kept_and_reported(path: Path) -> None:
    fake = FakeTree(2)
    tree = JournalledTree.open(fake, path)
    tree.create("/g")
    pid = fake.spawn("/g")
    undone = tree.undo()
    assert undone.stuck == (("/unified/g", "EBUSY"),)
    fake.exit(pid)
    assert tree.close().stuck == ()
    assert [each.path for each in fake.walk()] == ["/"]


def test_a_set_that_cannot_be_emptied_again_has_what_empty_meant(path: Path) -> None:
    fake = FakeTree(2)
    fake.create("/g")
    fake.spawn("/g")
    tree = JournalledTree.open(fake, path)
    tree.group("/g").set_cpuset(0b1, 0b1)
    assert tree.close().widened == ("/unified/g/cpuset.mems", "/unified/g/cpuset.cpus")
    assert fake.group("/g").cpuset().effective_cpus == 0b1111


def test_controllers_stay_passed_on_where_others_use_them_by_now(path: Path) -> None:
    fake = FakeTree(2)
    tree = JournalledTree.open(fake, path)
    tree.create("/ours")
    fake.create("/theirs").set_weight(5)
    (foreign,) = tree.close().foreign
    assert foreign.path == "/unified/cgroup.subtree_control"
    assert fake.group("/theirs").weight() == 5


def test_a_torn_last_line_never_came_to_be(path: Path) -> None:
    fake = FakeTree(2)
    fake.create("/g")
    tree = JournalledTree.open(fake, path)
    tree.group("/g").set_weight(50)
    tree.journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"do":"write","path":"/unified/g/cpu.max","old"')
    assert JournalledTree.open(fake, path).recovered.restored == ("/unified/g/cpu.weight",)


@pytest.mark.parametrize(
    ("line", "spoilt"),
    [
        pytest.param(1, b"{}", id="the head"),
        pytest.param(2, b'{"do":"write","pa', id="an entry"),
        pytest.param(2, b"", id="a gap"),
    ],
)
def test_a_corrupt_line_is_refused_with_file_and_line_and_nothing_is_touched(
    path: Path, line: int, spoilt: bytes
) -> None:
    fake = FakeTree(2)
    fake.create("/g")
    tree = JournalledTree.open(fake, path)
    tree.group("/g").set_weight(50)
    tree.group("/g").set_memory_limit(1 << 20)
    tree.journal.close()
    lines = path.read_bytes().split(b"\n")
    lines[line - 1] = spoilt
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(CorruptJournalError, match=rf"groups.journal, line {line}:"):
        JournalledTree.open(fake, path)
    assert path.read_bytes() == b"\n".join(lines)
    assert fake.group("/g").weight() == 50


def test_a_journal_of_another_boot_is_void(path: Path) -> None:
    journal = Journal(path, boot="one")
    journal.append(Made("/cpu/g"))
    journal.close()
    assert Journal(path, boot="two").entries == []


def test_two_processes_cannot_write_one_journal(path: Path) -> None:
    Journal(path)
    with pytest.raises(BusyJournalError, match=r"groups.journal is in use"):
        Journal(path)


def test_nothing_is_written_where_the_journal_cannot_be(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTree(2)
    group = fake.create("/g")
    tree = JournalledTree.open(fake, path)
    real = os.write
    monkeypatch.setattr(os, "write", lambda to, data: real(to, data[:7]))
    with pytest.raises(FullJournalError):
        tree.group("/g").set_weight(50)
    monkeypatch.undo()
    assert group.weight() == 100
    tree.group("/g").set_weight(60)
    tree.close()
    assert group.weight() == 100


def test_a_journal_that_cannot_be_written_anew_stays_as_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTree(2)
    group = fake.create("/g")
    tree = JournalledTree.open(fake, path)
    tree.group("/g").set_weight(50)
    before = path.read_bytes()
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda to, data: real(to, data[:7]))
        with pytest.raises(FullJournalError):
            tree.journal.keep_only(())
    assert path.read_bytes() == before
    tree.journal.close()
    JournalledTree.open(fake, path).close()
    assert group.weight() == 100


def test_entries_of_one_file_become_one() -> None:
    entries: list[Entry] = [
        Change("/f", "1", "1", "2"),
        Moved(7, "/a", "/b"),
        Change("/f", "2", "2", "3"),
        Moved(7, "/b", "/c"),
        Made("/g"),
        Change("/g/f", "0", "0", "1"),
        Removed("/g"),
    ]
    assert compact(entries) == [Change("/f", "1", "2", "3"), Moved(7, "/a", "/c")]


class Killed(BaseException):
    """The end of a process, at one point."""


class Mortal:
    """Files of a process that dies at its n-th write, before or after the kernel saw it."""

    def __init__(self, fake: FakeTree, life: int) -> None:
        self.fake, self.life = fake, life
        for name in ("write", "make", "remove"):
            setattr(fake.kernel, name, self._dying(getattr(fake.kernel, name)))

    def _dying(self, act: Callable[..., None]) -> Callable[..., None]:
        def call(*args: str) -> None:
            self.life -= 1
            if self.life == 0:
                raise Killed
            act(*args)
            if self.life == 1:
                raise Killed

        return call

    def revive(self) -> None:
        for name in ("write", "make", "remove"):
            delattr(self.fake.kernel, name)


@settings(max_examples=40)
@given(st.sampled_from([1, 2]), st.integers(), st.integers(1, 120), st.integers(2, 60))
def test_after_a_death_at_any_point_everything_is_put_back(
    tmp_path_factory: pytest.TempPathFactory, version: int, seed: int, life: int, lines: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "groups.journal"
    fake = FakeTree(version)
    furnish(fake, "/t")
    before = picture(fake, "/t")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journals, "MOST_LINES", lines)
        for name in ("fsync", "fdatasync"):  # a dead process loses nothing that the kernel has
            patch.setattr(os, name, lambda _: None)
        tree = JournalledTree.open(fake, path)
        mortal = Mortal(fake, life)
        with pytest.raises(Killed):
            change_for_ever(tree, "/t", random.Random(seed))
        tree.journal.close()
        mortal.revive()
    again = JournalledTree.open(fake, path)
    assert again.recovered.stuck == ()
    assert again.recovered.foreign == ()
    assert picture(fake, "/t") == before
    again.journal.close()


@pytest.mark.slow
def test_after_kill_9_at_random_points_the_next_start_restores_every_value(machine: RealWorld, path: Path) -> None:
    furnish(machine.tree, machine.base)
    before = picture(machine.tree, machine.base)
    dice = random.Random(20)
    seen = 0
    for seed in range(12):
        command = [sys.executable, "-m", "tests.node.cgroup.restless", machine.base, str(path), str(seed)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(dice.random() * 0.05)
            process.kill()
        tree = JournalledTree.open(machine.tree, path)
        seen += bool(tree.recovered.restored)
        assert (tree.recovered.stuck, tree.recovered.foreign) == ((), ())
        assert picture(machine.tree, machine.base) == before, f"seed {seed}"
        tree.close()
    assert seen > 6, "most of the deaths left something to undo"
