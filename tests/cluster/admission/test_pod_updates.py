"""Changes of a pod: through PUT, through /status and through /resize."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.pods.affinity import REQUIRED
from bayplan.cluster.embedded.admission.pods.strategy import STRATEGY
from bayplan.cluster.embedded.admission.pods.updates import same
from tests.cluster.admission.pod_specs import container
from tests.cluster.admission.whole_pods import change_faults, created

IMMUTABLE = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
TOLERATION = {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}


def put_faults(new: Doc, old: Doc) -> list[str]:
    return change_faults(STRATEGY.validate_update, created(**new), created(**old))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({}, {"containers": [container(image="redis:8")]}, [], id="another image"),
        pytest.param({}, {"activeDeadlineSeconds": 9}, [], id="a first deadline"),
        pytest.param({"activeDeadlineSeconds": 9}, {"activeDeadlineSeconds": 8}, [], id="a nearer deadline"),
        pytest.param(
            {"activeDeadlineSeconds": 9},
            {"activeDeadlineSeconds": 10, "hostname": "other"},
            ["spec.activeDeadlineSeconds: Invalid value: 10: must be less than or equal to previous value"],
            id="a later deadline ends the search for faults",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 9},
            {},
            [
                "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
            ],
            id="no deadline any more",
        ),
        pytest.param({}, {"tolerations": [TOLERATION]}, [], id="one more toleration"),
        pytest.param(
            {"tolerations": [TOLERATION]},
            {"tolerations": [{**TOLERATION, "tolerationSeconds": 7}]},
            [],
            id="more seconds for a toleration",
        ),
        pytest.param(
            {"tolerations": [TOLERATION]},
            {"tolerations": [{**TOLERATION, "key": "x"}]},
            ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
            id="another toleration in its place",
        ),
        pytest.param({"schedulingGates": [{"name": "a"}]}, {}, [], id="a gate opened"),
        pytest.param(
            {"schedulingGates": [{"name": "a"}]},
            {"schedulingGates": [{"name": "b"}]},
            ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'b'"],
            id="a gate closed",
        ),
        pytest.param({}, {"hostname": "other"}, [IMMUTABLE], id="another hostname"),
        pytest.param(
            {},
            {"containers": [container(), container("b")]},
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
            id="one more container",
        ),
        pytest.param(
            {"containers": [container(resources={"requests": {"memory": "1Gi"}})]},
            {"containers": [container(resources={"requests": {"memory": "1073741824"}})]},
            [],
            id="the same amount in other words",
        ),
        pytest.param(
            {"containers": [container(resources={"requests": {"memory": "1Gi"}})]},
            {"containers": [container(resources={"requests": {"memory": "1G"}})]},
            [IMMUTABLE],
            id="another amount",
        ),
    ],
)
def test_put(old: Doc, new: Doc, expected: list[str]) -> None:
    assert put_faults(new, old) == expected


def node_affinity(*expressions: str) -> Doc:
    term = {"matchExpressions": [{"key": key, "operator": "Exists"} for key in expressions]}
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({}, {"nodeSelector": {"a": "b"}}, [], id="a first label"),
        pytest.param({}, node_affinity("a"), [], id="a first affinity"),
        pytest.param(node_affinity("a"), node_affinity("a", "b"), [], id="one more expression"),
        pytest.param(
            {"nodeSelector": {"a": "b"}},
            {"nodeSelector": {"a": "c"}},
            [
                'spec.nodeSelector: Invalid value: {"a":"c"}: '
                "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            ],
            id="another label",
        ),
        pytest.param(
            node_affinity("a"),
            node_affinity("b"),
            [
                f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]: Invalid value: {{...}}: "
                "only additions are allowed (no mutations or deletions)"
            ],
            id="another expression",
        ),
        pytest.param(
            node_affinity("a"),
            {},
            [
                f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: Invalid value: null: "
                "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
            ],
            id="no affinity any more",
        ),
    ],
)
def test_a_gated_pod_may_narrow_its_choice_of_nodes(old: Doc, new: Doc, expected: list[str]) -> None:
    gated = {"schedulingGates": [{"name": "a"}]}
    assert put_faults({**gated, **new}, {**gated, **old}) == expected
    assert not old or put_faults(new, old) == [IMMUTABLE]


def test_mirror_annotations_stay() -> None:
    meta = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    rule = STRATEGY.validate_update
    assert change_faults(rule, created(nodeName="n"), created(meta, nodeName="n")) == [
        "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or update mirror pod annotation"
    ]


def ended(code: int = 0) -> list[Doc]:
    return [{"name": "a", "state": {"terminated": {"exitCode": code}}}]


RUNNING = [{"name": "a", "state": {"running": {}}}]
BACK = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"


@pytest.mark.parametrize(
    ("was", "status", "spec", "expected"),
    [
        pytest.param({}, {"phase": "Running", "conditions": [{"type": "Ready"}]}, {}, [], id="a pod that runs"),
        pytest.param({}, {"podIPs": [{"ip": "1.1.1.1"}, {"ip": "::1"}]}, {}, [], id="an address of each family"),
        pytest.param(
            {},
            {"podIPs": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.2"}]},
            {},
            ["status.podIPs: Invalid value: [...]: may specify no more than one IP for each IP family"],
            id="two addresses of one family",
        ),
        pytest.param(
            {},
            {"qosClass": "Guaranteed"},
            {},
            ['status.qosClass: Invalid value: "Guaranteed": field is immutable'],
            id="another class of service",
        ),
        pytest.param(
            {},
            {"hostIP": "1.1.1.1", "hostIPs": [{"ip": "1.1.1.2"}], "observedGeneration": -1},
            {},
            [
                'status.hostIPs[0].ip: Invalid value: "1.1.1.2": must be equal to `hostIP`',
                "status.observedGeneration: Invalid value: -1: must be a non-negative integer",
            ],
            id="a host with two first addresses",
        ),
        pytest.param(
            {},
            {"nominatedNodeName": "n2"},
            {"nodeName": "n1"},
            ["status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"],
            id="a bound pod waits for no node",
        ),
        pytest.param(
            {"containerStatuses": ended()},
            {"containerStatuses": RUNNING},
            {"restartPolicy": "Never"},
            [BACK],
            id="a container that never restarts stays ended",
        ),
        pytest.param(
            {"containerStatuses": ended(1)},
            {"containerStatuses": RUNNING},
            {"restartPolicy": "OnFailure"},
            [],
            id="a failed container comes back",
        ),
        pytest.param(
            {"containerStatuses": ended()},
            {"containerStatuses": RUNNING},
            {"restartPolicy": "OnFailure"},
            [BACK],
            id="a container that is done stays ended",
        ),
    ],
)
def test_status(was: Doc, status: Doc, spec: Doc, expected: list[str]) -> None:
    old = created(**spec)
    old["status"] |= was
    new = copy.deepcopy(old)
    new["status"] = status
    STRATEGY.prepare_status(new, old)
    assert change_faults(STRATEGY.validate_status, new, old) == expected


def test_a_status_keeps_what_it_leaves_out() -> None:
    old = created({"ownerReferences": [{"name": "o"}]})
    old["status"] |= {"observedGeneration": 2, "conditions": [{"type": "Ready", "observedGeneration": 1}]}
    new: Doc = {"metadata": {"name": "p"}, "spec": {}, "status": {"conditions": [{"type": "Ready"}]}}
    STRATEGY.prepare_status(new, old)
    assert new["spec"] == old["spec"]
    assert new["metadata"]["ownerReferences"] == [{"name": "o"}]
    assert new["status"] == {
        "qosClass": "BestEffort",
        "observedGeneration": 2,
        "conditions": [{"type": "Ready", "observedGeneration": 1}],
    }


def of(**requests: str) -> Doc:
    return {"containers": [container(resources={"requests": requests})]}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(of(cpu="1"), of(cpu="2"), [], id="more cpu"),
        pytest.param(of(cpu="1"), of(cpu="1", memory="1Gi"), [], id="memory as well"),
        pytest.param(of(cpu="1"), {**of(cpu="2"), "hostname": "other"}, [], id="other changes are dropped"),
        pytest.param(
            of(cpu="1"),
            of(memory="1Gi"),
            ["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
            id="cpu taken away",
        ),
        pytest.param(
            of(cpu="1"),
            {"containers": [container()]},
            [
                "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
                'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
            ],
            id="another class of service",
        ),
        pytest.param(
            of(cpu="1"),
            of(cpu="1", **{"ephemeral-storage": "1Gi"}),
            ["spec: Forbidden: only cpu and memory resources are mutable"],
            id="storage is not resized",
        ),
        pytest.param(
            of(cpu="1"),
            {"containers": [container("b", resources={"requests": {"cpu": "1"}})]},
            ["spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"],
            id="another container",
        ),
        pytest.param(
            {**of(cpu="1"), "resources": {"limits": {"cpu": "2"}}},
            {**of(cpu="1"), "resources": {"limits": {"cpu": "3"}}},
            [],
            id="more for the whole pod",
        ),
        pytest.param(
            {**of(cpu="1"), "resources": {"limits": {"cpu": "2"}}},
            of(cpu="1"),
            ["spec.resources: Forbidden: pod-level resources cannot be removed"],
            id="nothing for the whole pod any more",
        ),
    ],
)
def test_resize(old: Doc, new: Doc, expected: list[str]) -> None:
    stored, asked = created(**old), created(**new)
    STRATEGY.prepare_resize(asked, stored)
    assert change_faults(STRATEGY.validate_resize, asked, stored) == expected


def test_a_resize_changes_resources_only() -> None:
    stored, asked = created({"labels": {"a": "b"}}, **of(cpu="1")), created(**of(cpu="2"), hostname="other")
    STRATEGY.prepare_resize(asked, stored)
    expected = copy.deepcopy(stored)
    expected["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert asked == expected


def test_a_node_that_cannot_resize_refuses() -> None:
    stored, asked = created(**of(cpu="1")), created(**of(cpu="2"))
    stored["status"]["containerStatuses"] = RUNNING
    STRATEGY.prepare_resize(asked, stored)
    found = change_faults(STRATEGY.validate_resize, asked, stored)
    assert found == ["spec: Forbidden: Pod running on node without support for resize"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1000m"}}, True, id="one amount, two spellings"),
        pytest.param({"sizeLimit": "1Ki"}, {"sizeLimit": "1024"}, True, id="a size limit"),
        pytest.param({"name": "1"}, {"name": "1000m"}, False, id="a name is no amount"),
        pytest.param({"a": {}}, {}, False, id="something empty is there"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, False, id="a shorter list"),
    ],
)
def test_same(one: Any, other: Any, expected: bool) -> None:
    assert same(one, other) is expected
