"""Rules of containers as a list: identity, the three kinds, restarts; and their defaults."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.pods.containers import default_container
from tests.cluster.admission.pod_specs import container, container_faults, faults, pod_spec

EXEC = {"exec": {"command": ["true"]}}
NO_SIDECAR = "Forbidden: may not be set for init containers without restartPolicy=Always"
NOT_EPHEMERAL = "Forbidden: cannot be set for an Ephemeral Container"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(pod_spec(), [], id="a name and an image are enough"),
        pytest.param(
            {"containers": None, "restartPolicy": "Always"},
            ["spec.containers: Required value"],
            id="a pod needs a container",
        ),
        pytest.param(
            pod_spec(container(""), container("")),
            [
                "spec.containers[0].name: Required value",
                'spec.containers[1].name: Duplicate value: ""',
                "spec.containers[1].name: Required value",
            ],
            id="two nameless containers also share their name",
        ),
        pytest.param(
            pod_spec(container(), initContainers=[container(), container("b"), container("b")]),
            [
                'spec.initContainers[0].name: Duplicate value: "a"',
                'spec.initContainers[2].name: Duplicate value: "b"',
            ],
            id="init containers share the names of the others",
        ),
        pytest.param(
            pod_spec(container(image=" redis")),
            ['spec.containers[0].image: Invalid value: " redis": must not have leading or trailing whitespace'],
            id="a pod's image has no whitespace around it",
        ),
        pytest.param(
            pod_spec(initContainers=[container("i", livenessProbe=dict(EXEC), lifecycle={"preStop": dict(EXEC)})]),
            [f"spec.initContainers[0].lifecycle: {NO_SIDECAR}", f"spec.initContainers[0].livenessProbe: {NO_SIDECAR}"],
            id="an init container that ends has no probes and hooks",
        ),
        pytest.param(
            pod_spec(initContainers=[container("i", restartPolicy="Always", livenessProbe=dict(EXEC))]),
            [],
            id="a sidecar has probes",
        ),
        pytest.param(
            pod_spec(
                initContainers=[
                    container("i", resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}])
                ]
            ),
            [
                'spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": '
                "must not be set to 'RestartContainer' for non-sidecar initContainers"
            ],
            id="an init container that ends is not restarted for a resize",
        ),
        pytest.param(
            pod_spec(
                ephemeralContainers=[
                    container(
                        targetContainerName="b",
                        ports=[{"containerPort": 80}],
                        lifecycle={},
                        volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": "x"}],
                    ),
                    container("debug", image="busybox "),
                ],
                volumes=[{"name": "v", "emptyDir": {}}],
            ),
            [
                f"spec.ephemeralContainers[0].lifecycle: {NOT_EPHEMERAL}",
                'spec.ephemeralContainers[0].name: Duplicate value: "a"',
                f"spec.ephemeralContainers[0].ports: {NOT_EPHEMERAL}",
                'spec.ephemeralContainers[0].targetContainerName: Not found: "b"',
                f"spec.ephemeralContainers[0].volumeMounts[0].subPath: {NOT_EPHEMERAL}",
                'spec.ephemeralContainers[1].image: Invalid value: "busybox ": '
                "must not have leading or trailing whitespace",
            ],
            id="an ephemeral container is for looking only",
        ),
    ],
)
def test_lists_of_containers(spec: Doc, expected: list[str]) -> None:
    assert faults(spec) == expected


def test_a_template_may_have_an_image_with_whitespace() -> None:
    assert faults(pod_spec(container(image=" redis")), template=True) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"image": ""}, ["image: Required value"], id="no image"),
        pytest.param({"name": "a.b"}, ['name: Invalid value: "a.b": must not contain dots'], id="a dotted name"),
        pytest.param(
            {"imagePullPolicy": "Often", "terminationMessagePolicy": "Log"},
            [
                'imagePullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent", "Never"',
                'terminationMessagePolicy: Unsupported value: "Log": supported values: "File", "FallbackToLogsOnError"',
            ],
            id="unknown policies",
        ),
        pytest.param(
            {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]},
            ["restartPolicy: Required value: must specify restartPolicy when restart rules are used"],
            id="restart rules need a policy",
        ),
        pytest.param(
            {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Stop"}] * 21},
            [
                *(
                    fault
                    for i in range(21)
                    for fault in (
                        f"restartPolicyRules[{i}].exitCodes: Required value: must be specified",
                        f'restartPolicyRules[{i}].action: Unsupported value: "Stop": '
                        'supported values: "Restart", "RestartAllContainers"',
                    )
                ),
                "restartPolicyRules: Too many: 21: must have at most 20 items",
            ],
            id="too many restart rules, each wrong",
        ),
        pytest.param(
            {
                "restartPolicy": "OnFailure",
                "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "Of", "values": [1] * 256}}],
            },
            [
                'restartPolicyRules[0].exitCodes.operator: Unsupported value: "Of": supported values: "In", "NotIn"',
                "restartPolicyRules[0].exitCodes.values: Too many: 256: must have at most 255 items",
            ],
            id="a restart rule with an unknown operator and too many codes",
        ),
        pytest.param(
            {"resizePolicy": [{"resourceName": "gpu", "restartPolicy": ""}, {"resourceName": "gpu"}]},
            [
                "resizePolicy: Required value",
                'resizePolicy: Unsupported value: "gpu": supported values: "cpu", "memory"',
                'resizePolicy[1]: Duplicate value: "gpu"',
            ],
            id="resize policies are for cpu and memory, once each",
        ),
    ],
)
def test_one_container(fields: dict[str, Any], expected: list[str]) -> None:
    assert container_faults(**fields) == sorted(expected)


def test_a_pod_that_never_restarts_cannot_restart_for_a_resize() -> None:
    policy = {"resourceName": "cpu", "restartPolicy": "RestartContainer"}
    assert faults(pod_spec(container(resizePolicy=[policy]), restartPolicy="Never")) == [
        'spec.containers[0].resizePolicy: Invalid value: "RestartContainer": '
        "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
    ]


def test_defaults_of_a_container_in_a_pod() -> None:
    one = container(
        image="redis",
        ports=[{"containerPort": 80}],
        env=[
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "B", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "f", "key": "K"}}},
        ],
        resources={"limits": {"cpu": "1", "memory": "1n"}, "requests": {"cpu": "500m"}},
        livenessProbe={"grpc": {"port": 1, "service": None}, "periodSeconds": 3},
        lifecycle={"preStop": {"httpGet": {"port": 80}}, "stopSignal": "SIGUSR1"},
    )
    default_container(one, template=False)
    assert one == {
        "name": "a",
        "image": "redis",
        "imagePullPolicy": "Always",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "env": [
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}},
            {
                "name": "B",
                "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "f", "key": "K", "optional": False}},
            },
        ],
        "resources": {"limits": {"cpu": "1", "memory": "1m"}, "requests": {"cpu": "500m", "memory": "1m"}},
        "livenessProbe": {
            "grpc": {"port": 1, "service": ""},
            "timeoutSeconds": 1,
            "periodSeconds": 3,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "lifecycle": {"preStop": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}}},
    }


@pytest.mark.parametrize(
    ("lifecycle", "left"),
    [
        pytest.param({"stopSignal": "SIGUSR1"}, None, id="nothing else was in it: it goes"),
        pytest.param({}, {}, id="it was empty before: it stays"),
    ],
)
def test_a_lifecycle_whose_stop_signal_is_dropped(lifecycle: Doc, left: Doc | None) -> None:
    one = container(lifecycle=lifecycle)
    default_container(one, template=True)
    assert one.get("lifecycle") == left


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "2", "1500m", "100u", "1Gi"]))
PROBE = st.fixed_dictionaries(
    {"tcpSocket": st.fixed_dictionaries({"port": st.integers(1, 65535)})},
    optional={"periodSeconds": st.integers(0, 9), "failureThreshold": st.integers(0, 9)},
)
CONTAINERS = st.fixed_dictionaries(
    {
        "name": st.just("a"),
        "image": st.text(min_size=1),
        "resources": st.fixed_dictionaries({}, optional={"limits": AMOUNTS}),
    },
    optional={"livenessProbe": PROBE, "ports": st.lists(st.fixed_dictionaries({"containerPort": st.integers(1, 99)}))},
)


@given(CONTAINERS, st.booleans())
def test_defaults_are_complete_after_one_pass_and_break_no_rule(one: Doc, template: bool) -> None:
    default_container(one, template=template)
    again = copy.deepcopy(one)
    default_container(again, template=template)
    assert again == one
    assert [fault for fault in faults(pod_spec(one), template=template) if "whitespace" not in fault] == []
    limits = one["resources"].get("limits", {})
    assert template or one["resources"].get("requests", {}) == limits
