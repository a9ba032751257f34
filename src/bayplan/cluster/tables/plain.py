"""The columns of kinds that have little to tell."""

from __future__ import annotations

from bayplan.cluster.tables.columns import AGE, NAME, CellOf, Column, Columns, Doc, at, count, deleted, field
from bayplan.model.clock import Instant


def _entries(config: Doc, _now: Instant) -> int:
    return len(config.get("data") or ()) + len(config.get("binaryData") or ())


def _quota(of_limits: bool) -> CellOf:
    def cell(quota: Doc, _now: Instant) -> str:
        hard: dict[str, str] = at(quota, "status.hard") or {}
        used: dict[str, str] = at(quota, "status.used") or {}
        names = sorted(name for name in hard if name.startswith("limits.") == of_limits)
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


def _claim_state(claim: Doc, _now: Instant) -> str:
    states = ["deleted"] if deleted(claim) else []
    if at(claim, "status.allocation") is not None:
        states += ["allocated", "reserved"] if at(claim, "status.reservedFor") else ["allocated"]
    return ",".join(states) or "pending"


NAMESPACE: Columns = (NAME, Column("Status", field("status.phase")), AGE)
CONFIG_MAP: Columns = (NAME, Column("Data", _entries), AGE)
SECRET: Columns = (NAME, Column("Type", field("type")), Column("Data", count("data")), AGE)
NAME_AND_AGE: Columns = (NAME, AGE)
LEASE: Columns = (NAME, Column("Holder", field("spec.holderIdentity")), AGE)
RESOURCE_QUOTA: Columns = (NAME, Column("Request", _quota(False)), Column("Limit", _quota(True)), AGE)
PRIORITY_CLASS: Columns = (
    NAME,
    Column("Value", count("value"), "integer"),
    Column("Global-Default", field("globalDefault", False), "boolean"),
    AGE,
    Column("PreemptionPolicy", field("preemptionPolicy")),
)
RUNTIME_CLASS: Columns = (NAME, Column("Handler", field("handler")), AGE)
RESOURCE_CLAIM: Columns = (NAME, Column("State", _claim_state), AGE)
RESOURCE_SLICE: Columns = (
    NAME,
    Column("Node", field("spec.nodeName")),
    Column("Driver", field("spec.driver")),
    Column("Pool", field("spec.pool.name")),
    AGE,
)
