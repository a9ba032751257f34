"""Container ports: names, numbers, protocols, and who may have which port of the host.

Source of truth: pkg/apis/core/validation: validateContainerPorts, AccumulateUniqueHostPorts, validatePodHostNetworkDeps
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.syntax import port_name, port_number

PROTOCOLS = ("SCTP", "TCP", "UDP")


def validate_ports(ports: Sequence[Doc], path: str, errors: Errors) -> None:
    """The ports of one container, each by itself; names are unique within the container."""
    names: set[str] = set()
    for i, port in enumerate(ports):
        if name := port.get("name"):
            _validate_name(name, names, f"{path}[{i}].name", errors)
        if number := port.get("containerPort"):
            for fault in port_number(number):
                errors.invalid(f"{path}[{i}].containerPort", number, fault)
        else:
            errors.required(f"{path}[{i}].containerPort")
        if host_port := port.get("hostPort"):
            for fault in port_number(host_port):
                errors.invalid(f"{path}[{i}].hostPort", host_port, fault)
        protocol = port.get("protocol", "")
        if not protocol:
            errors.required(f"{path}[{i}].protocol")
        elif protocol not in PROTOCOLS:
            errors.not_supported(f"{path}[{i}].protocol", protocol, PROTOCOLS)


def _validate_name(name: str, taken: set[str], path: str, errors: Errors) -> None:
    if faults := port_name(name):
        for fault in faults:
            errors.invalid(path, name, fault)
    elif name in taken:
        errors.duplicate(path, name)
    taken.add(name)


def validate_host_ports(containers: Sequence[Doc], path: str, errors: Errors) -> None:
    """No two of these containers want the same port of the host; they may run at the same time."""
    taken: set[str] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.get("ports", ())):
            if not (number := port.get("hostPort")):
                continue
            wanted = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{number}"
            if wanted in taken:
                errors.duplicate(f"{path}[{i}].ports[{j}].hostPort", wanted)
            taken.add(wanted)


def validate_host_network_ports(containers: Sequence[Doc], path: str, errors: Errors, *, template: bool) -> None:
    """On the host's network a container's port is the host's. A template may leave it to its pods."""
    for i, container in enumerate(containers):
        for j, port in enumerate(container.get("ports", ())):
            host_port = port.get("hostPort", 0)
            if (host_port or not template) and host_port != port.get("containerPort", 0):
                errors.invalid(
                    f"{path}[{i}].ports[{j}].hostPort",
                    host_port,
                    "must match `containerPort` when `hostNetwork` is true",
                )


def default_host_ports(container: Doc) -> None:
    """On the host's network a container has the port it asks for on the host too."""
    for port in container.get("ports", ()):
        if not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]
