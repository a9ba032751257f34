"""Binding, eviction and scale: the requests that act on an object through a small document of their own."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.body import JSON
from bayplan.cluster.embedded.admission.eviction import decide, disruption_target
from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pipeline import invalid
from bayplan.cluster.embedded.admission.plugins.topology_labels import topology_labels
from bayplan.cluster.embedded.deletion import BY_DEFAULT, DeleteOptions
from bayplan.cluster.embedded.patch.merge import merge_patch
from bayplan.cluster.embedded.refusals import uid_changed, uid_precondition
from bayplan.cluster.embedded.requests import PLAIN, Answer, WriteOptions, check_name
from bayplan.cluster.embedded.scaling import scale_of, sized
from bayplan.cluster.embedded.server import Server
from bayplan.cluster.kinds import NODE, POD, POD_DISRUPTION_BUDGET, Kind
from bayplan.cluster.objects import Object, Section
from bayplan.model.errors import Conflict, Details, NotFound, ServerError
from bayplan.model.pods import Pod, PodSpec
from bayplan.model.policies import PodDisruptionBudget
from bayplan.model.selectors import from_label_selector

SCALE = Kind("autoscaling", "v1", "Scale", "scales", namespaced=True)


@functools.lru_cache(maxsize=4096)
def _bound_spec(section: Section, node: str) -> Section:
    """A spec with its node. Pods of one template on one node share it."""
    view: PodSpec = section.view(PodSpec)
    raw = section.raw[:-1] + b',"nodeName":' + msgspec.json.encode(node) + b"}"
    return Section(raw, msgspec.structs.replace(view, node_name=node))


def bind(server: Server, namespace: str, name: str, binding: Doc, options: WriteOptions = PLAIN) -> Object:
    """Assign a pod to a node. Raises NotFound, Conflict (bound already, gated, going), ServerError (bad target)."""
    target = binding.get("target", {})
    if target.get("kind", "") not in ("", "Node"):
        errors = Errors()
        errors.not_supported("target.kind", target["kind"], ("Node", "<empty>"))
        raise ServerError(f"{errors[0].field}: {errors[0].message}")
    if not target.get("name"):
        raise ServerError("target.name: Required value")
    meta = binding.get("metadata", {})
    item = _bindable(server, namespace, name, meta.get("uid"))
    labels = meta.get("labels", {})
    if target.get("kind"):
        labels = {**labels, **_topology(server, target["name"])}
    bound = _bound(item, target["name"], labels, meta.get("annotations", {}), server.timestamp())
    return bound if options.dry_run else server.store.put(POD, bound.meta, bound.sections)


def assign(server: Server, item: Object, node: str, annotations: Doc) -> None:
    """Bind one incarnation of a pod, as the scheduler does. Raises as `bind` does."""
    present = _bindable(server, item.namespace, item.name, item.uid)
    bound = _bound(present, node, _topology(server, node), annotations, server.timestamp())
    server.store.put(POD, bound.meta, bound.sections)


def _bindable(server: Server, namespace: str, name: str, uid: str | None) -> Object:
    item = server.get(POD, namespace, name)
    if uid is not None and uid != item.uid:
        raise uid_precondition(POD, item, uid)
    why = _unbindable(item.view(Pod))
    if why:
        details = Details(name=name, kind="pods/binding")
        raise Conflict(f'Operation cannot be fulfilled on pods/binding "{name}": {why}', details=details)
    return item


def _topology(server: Server, node: str) -> Doc:
    host = server.store.get(NODE, "", node)
    return topology_labels(host.meta.labels) if host is not None else {}


def _bound(item: Object, node: str, labels: Doc, annotations: Doc, now: str) -> Object:
    """The pod on its node."""
    sections = dict(item.sections)
    sections["spec"] = _bound_spec(sections["spec"], node)
    sections["status"] = _scheduled(sections["status"], now)
    meta = item.meta
    if labels or annotations:
        meta = msgspec.structs.replace(
            meta, annotations={**meta.annotations, **annotations}, labels={**meta.labels, **labels}
        )
    return Object(POD, meta, sections, item.version)


def _unbindable(pod: Pod) -> str:
    name = pod.metadata.name
    if pod.metadata.deletion_timestamp is not None:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if pod.spec.node_name:
        return f'pod {name} is already assigned to node "{pod.spec.node_name}"'
    if pod.spec.scheduling_gates:
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


@functools.lru_cache(maxsize=1024)
def _scheduled(section: Section, now: str) -> Section:
    """The status with its PodScheduled condition true and without a nomination. Pods bound together share it."""
    status: dict[str, Any] = section.plain()
    status.pop("nominatedNodeName", None)
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    return Section(msgspec.json.encode(with_condition(status, condition)))


def with_condition(status: Doc, condition: Doc) -> Doc:
    """The status with a condition, at its place if it was there; its time stays when its status does."""
    conditions = [*status.get("conditions", ())]
    for at, known in enumerate(conditions):
        if known["type"] == condition["type"]:
            if known["status"] == condition["status"]:
                condition = {**condition, "lastTransitionTime": known.get("lastTransitionTime")}
            conditions[at] = condition
            break
    else:
        conditions.append(condition)
    return {**status, "conditions": conditions}


def evict(server: Server, namespace: str, name: str, options: DeleteOptions = BY_DEFAULT) -> None:
    """Delete a pod if its budgets allow it. Raises NotFound, Conflict, TooManyRequests, ServerError (two budgets)."""
    item = server.get(POD, namespace, name)
    if options.uid and options.uid != item.uid:
        raise uid_changed(item, options.uid)
    budgets = {
        budget.name: budget
        for budget in server.store.objects(POD_DISRUPTION_BUDGET, namespace)
        if _selects(budget, item.meta.labels)
    }
    change = decide(item.doc(), [budget.doc() for budget in budgets.values()], now=server.timestamp())
    if not options.dry_run:
        if change is not None:
            server.write_status(budgets[change.name], change.status)
        _tell_disruption(server, item)
    server.delete(POD, namespace, name, options)


def _tell_disruption(server: Server, item: Object) -> None:
    status: Doc = item.sections["status"].plain()
    server.write_status(item, with_condition(status, disruption_target(server.timestamp())))


def _selects(budget: Object, labels: dict[str, str]) -> bool:
    return from_label_selector(budget.view(PodDisruptionBudget).spec.selector).matches(labels)


def scale(
    server: Server, kind: Kind, namespace: str, name: str, body: Doc, options: WriteOptions = PLAIN
) -> tuple[Doc, Answer]:
    """Set an object's replicas through its Scale. Raises NotFound, Conflict, Invalid, BadRequest."""
    if "scale" not in kind.subresources:
        raise NotFound("the server could not find the requested resource")
    item = server.get(kind, namespace, name)
    check_name(body, name)
    replicas = body.get("spec", {}).get("replicas", 0)
    if replicas < 0:
        errors = Errors()
        errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid(SCALE, name, errors)
    paths = server.store.registry.scale_paths(kind)
    doc = merge_patch(item.doc(), sized(replicas, paths))
    version = body["metadata"].get("resourceVersion")
    if version:
        doc["metadata"]["resourceVersion"] = version
    answer = server.update(kind, namespace, name, doc, msgspec.structs.replace(options, content_type=JSON))
    return scale_of(answer.object, paths), answer
