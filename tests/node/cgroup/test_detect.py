"""Which control groups a machine has, from what its /proc says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bayplan.node.cgroup.detect import NoTreeError, find_tree, survey
from bayplan.node.cgroup.mounts import Mount, parse_mounts, places_of
from bayplan.node.cgroup.v1 import V1Tree
from bayplan.node.cgroup.v2 import V2Tree

V1 = "32 31 0:29 / {root}/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct"
SET = "34 31 0:31 / {root}/cpuset rw,relatime - cgroup cgroup rw,cpuset"
NAMED = "40 31 0:37 / {root}/systemd rw,relatime - cgroup cgroup rw,name=systemd"
UNIFIED = "41 31 0:38 / {root}/unified rw,relatime - cgroup2 cgroup2 rw"
V2 = "41 31 0:38 / {root} {mode},relatime - cgroup2 cgroup2 rw,nsdelegate"
OTHER = "23 1 0:20 / /proc rw - proc proc rw"


def machine(folder: Path, *lines: str, mode: str = "rw") -> tuple[str, str]:
    root, proc = folder / "cgroup", folder / "proc"
    for each in ("cpu,cpuacct", "cpuset", "unified"):
        (root / each).mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpuset cpu memory\n")
    (proc / "self").mkdir(parents=True)
    text = "\n".join([OTHER, *lines]).format(root=root, mode=mode)
    (proc / "self/mountinfo").write_text(text + "\n")
    (proc / "self/cgroup").write_text("3:cpu,cpuacct:/here\n0::/there\n")
    return str(root), str(proc)


def test_a_hybrid_machine_has_its_controllers_in_version_1(tmp_path: Path) -> None:
    root, proc = machine(tmp_path, V1, SET, NAMED, UNIFIED)
    seen = survey(root, proc)
    assert (seen.version, seen.hybrid, seen.writable) == (1, True, True)
    assert seen.controllers == ("cpuset", "cpu", "cpuacct")
    assert seen.mounts["cpu"] == seen.mounts["cpuacct"] == f"{root}/cpu,cpuacct"
    assert seen.own == {"cpu": "/here", "cpuacct": "/here", "": "/there"}
    tree = find_tree(root, within="/part", proc=proc)
    assert isinstance(tree, V1Tree)
    assert tree.mounts["cpuset"] == f"{root}/cpuset/part"


@pytest.mark.parametrize(("mode", "writable"), [("rw", True), ("ro", False)])
def test_a_machine_of_version_2(tmp_path: Path, mode: str, writable: bool) -> None:
    root, proc = machine(tmp_path, V2, mode=mode)
    seen = survey(root, proc)
    assert (seen.version, seen.hybrid, seen.controllers) == (2, False, ("cpuset", "cpu", "memory"))
    assert seen.writable is writable
    tree = find_tree(root, proc=proc)
    assert isinstance(tree, V2Tree)
    assert tree.root == root


def test_a_machine_without_control_groups_says_how_to_mount_them(tmp_path: Path) -> None:
    root, proc = machine(tmp_path)
    with pytest.raises(NoTreeError, match="no control groups") as error:
        survey(root, proc)
    assert "mount -t cgroup2" in error.value.hint


def test_a_part_that_is_mounted_into_a_container_is_named_from_its_own_root() -> None:
    line = r"41 31 0:38 /kubepods/pod1 /sys/fs/my\040groups ro - cgroup2 cgroup2 rw"
    (mount,) = parse_mounts([line])
    assert mount == Mount("/sys/fs/my groups", "/kubepods/pod1", 2, frozenset(), writable=False)
    assert mount.group_of("/kubepods/pod1/c") == "/sys/fs/my groups/c"
    assert mount.group_of("/kubepods/pod1") == "/sys/fs/my groups"
    assert mount.group_of("/kubepods/pod2") is None
    assert mount.group_of("/../pod2") is None, "as a process outside a namespace shows"


def test_this_process_is_somewhere() -> None:
    assert all(group.startswith("/") for group in places_of(os.getpid()).values())
