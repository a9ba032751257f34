"""Priority, tolerations, runtime classes, topology labels and resizes: what plugins make of a pod."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugins.runtime_class import _covers, _merged
from bayplan.model.errors import Forbidden
from tests.cluster.admission.plugin_bench import container, pod, submit, thing

NOT_READY = {
    "key": "node.kubernetes.io/not-ready",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}
UNREACHABLE = NOT_READY | {"key": "node.kubernetes.io/unreachable"}


def priority_class(name: str, value: int, **fields: Any) -> Doc:
    return thing("PriorityClass", name, value=value, **{"preemptionPolicy": "PreemptLowerPriority", **fields})


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        pytest.param({}, [], (None, 0, "PreemptLowerPriority"), id="no class, no priority"),
        pytest.param(
            {"priorityClassName": "high"},
            [priority_class("high", 1000, preemptionPolicy="Never")],
            ("high", 1000, "Never"),
            id="a named class gives its number and policy",
        ),
        pytest.param(
            {"priorityClassName": "high", "priority": 1000},
            [priority_class("high", 1000)],
            ("high", 1000, "PreemptLowerPriority"),
            id="the class's own number may be repeated",
        ),
        pytest.param(
            {},
            [priority_class("b", 7, globalDefault=True), priority_class("a", 9, globalDefault=True)],
            ("b", 7, "PreemptLowerPriority"),
            id="of two default classes the lower one counts",
        ),
    ],
)
def test_priority_comes_from_the_class(spec: Doc, classes: list[Doc], expected: tuple[Any, ...]) -> None:
    made = submit(pod(**spec), *classes)[0].doc["spec"]
    assert (made.get("priorityClassName"), made["priority"], made["preemptionPolicy"]) == expected


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"priorityClassName": "none"}, "no PriorityClass with name none was found", id="an unknown class"),
        pytest.param(
            {"priorityClassName": "high", "priority": 999},
            "the integer value of priority (999) must not be provided in pod spec; "
            "priority admission controller computed 1000 from the given PriorityClass name",
            id="another number than the class's",
        ),
        pytest.param(
            {"priorityClassName": "high", "preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
            "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
            id="another policy than the class's",
        ),
        pytest.param(
            {"priority": 1},
            "the integer value of priority (1) must not be provided in pod spec; "
            "priority admission controller computed 0 from the given PriorityClass name",
            id="a number without class",
        ),
    ],
)
def test_a_pod_cannot_choose_its_own_priority(spec: Doc, why: str) -> None:
    with pytest.raises(Forbidden) as refused:
        submit(pod(**spec), priority_class("high", 1000))
    assert refused.value.message == f'pods "p" is forbidden: {why}'


def test_an_update_keeps_the_priority_that_the_pod_was_given() -> None:
    old = pod(priority=5, preemptionPolicy="Never", tolerations=[NOT_READY, UNREACHABLE])
    made = submit(pod(), old=old)[0].doc["spec"]
    assert (made["priority"], made["preemptionPolicy"]) == (5, "Never")


def test_there_is_one_default_priority_class() -> None:
    first = priority_class("first", 1, globalDefault=True)
    with pytest.raises(Forbidden) as refused:
        submit(priority_class("second", 2, globalDefault=True), first)
    assert refused.value.message == (
        'priorityclasses.scheduling.k8s.io "second" is forbidden: '
        "PriorityClass first is already marked as default. Only one default can exist"
    )
    submit(first | {"description": "still the one"}, first, old=first)


@pytest.mark.parametrize(
    ("own", "added"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="both are added"),
        pytest.param([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}], [UNREACHABLE], id="any effect"),
        pytest.param([{"operator": "Exists"}], [], id="a pod that tolerates everything needs nothing"),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}],
            [NOT_READY, UNREACHABLE],
            id="another effect does not help",
        ),
    ],
)
def test_failing_nodes_are_tolerated_for_a_while(own: list[Doc], added: list[Doc]) -> None:
    assert submit(pod(tolerations=own))[0].doc["spec"]["tolerations"] == [*own, *added]


def runtime_class(**fields: Any) -> Doc:
    return thing("RuntimeClass", "kata", handler="h", **fields)


def test_a_runtime_class_gives_overhead_selector_and_tolerations() -> None:
    gpu = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    given_class = runtime_class(
        overhead={"podFixed": {"cpu": "250m"}}, scheduling={"nodeSelector": {"kata": "true"}, "tolerations": [gpu]}
    )
    request, _ = submit(pod(runtimeClassName="kata", nodeSelector={"zone": "a"}), given_class)
    spec = request.doc["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"zone": "a", "kata": "true"}
    assert spec["tolerations"] == [NOT_READY, UNREACHABLE, gpu]


@pytest.mark.parametrize(
    ("spec", "fields", "why"),
    [
        pytest.param({"runtimeClassName": "x"}, {}, 'pod rejected: RuntimeClass "x" not found', id="an unknown class"),
        pytest.param(
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            {"overhead": {"podFixed": {"cpu": "250m"}}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="another overhead than the class's",
        ),
        pytest.param(
            {"overhead": {"cpu": "1"}},
            {},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            id="overhead without class",
        ),
        pytest.param(
            {"runtimeClassName": "kata", "nodeSelector": {"kata": "no"}},
            {"scheduling": {"nodeSelector": {"kata": "true"}}},
            "conflict: runtimeClass.scheduling.nodeSelector[kata] = true; pod.spec.nodeSelector[kata] = no",
            id="a selector that contradicts the class's",
        ),
    ],
)
def test_a_pod_must_fit_its_runtime_class(spec: Doc, fields: Doc, why: str) -> None:
    with pytest.raises(Forbidden) as refused:
        submit(pod(**spec), runtime_class(**fields))
    assert refused.value.message == f'pods "p" is forbidden: {why}'


def test_the_class_s_overhead_may_be_repeated_in_another_unit() -> None:
    given_class = runtime_class(overhead={"podFixed": {"memory": "1Gi"}})
    submit(pod(runtimeClassName="kata", overhead={"memory": "1024Mi"}), given_class)


tolerations = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "key": st.sampled_from(["a", "b"]),
            "operator": st.sampled_from(["Exists", "Equal"]),
            "value": st.sampled_from(["x", "y"]),
            "effect": st.sampled_from(["NoSchedule", "NoExecute"]),
            "tolerationSeconds": st.integers(0, 2),
        },
    ),
    max_size=5,
)


@given(tolerations)
def test_merged_tolerations_lose_nothing_but_what_is_covered(own: list[Doc]) -> None:
    kept = _merged(own)
    assert all(one in own for one in kept)
    assert all(any(_covers(wide, one) for wide in kept) for one in own)


def test_a_pod_born_on_a_node_carries_its_zone() -> None:
    node = thing("Node", "n1", status={})
    node["metadata"]["labels"] = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "o": "x"}
    request, _ = submit(pod(nodeName="n1"), node)
    assert request.doc["metadata"]["labels"] == {
        "topology.kubernetes.io/zone": "z",
        "topology.kubernetes.io/region": "r",
    }
    assert "labels" not in submit(pod(nodeName="unknown"), node)[0].doc["metadata"]


@pytest.mark.parametrize(
    ("labels", "why", "reason"),
    [
        pytest.param(
            {},
            "node didn't have enough allocatable resources: cpu, requested: 3000, allocatable: 2000; "
            "memory, requested: 2048, allocatable: 1024",
            "NodeCapacity",
            id="no room",
        ),
        pytest.param(
            {"kubernetes.io/os": "windows"},
            'pod resize is only supported on linux nodes, node "n1" is "windows"',
            "UnsupportedPlatform",
            id="not on Windows",
        ),
    ],
)
def test_a_resize_must_suit_the_node(labels: Doc, why: str, reason: str) -> None:
    node = thing("Node", "n1", status={"allocatable": {"cpu": "2", "memory": "1Ki"}})
    node["metadata"]["labels"] = labels
    larger = pod(container(resources={"requests": {"cpu": "3", "memory": "2Ki"}}), nodeName="n1")
    with pytest.raises(Forbidden) as refused:
        submit(larger, node, old=pod(nodeName="n1"), subresource="resize")
    assert refused.value.message == f'pods "p" is forbidden: {why}'
    assert [cause.reason for cause in refused.value.causes] == [reason]


def test_a_resize_needs_the_node_only_if_something_changes() -> None:
    submit(pod(nodeName="gone"), old=pod(nodeName="gone"), subresource="resize")
    with pytest.raises(Forbidden, match='node "gone" not found'):
        submit(pod(nodeName="gone", priority=0), old=pod(nodeName="gone"), subresource="resize")
