"""The QoS class follows from requests and limits as upstream says."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from bayplan.model.objects import from_builtins
from bayplan.model.pods import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from bayplan.model.qos import QosClass, compute_qos, qos_class

VECTORS = Path(__file__).parents[1] / "vectors" / "apiserver" / "admission.jsonl.gz"
BOTH = {"cpu": "1", "memory": "1Gi"}


def needs(requests: dict[str, str], limits: dict[str, str]) -> ResourceRequirements:
    return ResourceRequirements(requests=requests, limits=limits)


@pytest.mark.parametrize(
    ("containers", "own", "expected"),
    [
        pytest.param([needs({}, {})], None, "BestEffort", id="nobody asks for anything"),
        pytest.param([needs({"nvidia.com/gpu": "1"}, {})], None, "BestEffort", id="devices do not count"),
        pytest.param([needs({"cpu": "0"}, {})], None, "BestEffort", id="zero is nothing"),
        pytest.param([needs(BOTH, BOTH)], None, "Guaranteed", id="requests equal limits, cpu and memory"),
        pytest.param(
            [needs({"cpu": "1000m", "memory": "1Gi"}, BOTH)], None, "Guaranteed", id="equal in value is equal"
        ),
        pytest.param([needs({"cpu": "1"}, {"cpu": "1"})], None, "Burstable", id="memory is missing"),
        pytest.param([needs(BOTH, BOTH), needs({}, {})], None, "Burstable", id="one container without limits"),
        pytest.param([needs({}, BOTH)], None, "Burstable", id="limits alone, before defaulting"),
        pytest.param([needs({}, {})], needs(BOTH, BOTH), "Guaranteed", id="the pod's own resources decide"),
        pytest.param([needs(BOTH, BOTH)], needs({"cpu": "1"}, {}), "Burstable", id="and they alone"),
        pytest.param([needs(BOTH, BOTH)], needs({}, {}), "BestEffort", id="even when they are empty"),
    ],
)
def test_class(containers: list[ResourceRequirements], own: ResourceRequirements | None, expected: str) -> None:
    spec = PodSpec(containers=tuple(Container(resources=one) for one in containers), resources=own)
    assert compute_qos(spec) == expected


def test_init_containers_count_too() -> None:
    guaranteed = Container(resources=needs(BOTH, BOTH))
    assert compute_qos(PodSpec(containers=(guaranteed,), init_containers=(Container(),))) is QosClass.BURSTABLE


def test_a_class_once_given_stays() -> None:
    assert qos_class(Pod(status=PodStatus(qos_class="Guaranteed"))) is QosClass.GUARANTEED
    assert qos_class(Pod()) is QosClass.BEST_EFFORT


def test_the_api_server_gives_the_same_class() -> None:
    seen = set()
    with gzip.open(VECTORS) as lines:
        for line in lines:
            case = msgspec.json.decode(line)
            stored = case["expected"].get("object") if case["op"] == "create" and case["kind"] == "Pod" else None
            if stored is not None:
                pod = from_builtins(stored, Pod)
                assert compute_qos(pod.spec) == pod.status.qos_class, case["id"]
                seen.add(pod.status.qos_class)
    assert seen == set(QosClass)
