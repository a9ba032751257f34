"""A whole cluster put together: the engine with every standard controller, kubelets and a scheduler.

The order is the order of looking when several are concerned by one change; it follows the way of a workload, from what
makes pods to what runs and removes them.
"""

from __future__ import annotations

from bayplan.cluster.embedded.controllers.contract import Controller
from bayplan.cluster.embedded.controllers.cron_job import CronJobController
from bayplan.cluster.embedded.controllers.daemon_set import DaemonSetController
from bayplan.cluster.embedded.controllers.deployment import DeploymentController
from bayplan.cluster.embedded.controllers.disruption import DisruptionController
from bayplan.cluster.embedded.controllers.endpoint_slices import EndpointSliceController
from bayplan.cluster.embedded.controllers.event_expiry import EventExpiry
from bayplan.cluster.embedded.controllers.garbage_collector import GarbageCollector
from bayplan.cluster.embedded.controllers.horizontal_autoscaler import HorizontalAutoscaler
from bayplan.cluster.embedded.controllers.job import JobController
from bayplan.cluster.embedded.controllers.job_expiry import JobExpiry
from bayplan.cluster.embedded.controllers.job_orphans import JobOrphans
from bayplan.cluster.embedded.controllers.namespace import NamespaceController
from bayplan.cluster.embedded.controllers.node_lifecycle import NodeLifecycle
from bayplan.cluster.embedded.controllers.node_registry import NodeRegistry
from bayplan.cluster.embedded.controllers.ownership import ADOPTIONS
from bayplan.cluster.embedded.controllers.pod_collector import PodCollector
from bayplan.cluster.embedded.controllers.quota import QuotaController
from bayplan.cluster.embedded.controllers.replica_set import ReplicaSetController
from bayplan.cluster.embedded.controllers.replication_controller import ReplicationControllerController
from bayplan.cluster.embedded.controllers.stateful_set import StatefulSetController
from bayplan.cluster.embedded.controllers.taint_eviction import TaintEviction
from bayplan.cluster.embedded.custom.controller import CustomResourceDefinitionController
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.kubelet.behaviour import USUAL, Defaults
from bayplan.cluster.embedded.kubelet.controller import KubeletController
from bayplan.cluster.embedded.scheduler import SchedulerController
from bayplan.model.clock import Clock
from bayplan.scheduling.configuration import SchedulerConfiguration


def standard_controllers(
    scheduler: SchedulerConfiguration | None = None, behaviour: Defaults = USUAL
) -> list[Controller]:
    """Every controller of a cluster that is complete."""
    return [
        *ADOPTIONS,  # first, so that an owner counts what it adopts before it makes more
        DeploymentController(),
        ReplicaSetController(),
        ReplicationControllerController(),
        StatefulSetController(),
        DaemonSetController(),
        CronJobController(),
        JobController(),
        JobOrphans(),
        JobExpiry(),
        HorizontalAutoscaler(behaviour),
        DisruptionController(),
        QuotaController(),
        SchedulerController(scheduler),
        KubeletController(behaviour),
        NodeRegistry(),
        NodeLifecycle(),
        EndpointSliceController(),
        TaintEviction(),
        PodCollector(),
        CustomResourceDefinitionController(),
        NamespaceController(),
        GarbageCollector(),
        EventExpiry(),
    ]


def embedded_cluster(
    *,
    clock: Clock | None = None,
    seed: int = 0,
    scheduler: SchedulerConfiguration | None = None,
    behaviour: Defaults = USUAL,
    history: int = 10_000,
) -> EmbeddedCluster:
    """A complete cluster without nodes, deterministic for a seed.

    Time is virtual unless a clock is given. `scheduler` is what kube-scheduler would be configured with; by
    default nothing. `behaviour` is how pods behave that do not say it themselves.
    """
    return EmbeddedCluster(standard_controllers(scheduler, behaviour), clock=clock, seed=seed, history=history)
