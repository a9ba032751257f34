"""The other fields of a pod spec: names, DNS, scheduling, host and operating system."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from tests.cluster.admission.pod_specs import container
from tests.cluster.admission.whole_pods import faults, template_faults

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
WINDOWS = "Forbidden: cannot be set for a windows pod"
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="a pod of one container is enough"),
        pytest.param(
            {"restartPolicy": "always"},
            ['restartPolicy: Unsupported value: "always": supported values: "Always", "OnFailure", "Never"'],
            id="policies have capitals",
        ),
        pytest.param(
            {"dnsPolicy": "None"},
            ["dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
            id="no DNS policy asks for a configuration",
        ),
        pytest.param(
            {"dnsPolicy": "None", "dnsConfig": {}},
            [
                "dnsConfig.nameservers: Required value: "
                "must provide at least one DNS nameserver when `dnsPolicy` is None"
            ],
            id="and for a name server in it",
        ),
        pytest.param(
            {"dnsConfig": {"nameservers": ["1.1.1.1"] * 4, "searches": [".", "a_b."], "options": [{}]}},
            [
                'dnsConfig.nameservers: Invalid value: ["1.1.1.1","1.1.1.1","1.1.1.1","1.1.1.1"]: '
                "must not have more than 3 nameservers",
                "dnsConfig.options[0]: Required value: must not be empty",
            ],
            id="libc knows three name servers; searches may be odd",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 0},
            ["activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
            id="a deadline lies in the future",
        ),
        pytest.param({"hostname": "a_b"}, [f'hostname: Invalid value: "a_b": {LABEL}'], id="a hostname is a label"),
        pytest.param(
            {"hostnameOverride": "a.b", "hostNetwork": True, "setHostnameAsFQDN": True},
            [
                "hostnameOverride: Forbidden: may not be specified when hostNetwork is true",
                "hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
            ],
            id="one name at a time",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "010.0.0.1", "hostnames": ["ok"]}]},
            ['hostAliases[0].ip: Invalid value: "010.0.0.1": must not have leading 0s'],
            id="an alias has a plain address",
        ),
        pytest.param(
            {"preemptionPolicy": "Maybe"},
            ['preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"'],
            id="preemption or not",
        ),
        pytest.param(
            {"overhead": {"memory": "-1"}},
            ['overhead.limits[memory]: Invalid value: "-1": must be greater than or equal to 0'],
            id="overhead is reported as a limit",
        ),
        pytest.param(
            {"nodeName": "n", "schedulingGates": [{"name": "a"}, {"name": "a"}]},
            [
                "nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
                'schedulingGates[1]: Duplicate value: "a"',
            ],
            id="a gated pod has no node",
        ),
        pytest.param(
            {"ephemeralContainers": [{"name": "e", "image": "i", "resources": {}}]},
            ["ephemeralContainers: Forbidden: cannot be set on create"],
            id="debugging comes later",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "a"}, {"name": "a", "resourceClaimName": "c"}]},
            [
                "resourceClaims[0]: Invalid value: {...}: "
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
                'resourceClaims[1].name: Duplicate value: "a"',
            ],
            id="a claim has a name and a source",
        ),
    ],
)
def test_fields(spec: Doc, expected: list[str]) -> None:
    assert faults(**spec) == expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param({"operator": "Exists"}, [], id="everything is tolerated"),
        pytest.param({"key": "gpu", "value": "a", "effect": "NoSchedule"}, [], id="no operator means Equal"),
        pytest.param(
            {"operator": "Equal"},
            [
                'operator: Invalid value: "Equal": operator must be Exists when `key` is empty, '
                'which means "match all values and all keys"'
            ],
            id="no key, no value",
        ),
        pytest.param(
            {"key": "gpu", "tolerationSeconds": 5, "effect": "NoSchedule"},
            ["effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set"],
            id="seconds are for evictions",
        ),
        pytest.param(
            {"key": "gpu", "operator": "Exists", "value": "a"},
            ["operator: Invalid value: \"a\": value must be empty when `operator` is 'Exists'"],
            id="Exists has no value",
        ),
        pytest.param(
            {"key": "gpu", "operator": "Gt", "value": "1"},
            ['operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"'],
            id="comparisons are refused and listed",
        ),
        pytest.param(
            {"key": "gpu", "operator": "Like", "effect": "NoRun"},
            [
                'effect: Unsupported value: "NoRun": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
                'operator: Unsupported value: "Like": supported values: "Equal", "Exists"',
            ],
            id="unknown words",
        ),
    ],
)
def test_tolerations(toleration: Doc, expected: list[str]) -> None:
    assert [fault.removeprefix("tolerations[0].") for fault in faults(tolerations=[toleration])] == expected


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        pytest.param({"labelSelector": {}, "minDomains": 2, "nodeTaintsPolicy": "Honor"}, [], id="a full constraint"),
        pytest.param({"maxSkew": 0}, ["maxSkew: Invalid value: 0: must be greater than zero"], id="some skew"),
        pytest.param({"topologyKey": ""}, ["topologyKey: Required value: can not be empty"], id="a key"),
        pytest.param(
            {"whenUnsatisfiable": "ScheduleAnyway", "minDomains": 0},
            [
                "minDomains: Invalid value: 0: can only use minDomains if whenUnsatisfiable=DoNotSchedule, "
                "not ScheduleAnyway",
                "minDomains: Invalid value: 0: must be greater than zero",
            ],
            id="domains count for hard constraints",
        ),
        pytest.param(
            {"nodeAffinityPolicy": "ignore"},
            ['nodeAffinityPolicy: Unsupported value: "ignore": supported values: "Honor", "Ignore"'],
            id="policies have capitals",
        ),
    ],
)
def test_spread(constraint: Doc, expected: list[str]) -> None:
    found = faults(topologySpreadConstraints=[{**SPREAD, **constraint}])
    assert [fault.removeprefix("topologySpreadConstraints[0].") for fault in found] == expected


def test_a_spread_constraint_occurs_once() -> None:
    path = "topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}"
    assert faults(topologySpreadConstraints=[SPREAD, SPREAD]) == [f'{path}: Duplicate value: "{{zone, DoNotSchedule}}"']


def with_context(**context: Any) -> Doc:
    return {"securityContext": context}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            with_context(runAsUser=-1, supplementalGroups=[2**31]),
            [
                "securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
                "securityContext.supplementalGroups[0]: Invalid value: 2147483648: "
                "must be between 0 and 2147483647, inclusive",
            ],
            id="ids fit in 31 bits",
        ),
        pytest.param(
            with_context(fsGroupChangePolicy="X", seLinuxChangePolicy="MountOption"),
            [
                'securityContext.fsGroupChangePolicy: Unsupported value: "X": supported values: "Always", '
                '"OnRootMismatch"',
                'securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive"',
            ],
            id="policies are known ones",
        ),
        pytest.param(
            {
                "hostNetwork": True,
                "hostIPC": True,
                **with_context(sysctls=[{"name": "net/core/x"}, {"name": "kernel.sem"}]),
            },
            [
                'securityContext.sysctls[0].name: Invalid value: "net/core/x": '
                "may not be specified when 'hostNetwork' is true",
                'securityContext.sysctls[1].name: Invalid value: "kernel.sem": '
                "may not be specified when 'hostIPC' is true",
            ],
            id="the host's own settings stay the host's",
        ),
        pytest.param(
            with_context(sysctls=[{"name": "kernel.shm"}, {"name": "kernel.shm"}, {}]),
            [
                'securityContext.sysctls[1].name: Duplicate value: "kernel.shm"',
                "securityContext.sysctls[2].name: Required value",
            ],
            id="a setting occurs once",
        ),
        pytest.param(
            {"hostPID": True, "shareProcessNamespace": True},
            [
                "securityContext.shareProcessNamespace: Invalid value: true: "
                "ShareProcessNamespace and HostPID cannot both be enabled"
            ],
            id="one process namespace",
        ),
        pytest.param(
            {"hostUsers": False, "hostNetwork": True, "hostPID": True},
            [
                "HostPID: Forbidden: when `hostUsers` is false",
                "hostNetwork: Forbidden: when `hostUsers` is false",
            ],
            id="own users, own namespaces",
        ),
        pytest.param(
            {"os": {"name": "macos"}},
            ['os: Unsupported value: "macos": supported values: "linux", "windows"'],
            id="two operating systems",
        ),
        pytest.param(
            {"os": {"name": "windows"}, "hostIPC": True, **with_context(fsGroup=1)},
            [f"hostIPC: {WINDOWS}", f"securityContext.fsGroup: {WINDOWS}"],
            id="windows knows no groups",
        ),
        pytest.param(
            {"os": {"name": "linux"}, **with_context(windowsOptions={})},
            ["securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"],
            id="linux has no windows",
        ),
        pytest.param(
            with_context(windowsOptions={"hostProcess": True}),
            ["hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"],
            id="host processes share the host's network",
        ),
    ],
)
def test_host(spec: Doc, expected: list[str]) -> None:
    assert faults(**spec) == expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({"controller.kubernetes.io/pod-deletion-cost": "-5"}, [], id="a cost below zero"),
        pytest.param(
            {"controller.kubernetes.io/pod-deletion-cost": "+5"},
            [
                "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: "
                'Invalid value: "+5": must be a 32bit integer'
            ],
            id="a cost is a plain number",
        ),
        pytest.param(
            {"kubernetes.io/config.mirror": "x"},
            [
                "metadata.annotations[kubernetes.io/config.mirror]: "
                'Invalid value: "x": must set spec.nodeName if mirror pod annotation is set'
            ],
            id="a mirror pod stands on a node",
        ),
        pytest.param(
            {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"},
            ["securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match"],
            id="annotation and field agree",
        ),
    ],
)
def test_annotations(annotations: Doc, expected: list[str]) -> None:
    context = {"seccompProfile": {"type": "RuntimeDefault"}}
    assert faults({"annotations": annotations}, securityContext=context) == expected


def test_a_template_reports_labels_without_metadata_and_forbids_debugging() -> None:
    found = template_faults({"labels": {"a": "b c"}}, ephemeralContainers=[container("e")])
    assert found[0].startswith('labels: Invalid value: "b c": a valid label')
    assert found[1] == "spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"


def test_host_ports_of_a_template_may_be_left_to_its_pods() -> None:
    ports = [{"containerPort": 80}]
    assert template_faults(hostNetwork=True, containers=[container(ports=ports)]) == []
    assert faults(hostNetwork=True, containers=[container(ports=[{"containerPort": 80, "hostPort": 81}])]) == [
        "containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"
    ]
