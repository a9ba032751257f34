"""The columns of what keeps pods running, and of the budgets that guard them."""

from __future__ import annotations

from bayplan.cluster.tables.columns import (
    AGE,
    NAME,
    NONE,
    CellOf,
    Column,
    Columns,
    Doc,
    at,
    count,
    labels_at,
    selector_text,
    template_columns,
)
from bayplan.model.clock import Instant

_TEMPLATE = "spec.template.spec"


def _ready(document: Doc, _now: Instant) -> str:
    return f"{at(document, 'status.readyReplicas') or 0}/{at(document, 'spec.replicas') or 0}"


def _controller(revision: Doc, _now: Instant) -> str:
    owners = at(revision, "metadata.ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    if owner is None:
        return NONE
    group = owner["apiVersion"].rpartition("/")[0]
    kind = f"{owner['kind']}.{group}" if group else owner["kind"]
    return f"{kind.lower()}/{owner['name']}"


def _bound(path: str) -> CellOf:
    """A number or a percentage; zero is a bound too."""
    return lambda budget, _now: "N/A" if (bound := at(budget, path)) is None else str(bound)


_REPLICAS: Columns = (
    NAME,
    Column("Desired", count("spec.replicas"), "integer"),
    Column("Current", count("status.replicas"), "integer"),
    Column("Ready", count("status.readyReplicas"), "integer"),
    AGE,
)

REPLICATION_CONTROLLER: Columns = (
    *_REPLICAS,
    *template_columns(_TEMPLATE),
    Column("Selector", labels_at("spec.selector"), priority=1),
)

REPLICA_SET: Columns = (*_REPLICAS, *template_columns(_TEMPLATE, "spec.selector"))

DEPLOYMENT: Columns = (
    NAME,
    Column("Ready", _ready),
    Column("Up-to-date", count("status.updatedReplicas")),  # a number declared a string, as upstream's
    Column("Available", count("status.availableReplicas")),
    AGE,
    *template_columns(_TEMPLATE),
    Column("Selector", lambda each, _now: selector_text(at(each, "spec.selector"), "<invalid>"), priority=1),
)

STATEFUL_SET: Columns = (NAME, Column("Ready", _ready), AGE, *template_columns(_TEMPLATE))

DAEMON_SET: Columns = (
    NAME,
    Column("Desired", count("status.desiredNumberScheduled"), "integer"),
    Column("Current", count("status.currentNumberScheduled"), "integer"),
    Column("Ready", count("status.numberReady"), "integer"),
    Column("Up-to-date", count("status.updatedNumberScheduled"), "integer"),
    Column("Available", count("status.numberAvailable"), "integer"),
    Column("Node Selector", labels_at(f"{_TEMPLATE}.nodeSelector")),
    AGE,
    *template_columns(_TEMPLATE, "spec.selector"),
)

CONTROLLER_REVISION: Columns = (NAME, Column("Controller", _controller), Column("Revision", count("revision")), AGE)

POD_DISRUPTION_BUDGET: Columns = (
    NAME,
    Column("Min Available", _bound("spec.minAvailable")),
    Column("Max Unavailable", _bound("spec.maxUnavailable")),
    Column("Allowed Disruptions", count("status.disruptionsAllowed"), "integer"),
    AGE,
)
