"""Every kind's strategy, found by the kind."""

from __future__ import annotations

import functools
import importlib

from bayplan.cluster.embedded.admission.kinds.plain import STRATEGIES
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.kinds import Kind

_MODULES = {
    "Pod": "pods.strategy",
    "Deployment": "workloads.deployment",
    "ReplicaSet": "workloads.replica_set",
    "ReplicationController": "workloads.replication_controller",
    "StatefulSet": "workloads.stateful_set",
    "DaemonSet": "workloads.daemon_set",
    "ControllerRevision": "workloads.controller_revision",
    "Job": "workloads.job",
    "CronJob": "workloads.cron_job",
    "Node": "kinds.node",
    "Namespace": "kinds.namespace",
    "PodDisruptionBudget": "kinds.disruption_budget",
    "ResourceQuota": "kinds.resource_quota",
    "PriorityClass": "kinds.priority_class",
    "ConfigMap": "kinds.config_map",
    "Secret": "kinds.secret",
    "Event": "kinds.event",
    "Lease": "kinds.lease",
    "LimitRange": "kinds.limit_range",
    "PersistentVolumeClaim": "kinds.volume_claim",
    "HorizontalPodAutoscaler": "kinds.autoscaler",
    "Service": "kinds.service",
}


@functools.cache
def strategy_of(kind: Kind) -> Strategy:
    """The rules of a kind, read when the kind is first used."""
    if kind.name not in _MODULES:
        return STRATEGIES[kind.name]
    strategy = importlib.import_module(f"{__package__}.{_MODULES[kind.name]}").STRATEGY
    assert isinstance(strategy, Strategy)
    return strategy
