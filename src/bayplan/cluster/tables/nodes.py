"""The columns of nodes."""

from __future__ import annotations

from bayplan.cluster.tables.columns import AGE, NAME, NONE, CellOf, Column, Columns, Doc, at, field
from bayplan.model.ages import UNKNOWN
from bayplan.model.clock import Instant

_ROLE_PREFIX, _ROLE = "node-role.kubernetes.io/", "kubernetes.io/role"


def _status(node: Doc, _now: Instant) -> str:
    ready = [each.get("status") for each in at(node, "status.conditions") or () if each["type"] == "Ready"]
    word = "Unknown" if not ready else "Ready" if ready[-1] == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if at(node, "spec.unschedulable") else word


def _roles(node: Doc, _now: Instant) -> str:
    labels: dict[str, str] = at(node, "metadata.labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)} | {labels.get(_ROLE, "")}
    return ",".join(sorted(roles - {""})) or NONE


def _address(kind: str) -> CellOf:
    def cell(node: Doc, _now: Instant) -> str:
        addresses = at(node, "status.addresses") or ()
        return next((each["address"] for each in addresses if each["type"] == kind), NONE)

    return cell


def _kernel(node: Doc, _now: Instant) -> str:
    version = at(node, "status.nodeInfo.kernelVersion") or UNKNOWN
    architecture = at(node, "status.nodeInfo.architecture")
    return f"{version} ({architecture})" if architecture else version


NODE: Columns = (
    NAME,
    Column("Status", _status),
    Column("Roles", _roles),
    AGE,
    Column("Version", field("status.nodeInfo.kubeletVersion")),
    Column("Internal-IP", _address("InternalIP"), priority=1),
    Column("External-IP", _address("ExternalIP"), priority=1),
    Column("OS-Image", field("status.nodeInfo.osImage", UNKNOWN), priority=1),
    Column("Kernel-Version", _kernel, priority=1),
    Column("Container-Runtime", field("status.nodeInfo.containerRuntimeVersion", UNKNOWN), priority=1),
)
