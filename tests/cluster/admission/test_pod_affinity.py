"""Affinity: node selectors, pod terms, and label keys that become part of a selector."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.pods.affinity import PREFERRED, REQUIRED
from tests.cluster.admission.whole_pods import created, faults

APP = {"matchLabels": {"app": "a"}}
NAME_PART = "name part must be non-empty"


def node_faults(requirement: Doc, where: str = "matchExpressions") -> list[str]:
    term = {where: [requirement]}
    found = faults(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}})
    return [fault.removeprefix(f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].{where}[0].") for fault in found]


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        pytest.param({"key": "zone", "operator": "In", "values": ["a"]}, [], id="a value among some"),
        pytest.param({"key": "cores", "operator": "Gt", "values": ["8"]}, [], id="more than"),
        pytest.param(
            {"key": "zone", "operator": "In"},
            ["values: Required value: must be specified when `operator` is 'In' or 'NotIn'"],
            id="In needs values",
        ),
        pytest.param(
            {"key": "zone", "operator": "Exists", "values": ["a"]},
            ["values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"],
            id="Exists has none",
        ),
        pytest.param(
            {"key": "cores", "operator": "Lt", "values": ["1", "2"]},
            ["values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"],
            id="less than one number",
        ),
        pytest.param(
            {"key": "zone", "operator": "in", "values": ["a"]},
            ['operator: Invalid value: "in": not a valid selector operator'],
            id="operators have capitals",
        ),
    ],
)
def test_node_expressions(requirement: Doc, expected: list[str]) -> None:
    assert node_faults(requirement) == expected


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        pytest.param({"key": "metadata.name", "operator": "In", "values": ["n1"]}, [], id="one node by name"),
        pytest.param(
            {"key": "spec.x", "operator": "In", "values": ["n1"]},
            ['key: Invalid value: "spec.x": not a valid field selector key'],
            id="no other field",
        ),
        pytest.param(
            {"key": "metadata.name", "operator": "NotIn", "values": ["a", "b"]},
            [
                "values: Required value: must be only one value when `operator` is 'In' or 'NotIn' "
                "for node field selector"
            ],
            id="one name only",
        ),
        pytest.param(
            {"key": "metadata.name", "operator": "Exists"},
            ['operator: Invalid value: "Exists": not a valid selector operator'],
            id="a field always exists",
        ),
    ],
)
def test_node_fields(requirement: Doc, expected: list[str]) -> None:
    assert node_faults(requirement, "matchFields") == expected


def test_required_node_affinity_has_a_term() -> None:
    assert faults(affinity={"nodeAffinity": {REQUIRED: {}}}) == [
        f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: Required value: must have at least one node selector term"
    ]


def test_a_preference_may_hold_impossible_values_but_has_a_weight() -> None:
    wish = {"preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["no value!"]}]}}
    assert faults(affinity={"nodeAffinity": {PREFERRED: [wish]}}) == [
        f"affinity.nodeAffinity.{PREFERRED}[0].weight: Invalid value: 0: must be in the range 1-100"
    ]


def term_faults(**term: Any) -> list[str]:
    found = faults(
        {"labels": {"app": "a", "rev": "1"}},
        affinity={"podAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": APP, **term}]}},
    )
    return [fault.removeprefix(f"affinity.podAffinity.{REQUIRED}[0]") for fault in found]


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param({"namespaces": ["team"], "namespaceSelector": {}}, [], id="pods of other namespaces"),
        pytest.param({"matchLabelKeys": ["rev"], "mismatchLabelKeys": ["app"]}, [], id="keys beside a selector"),
        pytest.param(
            {"matchLabelKeys": ["app"]},
            ['[0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector'],
            id="a key that is selected already",
        ),
        pytest.param(
            {"matchLabelKeys": ["rev"], "mismatchLabelKeys": ["rev"]},
            [
                '.matchLabelKeys[0]: Invalid value: "rev": exists in both matchLabelKeys and mismatchLabelKeys',
                '[0]: Invalid value: "rev": exists in both matchLabelKeys and labelSelector',
            ],
            id="a key that must match and must not",
        ),
        pytest.param(
            {"labelSelector": None, "matchLabelKeys": ["rev"]},
            [".matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
            id="keys need a selector",
        ),
    ],
)
def test_pod_terms(term: Doc, expected: list[str]) -> None:
    assert term_faults(**term) == expected


def test_a_pod_term_needs_a_topology() -> None:
    found = term_faults(topologyKey="")
    assert found[-1] == ".topologyKey: Required value: can not be empty"
    assert f'.topologyKey: Invalid value: "": {NAME_PART}' in found


def test_label_keys_are_written_into_the_selector_of_a_new_pod() -> None:
    term = {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["rev", "absent"], "mismatchLabelKeys": ["app"]}
    stored = created({"labels": {"rev": "1", "app": "a"}}, affinity={"podAntiAffinity": {REQUIRED: [term]}})
    assert stored["spec"]["affinity"]["podAntiAffinity"][REQUIRED][0]["labelSelector"] == {
        "matchExpressions": [
            {"key": "rev", "operator": "In", "values": ["1"]},
            {"key": "app", "operator": "NotIn", "values": ["a"]},
        ]
    }
