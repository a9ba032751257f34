"""An embedded cluster with what a scenario needs and nothing else: the controllers of its kinds, and no Events.

A change of a pod is shown to every controller that watches pods, so each one that could never do anything costs a part
of every pod. What is left out here has nothing to do in a scenario: no file can bring a CronJob or a Service, and of
kinds of their own VirtualMachines alone, where budgets ask for them (vm_owners).
"""

from __future__ import annotations

from bayplan.cluster.embedded.assembly import standard_controllers
from bayplan.cluster.embedded.controllers.contract import Controller
from bayplan.cluster.embedded.controllers.daemon_set import DaemonSetController
from bayplan.cluster.embedded.controllers.deployment import DeploymentController
from bayplan.cluster.embedded.controllers.disruption import DisruptionController
from bayplan.cluster.embedded.controllers.garbage_collector import GarbageCollector
from bayplan.cluster.embedded.controllers.job import JobController
from bayplan.cluster.embedded.controllers.job_expiry import JobExpiry
from bayplan.cluster.embedded.controllers.job_orphans import JobOrphans
from bayplan.cluster.embedded.controllers.node_lifecycle import NodeLifecycle
from bayplan.cluster.embedded.controllers.node_registry import NodeRegistry
from bayplan.cluster.embedded.controllers.pod_collector import PodCollector
from bayplan.cluster.embedded.controllers.quota import QuotaController
from bayplan.cluster.embedded.controllers.replica_set import ReplicaSetController
from bayplan.cluster.embedded.controllers.stateful_set import StatefulSetController
from bayplan.cluster.embedded.controllers.taint_eviction import TaintEviction
from bayplan.cluster.embedded.custom.controller import CustomResourceDefinitionController
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.kubelet.behaviour import Defaults
from bayplan.cluster.embedded.kubelet.controller import KubeletController
from bayplan.cluster.embedded.scheduler import SchedulerController
from bayplan.model.clock import Clock
from bayplan.scheduling.configuration import SchedulerConfiguration
from bayplan.simulate.brisk import BriskKubelet
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.vm_owners import with_owners

_ALWAYS: tuple[type, ...] = (SchedulerController, KubeletController, NodeRegistry, NodeLifecycle)
_OF_KIND: dict[str, tuple[type, ...]] = {
    "Pod": (),
    "Job": (JobController, JobOrphans, JobExpiry, GarbageCollector),
    "Deployment": (DeploymentController, ReplicaSetController, GarbageCollector),
    "StatefulSet": (StatefulSetController, GarbageCollector),
    "DaemonSet": (DaemonSetController, GarbageCollector),
}
_OF_TROUBLE = (TaintEviction, PodCollector)
_HISTORY = 100
"""Changes that are kept of a kind: nobody watches."""


def cluster_for(
    scenario: Scenario, *, clock: Clock, seed: int, scheduler: SchedulerConfiguration | None, behaviour: Defaults
) -> EmbeddedCluster:
    """A cluster without nodes."""
    wanted = _wanted(scenario)
    controllers: list[Controller] = [
        BriskKubelet(behaviour) if not behaviour.jitter and isinstance(each, KubeletController) else each
        for each in standard_controllers(scheduler, behaviour)
        if isinstance(each, wanted)
    ]
    return EmbeddedCluster(controllers, clock=clock, seed=seed, history=_HISTORY, events=False)


def _wanted(scenario: Scenario) -> tuple[type, ...]:
    found = set(_ALWAYS)
    for workload in scenario.workloads:
        found.update(_OF_KIND[workload.kind])
    if any(team.quota for team in scenario.teams):
        found.add(QuotaController)
    if scenario.budgets:
        found.add(DisruptionController)
    if with_owners(scenario):
        found.update((CustomResourceDefinitionController, GarbageCollector))
    tainted = any(taint.get("effect") == "NoExecute" for group in scenario.nodes for taint in group.taints)
    if tainted or scenario.outages or scenario.events:
        found.update(_OF_TROUBLE)
    return tuple(found)
