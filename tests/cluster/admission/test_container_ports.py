"""Ports, mounts and devices: places that no two may share."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.pods.ports import default_host_ports
from tests.cluster.admission.pod_specs import container, container_faults, faults, pod_spec


def port(number: int = 80, **fields: Any) -> Doc:
    return {"containerPort": number, **fields}


def mount(path: str = "/a", name: str = "data", **fields: Any) -> Doc:
    return {"name": name, "mountPath": path, **fields}


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        pytest.param([port(name="http"), port(53, protocol="UDP")], [], id="good ports"),
        pytest.param([port(), port()], [], id="the same container port twice is no fault"),
        pytest.param(
            [port(name="http"), port(81, name="http")],
            ['ports[1].name: Duplicate value: "http"'],
            id="names are unique",
        ),
        pytest.param(
            [port(0, hostPort=70000, protocol="ICMP", name="1")],
            [
                "ports[0].containerPort: Required value",
                "ports[0].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
                'ports[0].name: Invalid value: "1": must contain at least one letter (a-z)',
                'ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
            ],
            id="each part is checked",
        ),
    ],
)
def test_ports(ports: list[Doc], expected: list[str]) -> None:
    assert container_faults(ports=ports) == expected


def test_containers_that_run_together_share_the_ports_of_the_host() -> None:
    spec = pod_spec(container(ports=[port(hostPort=80)]), container("b", ports=[port(hostPort=80)]))
    assert faults(spec) == ['spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"']


def test_init_containers_run_one_by_one_and_are_reported_as_the_first() -> None:
    twice = container("j", ports=[port(hostPort=80), port(hostPort=80)])
    spec = pod_spec(
        container(ports=[port(hostPort=80)]), initContainers=[container("i", ports=[port(hostPort=80)]), twice]
    )
    assert faults(spec) == ['spec.initContainers[0].ports[1].hostPort: Duplicate value: "TCP//80"']


@pytest.mark.parametrize(
    ("ports", "template", "expected"),
    [
        pytest.param([port(80, hostPort=80)], False, [], id="a pod whose host port is its own"),
        pytest.param([port(80)], True, [], id="a template may leave the host port to its pods"),
        pytest.param([port(80)], False, ["0"], id="a pod may not"),
        pytest.param([port(80, hostPort=81)], True, ["81"], id="a template may not ask for another one"),
    ],
)
def test_ports_on_the_network_of_the_host(ports: list[Doc], template: bool, expected: list[str]) -> None:
    text = "must match `containerPort` when `hostNetwork` is true"
    assert faults(pod_spec(container(ports=ports), hostNetwork=True), template=template) == [
        f"spec.containers[0].ports[0].hostPort: Invalid value: {value}: {text}" for value in expected
    ]


def test_the_host_port_is_the_container_port_unless_given() -> None:
    one = container(ports=[port(80), port(81, hostPort=82), port(0)])
    default_host_ports(one)
    assert one["ports"] == [port(80, hostPort=80), port(81, hostPort=82), port(0)]


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        pytest.param([mount(), mount("/b", subPath="x/y")], [], id="one volume in two places"),
        pytest.param(
            [mount(), mount()], ['volumeMounts[1].mountPath: Invalid value: "/a": must be unique'], id="one place twice"
        ),
        pytest.param(
            [mount("", "")],
            [
                "volumeMounts[0].mountPath: Required value",
                'volumeMounts[0].name: Not found: ""',
                "volumeMounts[0].name: Required value",
            ],
            id="a mount of nothing, nowhere",
        ),
        pytest.param(
            [mount(subPath="/x/..", subPathExpr="../$(A)")],
            [
                'volumeMounts.subPath: Invalid value: "/x/..": must be a relative path',
                "volumeMounts.subPath: Invalid value: \"/x/..\": must not contain '..'",
                "volumeMounts.subPathExpr: Invalid value: \"../$(A)\": must not contain '..'",
                'volumeMounts[0].subPathExpr: Invalid value: "../$(A)": subPathExpr and subPath are mutually exclusive',
            ],
            id="sub paths stay inside, and there is one of them",
        ),
        pytest.param(
            [mount(mountPropagation="Bidirectional"), mount("/b", mountPropagation="Both")],
            [
                "volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to "
                "privileged containers",
                'volumeMounts.mountPropagation: Unsupported value: "Both": '
                'supported values: "Bidirectional", "HostToContainer", "None"',
            ],
            id="mounts that spread to the host are for privileged containers",
        ),
        pytest.param(
            [
                mount(recursiveReadOnly="Enabled", mountPropagation="HostToContainer"),
                mount("/b", recursiveReadOnly="Always"),
                mount("/c", recursiveReadOnly="Enabled", readOnly=True, mountPropagation="None"),
            ],
            [
                "volumeMounts.recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not "
                "specified",
                "volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true",
                'volumeMounts.recursiveReadOnly: Unsupported value: "Always": '
                'supported values: "Disabled", "Enabled", "IfPossible"',
            ],
            id="recursively read-only mounts are read-only mounts that do not spread",
        ),
    ],
)
def test_mounts(mounts: list[Doc], expected: list[str]) -> None:
    assert container_faults(volumeMounts=mounts) == expected


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        pytest.param([{"name": "disk", "devicePath": "/dev/x"}], [], id="a claim as a device"),
        pytest.param(
            [{"name": "data", "devicePath": "/dev/../x"}],
            [
                "volumeDevices[0].devicePath: Invalid value: \"/dev/../x\": can not contain backsteps ('..')",
                'volumeDevices[0].name: Invalid value: "data": '
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
                'volumeDevices[0].name: Invalid value: "data": must not already exist in volumeMounts',
                'volumeMounts[0].name: Invalid value: "data": must not already exist in volumeDevices',
            ],
            id="a directory is no device, nor both",
        ),
        pytest.param(
            [
                {"name": "disk", "devicePath": "/a"},
                {"name": "disk", "devicePath": "/a"},
                {"name": "", "devicePath": ""},
            ],
            [
                'volumeDevices[0].devicePath: Invalid value: "/a": must not already exist as a path in volumeMounts',
                'volumeDevices[1].devicePath: Invalid value: "/a": must be unique',
                'volumeDevices[1].devicePath: Invalid value: "/a": must not already exist as a path in volumeMounts',
                'volumeDevices[1].name: Invalid value: "disk": must be unique',
                "volumeDevices[2].devicePath: Required value",
                'volumeDevices[2].name: Not found: ""',
                "volumeDevices[2].name: Required value",
                'volumeMounts[0].mountPath: Invalid value: "/a": must not already exist as a path in volumeDevices',
            ],
            id="devices and mounts share the places",
        ),
    ],
)
def test_devices(devices: list[Doc], expected: list[str]) -> None:
    assert container_faults(volumeMounts=[mount()], volumeDevices=devices) == expected
