"""Changes of pods and nodes as they are watched: who leaves the queue, and who is woken."""

from __future__ import annotations

import pytest

from bayplan.model.nodes import Node
from bayplan.scheduling.arguments import NodeAffinityArgs
from bayplan.scheduling.framework import Profile
from bayplan.scheduling.plugins.node_affinity import NodeAffinity
from bayplan.scheduling.plugins.scheduling_gates import SchedulingGates
from bayplan.scheduling.queue.queue import Lane, Pool, SchedulingQueue
from bayplan.scheduling.queue.watching import observe, observe_pod
from bayplan.testing.nodes import node
from bayplan.testing.pods import PodManifest, pod
from tests.scheduling.queueing import AFFINITY, FIT, at, fail, info, names, pool_of, queue_of

# --- watching


def test_a_bound_pod_leaves_the_queue_and_may_help_others() -> None:
    friend = info(pod("friend").pod_labelled(app="db"))
    near = pod("a").pod_having(
        "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}],
    )
    queue = queue_of()
    observe_pod(queue, None, info(near), at(0))
    fail(queue, frozenset({"InterPodAffinity"}), 0)
    observe_pod(queue, None, friend, at(10))
    assert names(queue, at(10)) == ["friend"]
    observe_pod(queue, friend, info(pod("friend").pod_labelled(app="db").on("n")), at(11))
    assert queue.why(friend.key, at(11)) is None
    assert names(queue, at(11)) == ["a"]


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(pod("b").on("n"), None, True, id="a pod that went from a node"),
        pytest.param(pod("b").on("n"), pod("b").on("n").phase("Succeeded"), True, id="a pod that ran its course"),
        pytest.param(pod("b").on("n").phase("Failed"), None, False, id="a pod that had run its course before"),
        pytest.param(None, pod("b").on("n"), False, id="a pod that came"),
        pytest.param(
            pod("b").on("n").requests(cpu=2), pod("b").on("n").requests(cpu=1), True, id="a pod that takes less cpu"
        ),
        pytest.param(pod("b"), None, False, id="a waiting pod that went"),
        pytest.param(pod("b").phase("Pending", nominatedNodeName="n"), None, True, id="one for which room was kept"),
        pytest.param(
            pod("b").phase("Pending", nominatedNodeName="n"), pod("b"), True, id="one for which it no longer is"
        ),
        pytest.param(
            pod("b").phase("Pending", nominatedNodeName="n").pod_having("schedulerName", "other"),
            None,
            False,
            id="a pod of another scheduler",
        ),
    ],
)
def test_pods_that_free_resources_wake_those_that_lack_them(
    old: PodManifest | None, new: PodManifest | None, woken: bool
) -> None:
    queue = queue_of(info(pod("a").requests(cpu=1)))
    fail(queue, FIT, 0)
    observe_pod(queue, info(old) if old else None, info(new) if new else None, at(20))
    assert (pool_of(queue, "a", at(20)) is Pool.ACTIVE) == woken


@pytest.mark.parametrize(
    ("old", "new", "plugins", "woken"),
    [
        pytest.param(node().cordoned().view(), node().view(), FIT, True, id="the end of a cordon wakes all"),
        pytest.param(node().view(), node().cordoned().view(), FIT, False, id="its beginning nobody"),
        pytest.param(node().view(), node().condition("Ready").view(), FIT, False, id="nor does a condition"),
        pytest.param(node().view(), node().offers(cpu=5).view(), FIT, True, id="more cpu wakes who asks for it"),
        pytest.param(node().view(), node().offers(cpu=5).view(), AFFINITY, False, id="but not who asks for labels"),
        pytest.param(node().view(), None, FIT, False, id="a node that goes wakes nobody of them"),
    ],
)
def test_nodes_wake_those_whom_they_may_help(old: Node, new: Node | None, plugins: frozenset[str], woken: bool) -> None:
    queue = queue_of(info(pod("a").requests(cpu=1)))
    fail(queue, plugins, 0)
    observe(queue, old, new, at(20))
    assert (pool_of(queue, "a", at(20)) is Pool.ACTIVE) == woken


def test_a_lane_takes_gates_and_added_affinity_from_its_profile() -> None:
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["batch"]}]}]
    }}  # fmt: skip
    view = pod().pod_having("affinity.nodeAffinity", added).view().spec.affinity
    assert view is not None
    plugin = NodeAffinity(NodeAffinityArgs(added_affinity=view.node_affinity))
    profile = Profile("default-scheduler", (SchedulingGates(),), (plugin,), ())
    queue = SchedulingQueue({profile.scheduler_name: Lane.of(profile)})
    queue.add(info("a"), at(0))
    fail(queue, AFFINITY, 0)
    observe(queue, None, node("plain").view(), at(20))
    assert pool_of(queue, "a", at(20)) is Pool.UNSCHEDULABLE
    observe(queue, None, node("batch").labelled(pool="batch").view(), at(21))
    assert pool_of(queue, "a", at(21)) is Pool.ACTIVE
