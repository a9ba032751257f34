"""The status of a Pod: where it starts, and what a kubelet may write into it.

Source of truth: kubernetes 1.36 pkg/registry/core/pod/strategy.go and ValidatePodStatusUpdate. Claims in the status and
the health of allocated devices are taken as they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address
from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import put
from bayplan.cluster.embedded.admission.labels import validate_label_name
from bayplan.cluster.embedded.admission.pods.scheduling import STRUCT
from bayplan.cluster.embedded.admission.syntax import dns1123_subdomain, ip_address, parse_ip
from bayplan.model.pods import PodSpec
from bayplan.model.qos import compute_qos

_GATED = "Scheduling is blocked due to non-empty scheduling gates"
_SYSTEM_CONDITIONS = frozenset(("PodScheduled", "Ready", "Initialized"))


def qos_of(spec: Doc) -> str:
    """The quality-of-service class that follows from a spec."""
    asked: Doc = {
        field: [{"resources": container.get("resources", {})} for container in spec.get(field) or ()]
        for field in ("containers", "initContainers")
    }
    put(asked, "resources", spec.get("resources"))
    return str(compute_qos(msgspec.convert(asked, PodSpec)))


def first_status(pod: Doc) -> Doc:
    """The status of a pod that was just created."""
    status: Doc = {"phase": "Pending", "qosClass": qos_of(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": pod["metadata"]["creationTimestamp"],
            "reason": "SchedulingGated",
            "message": _GATED,
        }
        status["conditions"] = [condition]
    return status


def prepare_status(new: Doc, old: Doc) -> None:
    """Keep everything that is not status; a class or an observed generation left out stays as it was."""
    put(new, "spec", old.get("spec"))
    put(new["metadata"], "ownerReferences", old["metadata"].get("ownerReferences"))
    status, was = new.setdefault("status", {}), old.get("status", {})
    for field in ("qosClass", "observedGeneration"):
        if not status.get(field) and was.get(field):
            status[field] = was[field]
    observed: dict[str, list[int]] = {}
    for condition in was.get("conditions", ()):
        observed.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions", ()):
        known = observed.get(condition.get("type", ""))
        generation = known.pop(0) if known else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def validate_status(new: Doc, old: Doc, errors: Errors) -> None:
    """What a status may say, and what it may not take back."""
    status, was = new.get("status", {}), old.get("status", {})
    _validate_conditions(status.get("conditions", ()), errors)
    _validate_nomination(status.get("nominatedNodeName", ""), was.get("nominatedNodeName", ""), old, errors)
    _validate_generation(status, "status", errors)
    if status.get("qosClass", "") != was.get("qosClass", ""):
        errors.invalid("status.qosClass", status.get("qosClass", ""), "field is immutable")
    spec = old.get("spec", {})
    for field, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        if not _restarts_together(spec):
            _validate_transitions(status.get(field, ()), was.get(field, ()), spec, containers, errors)
    _validate_transitions(
        status.get("ephemeralContainerStatuses", ()), was.get("ephemeralContainerStatuses", ()), spec, "", errors
    )
    _validate_addresses(status, was, "podIPs", errors)
    hosts = status.get("hostIPs")
    if hosts and status.get("hostIP", "") != hosts[0].get("ip", ""):
        errors.invalid("status.hostIPs[0].ip", hosts[0].get("ip", ""), "must be equal to `hostIP`")
    _validate_addresses(status, was, "hostIPs", errors)


def _validate_conditions(conditions: Sequence[Doc], errors: Errors) -> None:
    for i, condition in enumerate(conditions):
        _validate_generation(condition, f"status.conditions[{i}]", errors)
        name = condition.get("type", "")
        if name not in _SYSTEM_CONDITIONS:
            validate_label_name(name, f"status.conditions[{i}].Type", errors)


def _validate_generation(owner: Doc, path: str, errors: Errors) -> None:
    generation = owner.get("observedGeneration", 0)
    if generation < 0:
        errors.invalid(f"{path}.observedGeneration", generation, "must be a non-negative integer")


def _validate_nomination(new: str, was: str, old: Doc, errors: Errors) -> None:
    if not new or new == was:
        return
    for fault in dns1123_subdomain(new):
        errors.invalid("status.nominatedNodeName", new, fault)
    if old.get("spec", {}).get("nodeName"):
        errors.forbidden("status.nominatedNodeName", "may not be set on pods that are already bound to a node")


def _restarts_together(spec: Doc) -> bool:
    """Whether some rule restarts all containers, so that any of them may come back."""
    return any(
        rule.get("action") == "RestartAllContainers"
        for field in ("initContainers", "containers")
        for container in spec.get(field, ())
        for rule in container.get("restartPolicyRules", ())
    )


def _validate_transitions(new: Sequence[Doc], old: Sequence[Doc], spec: Doc, containers: str, errors: Errors) -> None:
    """A container that has ended stays so, unless its restart policy brings it back."""
    field = _STATUS_FIELDS[containers]
    by_name = {status.get("name", ""): status for status in reversed(new)}
    for i, status in enumerate(old):
        name = status.get("name", "")
        ended = status.get("state", {}).get("terminated")
        now = by_name.get(name)
        if ended is None or now is None or now.get("state", {}).get("terminated") is not None:
            continue
        container = next((c for c in spec.get(containers, ()) if c.get("name") == name), None)
        if container is None or not _comes_back(container, spec, ended.get("exitCode", 0)):
            errors.forbidden(f"status.{field}[{i}].state", "may not be transitioned to non-terminated state")


_STATUS_FIELDS = {
    "containers": "containerStatuses",
    "initContainers": "initContainerStatuses",
    "": "ephemeralContainerStatuses",
}


def _comes_back(container: Doc, spec: Doc, code: int) -> bool:
    policy = container.get("restartPolicy")
    if policy is not None:
        for rule in container.get("restartPolicyRules", ()):
            codes = rule.get("exitCodes") or {}
            if (code in codes.get("values", ())) == (codes.get("operator") == "In"):
                return True
    return {"Always": True, "OnFailure": code != 0, "Never": False}[policy or spec.get("restartPolicy", "Always")]


def _validate_addresses(status: Doc, was: Doc, field: str, errors: Errors) -> None:
    addresses = [one.get("ip", "") for one in status.get(field, ())]
    known = {one.get("ip", "") for one in was.get(field, ())}
    for i, address in enumerate(addresses):
        for fault in () if address in known else ip_address(address):
            errors.invalid(f"status.{field}[{i}]", address, fault)
    if len(addresses) < 2:
        return
    parsed: list[Any] = [parse_ip(address) for address in addresses]
    if None in parsed:
        bad = parsed.index(None)
        text = f"failed to check for dual stack with error:invalid IP[{bad}]: {addresses[bad]}"
        errors.internal(f"status.{field}", text)
    families = {isinstance(address, IPv4Address) for address in parsed}
    if None in parsed or len(families) < 2 or len(parsed) > 2:
        errors.invalid(f"status.{field}", [STRUCT], "may specify no more than one IP for each IP family")
