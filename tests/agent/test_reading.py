"""Groups as people name them."""

from __future__ import annotations

import pytest

from bayplan.agent.reading import group_named
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.v1 import V1Tree
from bayplan.node.cgroup.v2 import V2Tree


@pytest.mark.parametrize(
    ("version", "text", "path"),
    [
        pytest.param(1, "/app", "/app", id="its path"),
        pytest.param(1, "app/", "/app", id="its path, loosely"),
        pytest.param(1, "/cpu/app", "/app", id="its directory in a hierarchy of version 1"),
        pytest.param(2, "/unified/app", "/app", id="its directory in version 2"),
        pytest.param(2, "/unified", "/", id="the mount point itself"),
    ],
)
def test_a_group_by_path_or_directory(version: int, text: str, path: str) -> None:
    kernel = FakeTree(version).kernel
    tree = V1Tree(kernel, {"cpu": "/cpu", "cpuset": "/cpuset"}) if version == 1 else V2Tree(kernel, "/unified")
    tree.create("/app")
    assert group_named(tree, text).path == path
