"""DaemonSets: a pod on every node that suits it, and the template rolled out node by node.

A pod is made for its node by an affinity to the node's name, and bound there by the scheduler like any other. Source of
truth: pkg/controller/daemon.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bayplan.cluster.embedded.controllers.conditions import status_body
from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Delete,
    Emit,
    Outcome,
    SetStatus,
    View,
    Write,
    itself,
    owner_of,
)
from bayplan.cluster.embedded.controllers.daemon_set_nodes import Eligibility, PodSpecs, Site, target_node
from bayplan.cluster.embedded.controllers.daemon_set_rollout import ByNode, Plan, Template, by_age, placed, rolled
from bayplan.cluster.embedded.controllers.ownership import controlled, controls, parted
from bayplan.cluster.embedded.controllers.readiness import is_ready, next_available
from bayplan.cluster.embedded.controllers.revisions import REVISION_LABEL, History, history
from bayplan.cluster.embedded.controllers.stamping import create_pod, delete_pod, is_ending, pod_meta
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.workloads import DaemonSet, DaemonSetStatus

COMPONENT = "daemonset-controller"
_BURST = 250
_KEPT = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
_ENDED = {
    "Failed": ("Warning", "FailedDaemonPod", "Found failed daemon pod {} on node {}, will try to kill it"),
    "Succeeded": ("Normal", "SucceededDaemonPod", "Found succeeded daemon pod {} on node {}, will try to delete it"),
}


def _suits(change: Change, view: View) -> Iterable[Key]:
    """A node with other labels or taints concerns the DaemonSets that should now come to it, or leave it."""
    if change.type is ChangeType.DELETED or _is_unchanged(change):
        return
    node = change.new.view(Node)
    here = view.pods_on(change.new.name)
    for item in view.objects(DAEMON_SET):
        wanted = item.view(DaemonSet)
        site = Eligibility(wanted).of(node)
        has_pod = any(controls(item, pod) for pod in here)
        is_misplaced = has_pod and wanted.status.number_misscheduled > 0
        if (site.runs and not has_pod) or (has_pod and not site.stays) or is_misplaced:
            yield item.key


def _is_unchanged(change: Change) -> bool:
    new, old = change.new, change.old
    if old is None or new.meta.labels != old.meta.labels:
        return False
    return new.view(Node).spec.taints == old.view(Node).spec.taints


class DaemonSetController:
    """Keeps a pod a node."""

    name = COMPONENT
    watches: Mapping[Kind, Concern] = {
        DAEMON_SET: itself,
        POD: owner_of(DAEMON_SET),
        NODE: _suits,
        CONTROLLER_REVISION: owner_of(DAEMON_SET),
    }

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(DAEMON_SET, *key)
        if item is None or item.meta.deletion_timestamp is not None:
            return NOTHING  # whoever deletes it deletes its revisions too: its status can be known no longer
        return _sync(item, view, now)


def _sync(item: Object, view: View, now: Instant) -> Outcome:
    wanted = item.view(DaemonSet)
    kept = history(view, item, wanted.spec.template, wanted.status.collision_count, REVISION_LABEL)
    template = Template.of(wanted, kept.update.hash)
    owned, released = parted(item, controlled(view, item, POD))
    pods = _by_node(owned)
    suits = Eligibility(wanted)
    sites = {node.name: suits.of(node.view(Node)) for node in view.objects(NODE)}
    status = counted(wanted, kept, sites, pods, template, now)
    writes: list[Write] = [*released, *kept.writes]
    if status != wanted.status:
        writes.append(SetStatus(item, status_body(status, *_KEPT)))
    plan = placed(wanted, sites, pods, template, now)
    if not plan and wanted.spec.update_strategy.type == "RollingUpdate":
        plan.create, plan.delete = (rest := rolled(wanted, sites, pods, template, now)).create, rest.delete
    writes += [_ended(item, node, pod) for node, pod in plan.ended]
    if not is_ending(view, item.namespace):
        writes += _made(item, wanted, template, plan.create[:_BURST])
    writes += [delete_pod(item, pod, COMPONENT) for pod in plan.delete[:_BURST]]
    writes += _forgotten(wanted, kept, owned)
    return Outcome(writes, _again(wanted, status, owned, plan, now))


def _made(item: Object, wanted: DaemonSet, template: Template, nodes: Sequence[str]) -> list[Write]:
    if not nodes:
        return []
    meta, specs = pod_meta(wanted.spec.template, item, labels=template.labels), PodSpecs(wanted)
    return [create_pod(item, meta, specs.on(node), COMPONENT) for node in nodes]


def _ended(item: Object, node: str, pod: Object) -> Emit:
    kind, reason, text = _ENDED[pod.view(Pod).status.phase]
    return Emit(item, kind, reason, text.format(f"{pod.namespace}/{pod.name}", node), COMPONENT)


def _by_node(pods: Iterable[Object]) -> dict[str, list[Object]]:
    """The pods by the nodes that they are for; those that have ended and are going count no more."""
    found: dict[str, list[Object]] = {}
    for pod in pods:
        seen = pod.view(Pod)
        is_over = seen.is_terminal and pod.meta.deletion_timestamp is not None
        if not is_over and (node := target_node(seen)):
            found.setdefault(node, []).append(pod)
    return found


def counted(
    wanted: DaemonSet, kept: History, sites: Mapping[str, Site], pods: ByNode, template: Template, now: Instant
) -> DaemonSetStatus:
    """The status that these pods on these nodes make. Of several on a node the oldest counts."""
    desired = [node for node, site in sites.items() if site.runs]
    first = [by_age(pods[node])[0] for node in desired if pods.get(node)]
    ready = [pod for pod in first if is_ready(pod.view(Pod))]
    available = sum(template.has(pod, now) for pod in ready)
    return DaemonSetStatus(
        current_number_scheduled=len(first),
        number_misscheduled=sum(not site.runs and bool(pods.get(node)) for node, site in sites.items()),
        desired_number_scheduled=len(desired),
        number_ready=len(ready),
        observed_generation=wanted.metadata.generation,
        updated_number_scheduled=sum(template.made(pod) for pod in first),
        number_available=available,
        number_unavailable=len(desired) - available,
        collision_count=kept.collisions,
    )


def _forgotten(wanted: DaemonSet, kept: History, pods: Iterable[Object]) -> list[Write]:
    """Revisions beyond the history limit that no pod is of."""
    live = {pod.meta.labels.get(REVISION_LABEL) for pod in pods}
    old = kept.revisions[:-1]
    past = [one.item for one in old if one.hash not in live and one.item is not None]
    return [Delete(one) for one in past[: max(len(old) - wanted.spec.revision_history_limit, 0)]]


def _again(
    wanted: DaemonSet, status: DaemonSetStatus, pods: Iterable[Object], plan: Plan, now: Instant
) -> Instant | None:
    due = list(plan.again)
    if status.number_ready != status.number_available:
        ready = next_available((pod.view(Pod) for pod in pods), wanted.spec.min_ready_seconds, now)
        due += [ready] if ready is not None else []
    return min(due, default=None)
