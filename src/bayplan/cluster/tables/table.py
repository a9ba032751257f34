"""Objects of one kind as a meta.k8s.io/v1 Table: what `Accept: application/json;as=Table` asks for."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from bayplan.cluster import kinds
from bayplan.cluster.kinds import Kind
from bayplan.cluster.tables import autoscaler, events, jobs, network, nodes, plain, pods, storage, workloads
from bayplan.cluster.tables.columns import GENERIC, Columns, Doc
from bayplan.model.clock import Instant

_API_VERSION = "meta.k8s.io/v1"

COLUMNS: dict[Kind, Columns] = {
    kinds.POD: pods.POD,
    kinds.NODE: nodes.NODE,
    kinds.NAMESPACE: plain.NAMESPACE,
    kinds.SERVICE: network.SERVICE,
    kinds.CONFIG_MAP: plain.CONFIG_MAP,
    kinds.SECRET: plain.SECRET,
    kinds.SERVICE_ACCOUNT: plain.NAME_AND_AGE,
    kinds.PERSISTENT_VOLUME: storage.PERSISTENT_VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIM: storage.PERSISTENT_VOLUME_CLAIM,
    kinds.RESOURCE_QUOTA: plain.RESOURCE_QUOTA,
    kinds.EVENT: events.EVENT,
    kinds.REPLICATION_CONTROLLER: workloads.REPLICATION_CONTROLLER,
    kinds.DEPLOYMENT: workloads.DEPLOYMENT,
    kinds.REPLICA_SET: workloads.REPLICA_SET,
    kinds.STATEFUL_SET: workloads.STATEFUL_SET,
    kinds.DAEMON_SET: workloads.DAEMON_SET,
    kinds.CONTROLLER_REVISION: workloads.CONTROLLER_REVISION,
    kinds.JOB: jobs.JOB,
    kinds.CRON_JOB: jobs.CRON_JOB,
    kinds.POD_DISRUPTION_BUDGET: workloads.POD_DISRUPTION_BUDGET,
    kinds.HORIZONTAL_POD_AUTOSCALER: autoscaler.HORIZONTAL_POD_AUTOSCALER,
    kinds.PRIORITY_CLASS: plain.PRIORITY_CLASS,
    kinds.LEASE: plain.LEASE,
    kinds.ENDPOINT_SLICE: network.ENDPOINT_SLICE,
    kinds.STORAGE_CLASS: storage.STORAGE_CLASS,
    kinds.RUNTIME_CLASS: plain.RUNTIME_CLASS,
    kinds.RESOURCE_CLAIM: plain.RESOURCE_CLAIM,
    kinds.RESOURCE_CLAIM_TEMPLATE: plain.NAME_AND_AGE,
    kinds.RESOURCE_SLICE: plain.RESOURCE_SLICE,
    kinds.DEVICE_CLASS: plain.NAME_AND_AGE,
}
"""The columns of each kind; a kind that is not here (LimitRange, for one) has the generic ones."""


class Include(enum.StrEnum):
    """What a row carries of its object: the request's `includeObject`."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


def columns_of(kind: Kind) -> Columns:
    """The columns of a kind."""
    return COLUMNS.get(kind, GENERIC)


def table(
    kind: Kind,
    documents: Iterable[Doc],
    now: Instant,
    include: Include = Include.METADATA,
    metadata: Doc | None = None,
    columns: Columns | None = None,
) -> Doc:
    """The Table of these objects. `metadata` is the list's: resourceVersion, continue, remainingItemCount.

    `columns` are the kind's own unless given: a custom kind's are known to its cluster alone.
    """
    columns = columns_of(kind) if columns is None else columns
    return {
        "kind": "Table",
        "apiVersion": _API_VERSION,
        "metadata": metadata or {},
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [_row(kind, columns, document, now, include) for document in documents],
    }


def _row(kind: Kind, columns: Columns, document: Doc, now: Instant, include: Include) -> Doc:
    row: Doc = {"cells": [column.cell(document, now) for column in columns]}
    if kind == kinds.POD and (conditions := pods.row_conditions(document)):
        row["conditions"] = conditions
    match include:
        case Include.OBJECT:
            row["object"] = document
        case Include.METADATA:
            partial = {"kind": "PartialObjectMetadata", "apiVersion": _API_VERSION}
            row["object"] = {**partial, "metadata": document.get("metadata") or {}}
        case Include.NONE:
            row["object"] = None
    return row
