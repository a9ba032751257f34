"""What a twin is made of: the kinds that decisions depend on, and what is not considered where one cannot be read."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.cluster import kinds
from bayplan.cluster.kinds import Kind
from bayplan.simulate.recording.file import FURTHER

_VOLUMES = "volumes"
_WORKLOADS = "workloads: their pods are on their own, and nobody replaces them"
_SPREADING = "spreading by default, which goes by a pod's services and owners"
_DEVICES = "devices by claims"

NEEDED = (kinds.NODE, kinds.POD)
"""Without these there is no twin."""
AROUND: Mapping[Kind, str] = {
    kinds.NAMESPACE: "namespace selectors of pod affinity",
    kinds.PRIORITY_CLASS: "priorities of new pods",
    kinds.SERVICE: _SPREADING,
    kinds.POD_DISRUPTION_BUDGET: "disruption budgets",
    kinds.RESOURCE_QUOTA: "quotas",
    kinds.LIMIT_RANGE: "defaults and limits of a namespace",
    kinds.RUNTIME_CLASS: "runtime classes and their overhead",
    kinds.REPLICATION_CONTROLLER: _SPREADING,
    kinds.REPLICA_SET: _SPREADING,
    kinds.STATEFUL_SET: _SPREADING,
    kinds.DEPLOYMENT: _WORKLOADS,
    kinds.DAEMON_SET: _WORKLOADS,
    kinds.CONTROLLER_REVISION: _WORKLOADS,
    kinds.JOB: _WORKLOADS,
    kinds.CRON_JOB: _WORKLOADS,
    kinds.PERSISTENT_VOLUME_CLAIM: _VOLUMES,
    kinds.PERSISTENT_VOLUME: _VOLUMES,
    kinds.STORAGE_CLASS: _VOLUMES,
    **dict.fromkeys(FURTHER.values(), _VOLUMES),
    kinds.RESOURCE_CLAIM: _DEVICES,
    kinds.RESOURCE_CLAIM_TEMPLATE: _DEVICES,
    kinds.RESOURCE_SLICE: _DEVICES,
    kinds.DEVICE_CLASS: _DEVICES,
}
"""What else is read, and what is not considered without it. Autoscalers are not: what they go by is not known here."""
ALL = (*NEEDED, *AROUND)

RESTS_ON: Mapping[Kind, Kind] = {
    kinds.DEPLOYMENT: kinds.REPLICA_SET,
    kinds.STATEFUL_SET: kinds.CONTROLLER_REVISION,
    kinds.DAEMON_SET: kinds.CONTROLLER_REVISION,
    kinds.CRON_JOB: kinds.JOB,
}
"""A workload is left out where what it has made cannot be seen: it would make all of it anew."""


def unconsidered(lacking: tuple[str, ...]) -> tuple[str, ...]:
    """What is lost without these resources."""
    return tuple(dict.fromkeys(what for kind, what in AROUND.items() if kind.resource in lacking))
