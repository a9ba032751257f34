"""Plugins that count: requests, shares, images."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.scheduling.arguments import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
)
from bayplan.scheduling.framework import Plugin
from bayplan.scheduling.plugins.balanced_allocation import NodeResourcesBalancedAllocation, balance
from bayplan.scheduling.plugins.image_locality import ImageLocality
from bayplan.scheduling.plugins.node_resources_fit import NodeResourcesFit
from bayplan.scheduling.plugins.resource_strategies import on_shape
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.state import ClusterState
from bayplan.testing import node, pod
from bayplan.testing.nodes import NodeManifest
from bayplan.testing.pods import PodManifest

GPU = "nvidia.com/gpu"
MIB = 1024 * 1024


def points(plugin: Plugin, manifest: PodManifest, *cluster: NodeManifest | PodManifest) -> list[int] | None:
    """What the nodes get; None if the plugin has nothing to say."""
    state = ClusterState(each.view() for each in cluster)
    found = plugin.score(PodInfo(manifest.view()), state, state.nodes)
    return None if found is None else [found.score(each) for each in state.nodes]


# --- NodeResourcesFit as a filter: a node of 4 cpus and 16Gi, half of it taken

BASE = node("n").offers({GPU: "2", "ephemeral-storage": "10Gi", "hugepages-2Mi": "1Gi", "pods": "2"})
TAKEN = pod("other").requests({GPU: "1", "ephemeral-storage": "5Gi"}, cpu=2, memory="8Gi").on("n")
SECOND = pod("second").on("n")
FITS: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("asker", "reasons", "hopeless"),
    [
        pytest.param(pod(), FITS, False, id="a pod that asks for nothing"),
        pytest.param(pod().requests(cpu=2, memory="8Gi", gpu=1), FITS, False, id="exactly what is left"),
        pytest.param(pod().requests(cpu="2001m"), ("Insufficient cpu",), False, id="a little too much"),
        pytest.param(pod().requests(cpu=5), ("Insufficient cpu",), True, id="more than the node ever had"),
        pytest.param(
            pod().requests({"ephemeral-storage": "6Gi"}, cpu=3, memory="9Gi"),
            ("Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage"),
            False,
            id="all that is missing is named",
        ),
        pytest.param(
            pod().requests({GPU: "2", "example.com/fpga": "1"}),
            ("Insufficient example.com/fpga", f"Insufficient {GPU}"),
            True,
            id="one hopeless shortage is enough",
        ),
        pytest.param(pod().requests({"hugepages-2Mi": "2Gi"}), ("Insufficient hugepages-2Mi",), True, id="huge pages"),
        pytest.param(pod().requests({"example.com/fpga": "0"}), FITS, False, id="nothing of what is not there"),
        pytest.param(
            pod().pod_having("overhead", {"cpu": "1"}).requests(cpu="1500m"),
            ("Insufficient cpu",),
            False,
            id="overhead counts",
        ),
        pytest.param(
            pod().pod_having("resources", {"requests": {"cpu": "3"}}),
            ("Insufficient cpu",),
            False,
            id="pod level counts",
        ),
    ],
)
def test_what_a_pod_asks_for_must_be_left(asker: PodManifest, reasons: tuple[str, ...], hopeless: bool) -> None:
    state = ClusterState(each.view() for each in (BASE, TAKEN))
    refusal = NodeResourcesFit().filter(PodInfo(asker.view()), state).check(state.nodes[0])
    assert (refusal.reasons, refusal.hopeless) == (reasons, hopeless) if refusal else reasons == FITS


def test_every_pod_takes_a_place() -> None:
    state = ClusterState(each.view() for each in (BASE, TAKEN, SECOND))
    refusal = NodeResourcesFit().filter(PodInfo(pod().requests(cpu=3).view()), state).check(state.nodes[0])
    assert refusal is not None
    assert (refusal.reasons, refusal.hopeless) == (("Too many pods", "Insufficient cpu"), False)


@pytest.mark.parametrize(
    ("args", "counted"),
    [
        pytest.param(NodeResourcesFitArgs(), {"example.com/fpga", GPU, "hugepages-2Mi"}, id="nothing is ignored"),
        pytest.param(NodeResourcesFitArgs(ignored_resources=(GPU,)), {"example.com/fpga", "hugepages-2Mi"}, id="one"),
        pytest.param(
            NodeResourcesFitArgs(ignored_resource_groups=("example.com",)), {GPU, "hugepages-2Mi"}, id="a group"
        ),
        pytest.param(
            NodeResourcesFitArgs(ignored_resources=("hugepages-2Mi",), ignored_resource_groups=("hugepages-2Mi",)),
            {"example.com/fpga", GPU, "hugepages-2Mi"},
            id="what is no extended resource cannot be ignored",
        ),
    ],
)
def test_resources_may_be_ignored(args: NodeResourcesFitArgs, counted: set[str]) -> None:
    asker = pod().requests({"example.com/fpga": "1", GPU: "1", "hugepages-2Mi": "2Mi"})
    assert {*NodeResourcesFit(args).counted(PodInfo(asker.view()))} == counted


# --- NodeResourcesFit as a score


def fit(kind: str, *shape: tuple[int, int], **weights: int) -> NodeResourcesFit:
    resources = tuple(ResourceSpec(name.replace("gpu", GPU), weight) for name, weight in weights.items())
    ratio = RequestedToCapacityRatioParam(tuple(ShapePoint(*each) for each in shape)) if shape else None
    strategy = ScoringStrategy(kind, resources or ScoringStrategy().resources, ratio)  # type: ignore[arg-type]  # by table
    return NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy))


ASKER = pod().requests(cpu=1, memory="4Gi")


@pytest.mark.parametrize(
    ("plugin", "asker", "expected"),
    [
        pytest.param(fit("LeastAllocated"), ASKER, [25, 75], id="what is left: 1 of 4 and 4 of 16"),
        pytest.param(fit("MostAllocated"), ASKER, [75, 25], id="what is taken: 3 of 4 and 12 of 16"),
        pytest.param(fit("LeastAllocated", cpu=3, memory=1), pod().requests(cpu=2, memory="0"), [12, 62], id="weights"),
        pytest.param(fit("LeastAllocated"), pod().requests(cpu=9, memory="4Gi"), [12, 37], id="too much leaves none"),
        pytest.param(fit("MostAllocated"), pod().requests(cpu=9, memory="4Gi"), [87, 62], id="too much takes all"),
        pytest.param(fit("LeastAllocated"), pod(), [47, 97], id="who asks for nothing counts for 100m and 200Mi"),
        pytest.param(fit("LeastAllocated"), pod().requests(cpu=0, memory="0"), [50, 100], id="zero is not nothing"),
        pytest.param(
            fit("LeastAllocated"),
            ASKER.pod_having("resources", {"requests": {"cpu": "4"}}),
            [25, 75],
            id="what the incoming pod asks for as a whole is passed over",
        ),
        pytest.param(fit("MostAllocated", gpu=1, cpu=1), ASKER, [75, 25], id="a scalar not asked for is left out"),
        pytest.param(
            fit("MostAllocated", gpu=1, cpu=1), ASKER.requests(gpu=1), [87, 25], id="so is one that the node lacks"
        ),
        pytest.param(fit("MostAllocated", gpu=1), ASKER, [0, 0], id="nothing that counts is nothing"),
        pytest.param(fit("MostAllocated", pods=1), ASKER, [0, 0], id="places are no resource to score"),
        pytest.param(
            fit("RequestedToCapacityRatio", (0, 0), (100, 10), cpu=1, memory=1), ASKER, [75, 25], id="a plain ratio"
        ),
        pytest.param(
            fit("RequestedToCapacityRatio", (0, 10), (75, 0), cpu=5, memory=1),
            pod().requests(cpu=1, memory="0"),
            [34, 73],
            id="a resource that scores nothing is left out with its weight",
        ),
    ],
)  # fmt: skip
def test_strategies(plugin: NodeResourcesFit, asker: PodManifest, expected: list[int]) -> None:
    half = pod("other").requests(cpu=2, memory="8Gi", gpu=1).on("a")
    assert points(plugin, asker, node("a").offers(gpu=2), node("b"), half) == expected


@pytest.mark.parametrize(
    ("utilisation", "score"),
    [(0, 20), (10, 20), (11, 22), (50, 100), (51, 98), (89, 3), (90, 0), (100, 0)],
)
def test_a_shape_is_followed_between_its_points(utilisation: int, score: int) -> None:
    shape = [ShapePoint(*each) for each in ((10, 2), (50, 10), (90, 0))]
    assert on_shape(shape, utilisation) == score


# --- NodeResourcesBalancedAllocation


def test_a_pod_that_evens_out_is_welcome() -> None:
    skewed = pod("other").requests(cpu=2).on("a")
    plugin = NodeResourcesBalancedAllocation()
    assert points(plugin, pod().requests(memory="8Gi"), node("a"), node("b"), skewed) == [87, 62]
    assert points(plugin, pod().requests(cpu=2), node("a"), node("b"), skewed) == [62, 62]
    assert points(plugin, pod().requests(cpu=1, memory="4Gi"), node("b")) == [75]


def test_a_pod_that_asks_for_nothing_is_not_scored() -> None:
    assert points(NodeResourcesBalancedAllocation(), pod(), node("a")) is None
    gpus = NodeResourcesBalancedAllocationArgs(resources=(ResourceSpec(GPU), ResourceSpec("cpu")))
    asker = pod().requests(memory="1Gi")
    assert points(NodeResourcesBalancedAllocation(gpus), asker, node("a")) is None
    assert points(NodeResourcesBalancedAllocation(gpus), asker.requests(gpu=1), node("a").offers(gpu=2)) == [62]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [([], 100), ([0.7], 100), ([0.5, 0.5], 100), ([1.0, 0.0], 50), ([0.0, 0.5, 1.0], 59)],
)
def test_balance(shares: list[float], expected: int) -> None:
    assert balance(shares) == expected


@given(st.lists(st.floats(0, 1), max_size=6))
def test_balance_is_never_below_one_half(shares: list[float]) -> None:
    assert 49 <= balance(shares) <= 100  # a float's last digit


# --- ImageLocality


def holding(name: str, **sizes: int) -> NodeManifest:
    """A node with images, by their sizes in MiB."""
    images = [{"names": [f"reg.example/{image}:latest"], "sizeBytes": size * MIB} for image, size in sizes.items()]
    return node(name).having("status.images", images)


@pytest.mark.parametrize(
    ("asker", "there", "expected"),
    [
        pytest.param(pod().image("reg.example/a"), [holding("x"), holding("y")], [0, 0], id="nobody has it"),
        pytest.param(
            pod().image("reg.example/a"), [holding("x", a=600), holding("y")], [28, 0], id="an image half as widespread"
        ),
        pytest.param(
            pod().image("reg.example/a"), [holding("x", a=600), holding("y", a=900)], [59, 59], id="one size for all"
        ),
        pytest.param(pod().image("reg.example/a:1"), [holding("x", a=600)], [0], id="another tag is another image"),
        pytest.param(pod().image("reg.example/a"), [holding("x", a=20)], [0], id="small images do not matter"),
        pytest.param(
            pod().image("reg.example/a"), [holding("x", a=4000)], [100], id="larger than 1000 MiB is the most"
        ),
        pytest.param(
            pod().image("reg.example/a").init_container("i", "reg.example/b"),
            [holding("x", a=500, b=500)],
            [49],
            id="init containers count, and raise the most",
        ),
        pytest.param(
            pod()
            .image("reg.example/b")
            .pod_having("volumes", [{"name": "v", "image": {"reference": "reg.example/a"}}]),
            [holding("x", a=600)],
            [59],
            id="image volumes count",
        ),
    ],
)
def test_nodes_that_hold_the_images_are_preferred(
    asker: PodManifest, there: list[NodeManifest], expected: list[int]
) -> None:
    assert points(ImageLocality(), asker, *there) == expected
