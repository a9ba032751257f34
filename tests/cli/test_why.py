"""Why a pod waits, in a sentence that fits on a line."""

from __future__ import annotations

import pytest

from bayplan.cli.display.why import short
from bayplan.scheduling.explanation import explain
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.state import ClusterState
from bayplan.testing import node, pod
from bayplan.testing.nodes import NodeManifest
from bayplan.testing.pods import PodManifest

_A = node("a").offers(cpu=4, memory="8Gi", gpu=2)
_B = node("b").offers(cpu=8, memory="8Gi")


@pytest.mark.parametrize(
    ("wanted", "nodes", "sentence"),
    [
        pytest.param(
            pod().requests(gpu=3), [_A], "1 node short of GPUs; fits on a with 2 GPUs", id="a smaller one would fit"
        ),
        pytest.param(
            pod().requests(cpu=6),
            [_A, _B.tainted("own")],
            "1 node short of CPU; fits on a with 4 CPU (1 tainted)",
            id="what it lacks stands first, then what would help, then the other nodes",
        ),
        pytest.param(
            pod().requests(cpu=2), [_A.cordoned()], "1 node cordoned; fits if a were uncordoned", id="a closed node"
        ),
        pytest.param(
            pod().having("spec.nodeSelector", {"zone": "z"}),
            [_A, _B],
            "2 nodes not selected; fits if its node selector did not ask for zone=z",
            id="nodes of another kind",
        ),
        pytest.param(pod().gated("example.com/wait"), [_A], "held back by its gates: example.com/wait", id="a gate"),
        pytest.param(pod().requests(cpu=1), [_A], "it fits now: the scheduler is about to try it", id="there is room"),
        pytest.param(pod(), [], "", id="no nodes at all: the scheduler's own words are best"),
    ],
)
def test_the_sentence(wanted: PodManifest, nodes: list[NodeManifest], sentence: str) -> None:
    state = ClusterState(each.view() for each in nodes)
    assert short(explain(state, default_profile(), wanted.view(), suggestions=1)) == sentence
