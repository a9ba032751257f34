"""What a pod gets, what a template gets, and what both lose."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.pods.defaults import default_pod_template
from bayplan.cluster.embedded.admission.pods.strategy import STRATEGY
from tests.cluster.admission.pod_specs import container
from tests.cluster.admission.whole_pods import created, faults, pod

COMMON = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}


def test_a_pod_and_a_template_get_the_same_but_for_service_links() -> None:
    template: Doc = {"spec": {"containers": [container()]}}
    default_pod_template(template)
    spec = pod()["spec"]
    assert {field: value for field, value in spec.items() if field != "containers"} == {
        **COMMON,
        "enableServiceLinks": True,
    }
    del spec["enableServiceLinks"]
    assert template == {"metadata": {}, "spec": spec}


@pytest.mark.parametrize(
    ("given_spec", "field", "expected"),
    [
        pytest.param({"terminationGracePeriodSeconds": -5}, "terminationGracePeriodSeconds", 1, id="grace below zero"),
        pytest.param({"serviceAccount": "old"}, "serviceAccountName", "old", id="an account under its old name"),
        pytest.param(
            {"serviceAccountName": "new", "serviceAccount": "old"}, "serviceAccount", "new", id="new name wins"
        ),
        pytest.param({"schedulingGroup": {"podGroupName": "g"}}, "schedulingGroup", None, id="a group behind a gate"),
        pytest.param({"overhead": {"cpu": "1n"}}, "overhead", {"cpu": "1m"}, id="overhead in whole thousandths"),
    ],
)
def test_single_fields(given_spec: Doc, field: str, expected: Any) -> None:
    assert pod(**given_spec)["spec"].get(field) == expected


def test_the_annotations_of_old_init_containers_vanish() -> None:
    assert "annotations" not in pod({"annotations": {"pod.beta.kubernetes.io/init-containers": "[]"}})["metadata"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"podIP": "1.1.1.1"}, {"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}]}, id="one address"),
        pytest.param(
            {"podIPs": [{"ip": "1.1.1.1"}]}, {"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}]}, id="a list of one"
        ),
        pytest.param(
            {"podIP": "1.1.1.1", "podIPs": [{"ip": "2.2.2.2"}]},
            {"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}]},
            id="the single one wins",
        ),
    ],
)
def test_addresses_are_said_twice(status: Doc, expected: Doc) -> None:
    assert pod(status=status)["status"] == expected


def resources(limits: Doc | None = None, requests: Doc | None = None) -> Doc:
    return {name: value for name, value in (("limits", limits), ("requests", requests)) if value is not None}


def sized(name: str, *, sidecar: bool = False, **amounts: Doc) -> Doc:
    return container(name, resources=resources(**amounts), **({"restartPolicy": "Always"} if sidecar else {}))


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param({}, {}, id="nothing given, nothing filled in"),
        pytest.param({"requests": {"cpu": "5"}}, {"requests": {"cpu": "5"}}, id="requests alone stay alone"),
        pytest.param(
            {"limits": {"cpu": "8", "memory": "1Gi"}},
            {"limits": {"cpu": "8", "memory": "1Gi"}, "requests": {"cpu": "4", "memory": "1Gi"}},
            id="requests are the containers', or else the limit",
        ),
        pytest.param(
            {"limits": {"cpu": "8"}, "requests": {"cpu": "6"}},
            {"limits": {"cpu": "8"}, "requests": {"cpu": "6"}},
            id="what is given stays",
        ),
    ],
)
def test_resources_of_the_pod(own: Doc, expected: Doc) -> None:
    containers = [sized("a", requests={"cpu": "1"}), sized("b", limits={"cpu": "500m"})]
    init = [sized("s", sidecar=True, requests={"cpu": "1"}), sized("i", requests={"cpu": "3"})]
    spec = pod(containers=containers, initContainers=init, resources=own)["spec"]
    assert spec["resources"] == expected


def test_huge_pages_of_the_containers_become_the_pods() -> None:
    pages = {"hugepages-2Mi": "4Mi"}
    spec = pod(containers=[sized("a", limits=pages), sized("b", limits=pages)], resources={"limits": {"cpu": "1"}})[
        "spec"
    ]
    assert spec["resources"] == {
        "limits": {"cpu": "1", "hugepages-2Mi": "8Mi"},
        "requests": {"cpu": "1", "hugepages-2Mi": "8Mi"},
    }


def test_containers_stay_within_the_pod() -> None:
    containers = [sized("a", limits={"cpu": "2"}, requests={"cpu": "2"}), sized("b", requests={"cpu": "1"})]
    assert faults(containers=containers, resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1500m"}}) == [
        'resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 1500m',
        'resources.requests[cpu]: Invalid value: "1": '
        "must be greater than or equal to aggregate container requests of 3",
    ]


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([container()], "BestEffort", id="nobody asks"),
        pytest.param([sized("a", limits={"cpu": "1", "memory": "1Gi"})], "Guaranteed", id="limits become requests"),
        pytest.param([sized("a", limits={"cpu": "1"})], "Burstable", id="memory is open"),
    ],
)
def test_first_status(containers: list[Doc], expected: str) -> None:
    assert created(containers=containers)["status"] == {"phase": "Pending", "qosClass": expected}


def test_a_gated_pod_says_so_since_its_creation() -> None:
    assert created(schedulingGates=[{"name": "a"}])["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]


AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "hugepages-2Mi", "example.com/gpu"]), st.sampled_from(["1n", "1", "2Mi", "1500m"])
)


@given(AMOUNTS, AMOUNTS, st.booleans())
def test_defaulting_twice_changes_nothing(limits: Doc, requests: Doc, host_network: bool) -> None:
    one = container(resources=resources(dict(limits), dict(requests)), ports=[{"containerPort": 80}])
    once = pod(containers=[one], resources={"limits": dict(limits)}, hostNetwork=host_network, volumes=[{"name": "v"}])
    twice = copy.deepcopy(once)
    STRATEGY.default(twice)
    assert twice == once
