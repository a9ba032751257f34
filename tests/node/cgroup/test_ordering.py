"""Every step on the way from one valid state to another is valid."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.ordering import cpuset_steps
from bayplan.node.cgroup.port import Bandwidth

PATHS = ("/a", "/a/b", "/a/b/c", "/a/d")


@st.composite
def bandwidths(draw: st.DrawFn) -> Bandwidth:
    quota = draw(st.none() | st.integers(1, 400).map(lambda ms: ms * 1000))
    return Bandwidth(
        quota, draw(st.sampled_from([10_000, 50_000, 100_000, 200_000])), draw(st.integers(0, quota or 900_000))
    )


@given(st.sampled_from([1, 2]), bandwidths(), bandwidths())
def test_any_limit_follows_any_other(version: int, old: Bandwidth, new: Bandwidth) -> None:
    group = FakeTree(version).create("/g")
    group.set_bandwidth(old)
    group.set_bandwidth(new)
    assert group.bandwidth() == new


@given(st.integers(1, 20), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))
def test_the_same_limit_over_another_period_passes_between_equal_neighbours(cpus: int, old: int, new: int) -> None:
    tree = FakeTree(1)
    for path in ("/p", "/p/g", "/p/g/c"):
        tree.create(path).set_bandwidth(Bandwidth(cpus * old * 10_000, old * 10_000))
    wanted = Bandwidth(cpus * new * 10_000, new * 10_000)
    tree.group("/p/g").set_bandwidth(wanted)
    assert tree.group("/p/g").bandwidth() == wanted


@st.composite
def nested_sets(draw: st.DrawFn) -> dict[str, int]:
    sets: dict[str, int] = {}
    for path in PATHS:
        above = sets.get(path.rpartition("/")[0], 0b1111)
        sets[path] = draw(st.integers(1, 15)) & above or above
    return sets


@given(nested_sets(), nested_sets())
def test_sets_of_cpus_that_are_nested_before_and_after_are_nested_at_each_step(
    old: dict[str, int], new: dict[str, int]
) -> None:
    tree = FakeTree(1)
    for path in PATHS:
        tree.create(path).set_cpuset(old[path], 1)
    for path, cpus in cpuset_steps({path: (old[path], new[path]) for path in PATHS}):
        tree.group(path).set_cpuset(cpus, 1)
    assert {path: tree.group(path).cpuset().cpus for path in PATHS} == new
