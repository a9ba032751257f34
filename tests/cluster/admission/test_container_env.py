"""Environment variables: names and sources."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from tests.cluster.admission.pod_specs import container, container_faults, faults, pod_spec

SOURCES = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
FIELDS = ", ".join(
    f'"{name}"'
    for name in (
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    )
)


def field(path: str, **more: Any) -> Doc:
    return {"fieldRef": {"fieldPath": path, **more}}


def resource(name: str, divisor: str = "0") -> Doc:
    return {"resourceFieldRef": {"resource": name, "divisor": divisor}}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(field("metadata.name"), [], id="the pod's name"),
        pytest.param(field("spec.host"), [], id="the old word for the node's name"),
        pytest.param(field("metadata.labels['a']"), [], id="one label"),
        pytest.param(field("metadata.annotations['Example.com/A']"), [], id="an annotation key is taken in lower case"),
        pytest.param(
            field("metadata.labels"),
            [f'.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported values: {FIELDS}'],
            id="not all labels",
        ),
        pytest.param(
            field("metadata.labels['']"),
            [
                '.fieldRef: Invalid value: "": name part must be non-empty',
                ".fieldRef: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.',"
                " and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
                "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
            id="a label without a key",
        ),
        pytest.param(
            field("spec.nodeName['a']"),
            [
                ".fieldRef.fieldPath: Invalid value: \"spec.nodeName['a']\": error converting fieldPath: "
                "field label does not support subscript: spec.nodeName['a']"
            ],
            id="only labels and annotations have keys",
        ),
        pytest.param(
            field("spec.hostname"),
            [
                '.fieldRef.fieldPath: Invalid value: "spec.hostname": error converting fieldPath: '
                "field label not supported: spec.hostname"
            ],
            id="a field that is not offered",
        ),
        pytest.param(
            field("metadata.name", apiVersion="v2"),
            [
                '.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: '
                "unsupported pod version: v2"
            ],
            id="another version",
        ),
        pytest.param(field(""), [".fieldRef.fieldPath: Required value"], id="no field"),
        pytest.param(resource("limits.memory", "1Mi"), [], id="memory in mebibytes"),
        pytest.param(resource("limits.hugepages-2Mi", "1Gi"), [], id="hugepages in gibibytes"),
        pytest.param(
            resource("requests.cpu", "1Mi"),
            [
                '.resourceFieldRef.divisor: Invalid value: "requests.cpu": '
                "only divisor's values 1m and 1 are supported with the cpu resource"
            ],
            id="cpu in mebibytes",
        ),
        pytest.param(
            resource("limits.ephemeral-storage", "2"),
            [
                '.resourceFieldRef.divisor: Invalid value: "limits.ephemeral-storage": only divisor\'s values '
                "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the local "
                "ephemeral storage resource"
            ],
            id="storage in twos",
        ),
        pytest.param(
            resource("limits.gpu", "7"),
            [
                '.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: "limits.cpu", '
                '"limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", '
                '"requests.memory"'
            ],
            id="an unknown resource has no divisor to be wrong",
        ),
        pytest.param(resource(""), [".resourceFieldRef.resource: Required value"], id="no resource"),
        pytest.param(
            {"configMapKeyRef": {"name": "c", "key": ""}}, [".configMapKeyRef.key: Required value"], id="no key"
        ),
        pytest.param(
            {"secretKeyRef": {"name": "c", "key": ".."}},
            [".secretKeyRef.key: Invalid value: \"..\": must not be '..'"],
            id="a key that climbs",
        ),
        pytest.param({}, [f': Invalid value: "": must specify one of: {SOURCES}'], id="a source of no kind"),
        pytest.param(
            {**field("metadata.uid"), **resource("limits.cpu")},
            [': Invalid value: "": may not have more than one field specified at a time'],
            id="two sources",
        ),
        pytest.param({"fileKeyRef": {"volumeName": "data", "path": "f", "key": "K"}}, [], id="a file"),
        pytest.param(
            {"fileKeyRef": {"volumeName": "nope", "path": "../f", "key": "a=b"}},
            [
                '.fileKeyRef.key: Invalid value: "a=b": '
                "a valid environment variable name must consist only of printable ASCII characters other than '='",
                ".fileKeyRef.path: Invalid value: \"../f\": must not contain '..'",
                '.fileKeyRef.volumeName: Not found: "nope"',
            ],
            id="a file that is not there",
        ),
        pytest.param(
            {"fileKeyRef": {"volumeName": "disk", "path": "", "key": ""}},
            [
                ".fileKeyRef.key: Required value",
                ".fileKeyRef.path: Required value",
                '.fileKeyRef.volumeName: Invalid value: "disk": referenced volume must be of type emptyDir',
            ],
            id="a file of a volume that is no emptyDir",
        ),
    ],
)
def test_sources_of_a_value(source: Doc, expected: list[str]) -> None:
    found = container_faults(env=[{"name": "A", "valueFrom": source}])
    assert found == [f"env[0].valueFrom{fault}" for fault in expected]


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        pytest.param({"name": "a b-c.1", "value": "x"}, [], id="almost any name goes"),
        pytest.param({"name": ""}, ["env[0].name: Required value"], id="no name"),
        pytest.param(
            {"name": "A", "value": "x", "valueFrom": field("metadata.name")},
            ['env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
            id="a value and a source",
        ),
    ],
)
def test_variables(variable: Doc, expected: list[str]) -> None:
    assert container_faults(env=[variable]) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param({"prefix": "P_", "configMapRef": {"name": "c"}}, [], id="a config map with a prefix"),
        pytest.param({"secretRef": {"name": "s-"}}, [], id="a name that ends in a dash passes as a prefix of names"),
        pytest.param({"secretRef": {}}, ["envFrom[0].secretRef.name: Required value"], id="no name"),
        pytest.param(
            {}, ['envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'], id="no source"
        ),
        pytest.param(
            {"secretRef": {"name": "s"}, "configMapRef": {"name": "c"}},
            ['envFrom: Invalid value: "": may not have more than one field specified at a time'],
            id="two sources",
        ),
    ],
)
def test_whole_sources(source: Doc, expected: list[str]) -> None:
    assert container_faults(envFrom=[source]) == expected


def test_files_of_init_containers_are_looked_up_too() -> None:
    source = {"fileKeyRef": {"volumeName": "v", "path": "f", "key": "K"}}
    init = container("i", env=[{"name": "A", "valueFrom": source}])
    assert faults(pod_spec(initContainers=[init])) == [
        'spec.initContainers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: "v"'
    ]
