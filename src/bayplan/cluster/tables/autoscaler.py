"""The columns of autoscalers: each metric as what it is over what it should be."""

from __future__ import annotations

from bayplan.cluster.tables.columns import AGE, NAME, NONE, UNSET, Column, Columns, Doc, at, count, shortened
from bayplan.model.ages import UNKNOWN
from bayplan.model.clock import Instant

_MOST = 2
_SOURCES = ("External", "Pods", "Object", "Resource", "ContainerResource")
_NIL = "<nil>"  # how Go prints a quantity that is not there


def _targets(autoscaler: Doc, _now: Instant) -> str:
    specs = at(autoscaler, "spec.metrics") or ()
    statuses = at(autoscaler, "status.currentMetrics") or ()
    padded = (*statuses, *({} for _ in specs))
    return shortened([_metric(spec, status) for spec, status in zip(specs, padded, strict=False)], _MOST, ", ") or NONE


def _metric(spec: Doc, status: Doc) -> str:
    if spec.get("type") not in _SOURCES:
        return "<unknown type>"
    source = spec["type"][0].lower() + spec["type"][1:]
    target: Doc = at(spec, f"{source}.target") or {}
    measured = status.get(source)
    current: Doc = (measured or {}).get("current") or {}
    if source in ("resource", "containerResource"):
        return f"{spec[source]['name']}: {_resource(target, current, measured is not None)}"
    if source != "pods" and target.get("averageValue") is not None:
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']} (avg)"
    form = "averageValue" if source == "pods" else "value"
    return f"{UNKNOWN if measured is None else current.get(form, _NIL)}/{target.get(form, _NIL)}"


def _resource(target: Doc, current: Doc, measured: bool) -> str:
    if target.get("averageValue") is not None:
        return f"{current.get('averageValue', _NIL) if measured else UNKNOWN}/{target['averageValue']}"
    return f"{_percent(current, UNKNOWN)}/{_percent(target, '<auto>')}"


def _percent(of: Doc, absent: str) -> str:
    utilization = of.get("averageUtilization")
    return absent if utilization is None else f"{utilization}%"


def _minimum(autoscaler: Doc, _now: Instant) -> str:
    least = at(autoscaler, "spec.minReplicas")
    return UNSET if least is None else str(least)


def _reference(autoscaler: Doc, _now: Instant) -> str:
    target = at(autoscaler, "spec.scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


HORIZONTAL_POD_AUTOSCALER: Columns = (
    NAME,
    Column("Reference", _reference),
    Column("Targets", _targets),
    Column("MinPods", _minimum),
    Column("MaxPods", count("spec.maxReplicas")),
    Column("Replicas", count("status.currentReplicas")),
    AGE,
)
