"""EndpointSlices: the pods behind a Service, by address, at most a hundred in a slice.

Pods whose ports come out alike share slices. A slice that changes anyway is filled up first; else what is left over
goes into a slice that has room for all of it, else into new ones: so few slices change at a time. A Service without
endpoints has one empty slice. Slices belong to their Service and go with it. A look costs as much as there are pods, so
the changes of pods are gathered for a tenth of a second.

Source of truth: k8s.io/endpointslice, reconciler.go. Topology hints are not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Create,
    Delete,
    Emit,
    Gathered,
    Outcome,
    Patch,
    View,
    Write,
)
from bayplan.cluster.embedded.controllers.endpoint_slices_content import HEADLESS, endpoint, endpoint_ports, is_headless
from bayplan.cluster.embedded.controllers.ownership import reference
from bayplan.cluster.embedded.controllers.readiness import is_ready
from bayplan.cluster.embedded.controllers.stamping import is_ending, name_prefix
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import ENDPOINT_SLICE, NODE, POD, SERVICE, Kind
from bayplan.cluster.objects import Object, sections_of
from bayplan.model.clock import MILLISECOND, Instant
from bayplan.model.meta import ObjectMeta, condition
from bayplan.model.pods import Pod
from bayplan.model.policies import Service

NAME = "endpointslice-controller"
MOST = 100
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_MANAGER = "endpointslice-controller.k8s.io"
_RESERVED = (SERVICE_NAME, MANAGED_BY, HEADLESS)

Doc = dict[str, Any]


def _service_changed(change: Change, _view: View) -> Iterable[Key]:
    old, new = change.old, change.new
    if old is None or old.sections["spec"] is not new.sections["spec"] or old.meta.labels != new.meta.labels:
        yield new.key


def _pod_changed(change: Change, view: View) -> Iterable[Key]:
    """The Services that select a pod, or did, when the change may show in an endpoint."""
    versions = [change.new] if change.old is None else [change.old, change.new]
    if change.type is ChangeType.MODIFIED and _shown(versions[0]) == _shown(versions[1]):
        return
    for service in view.objects(SERVICE, change.new.namespace):
        selector = service.view(Service).spec.selector
        if selector and any(selector.items() <= one.meta.labels.items() for one in versions):
            yield service.key


def _shown(item: Object) -> tuple[object, ...]:
    pod = item.view(Pod)
    return (item.meta.labels, item.meta.deletion_timestamp, pod.status.pod_ip, pod.is_terminal, is_ready(pod))


def _slice_changed(change: Change, _view: View) -> Iterable[Key]:
    """A slice that others change or delete is put right."""
    labels = change.new.meta.labels
    if labels.get(MANAGED_BY) == _MANAGER and SERVICE_NAME in labels and change.type is not ChangeType.ADDED:
        yield (change.new.namespace, labels[SERVICE_NAME])


class EndpointSliceController:
    """Keeps the slices of every Service that selects pods."""

    name = NAME
    watches: Mapping[Kind, Concern] = {
        SERVICE: _service_changed,
        POD: Gathered(_pod_changed, 100 * MILLISECOND),
        ENDPOINT_SLICE: _slice_changed,
    }

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:  # noqa: ARG002 - the contract's signature
        item = view.get(SERVICE, *key)
        if item is None:
            return NOTHING
        spec: Doc = item.sections["spec"].plain()
        if spec.get("type") == "ExternalName" or not spec.get("selector"):
            return NOTHING
        pods, lost = _pods(item, spec, view)
        writes: list[Write] = []
        for family in spec.get("ipFamilies", ("IPv4",)):
            writes += _kept(item, spec, family, pods, view)
        if lost:
            text = ", ".join(lost) if len(lost) == 1 else f"[{', '.join(lost)}]"
            where = f"{item.namespace}/{item.name}"
            writes.append(
                Emit(
                    item,
                    "Warning",
                    "FailedToUpdateEndpointSlices",
                    f"Error updating Endpoint Slices for Service {where}: {text}",
                    NAME,
                )
            )
        return Outcome(writes)


def _pods(item: Object, spec: Doc, view: View) -> tuple[list[Object], list[str]]:
    """The pods to be shown, and what is to be said of those whose node is gone."""
    selector = spec["selector"].items()
    found, lost = [], []
    for one in view.objects(POD, item.namespace):
        if not selector <= one.meta.labels.items():
            continue
        pod = one.view(Pod)
        if pod.is_terminal or not pod.status.pod_ip:
            continue
        node = pod.spec.node_name
        if spec.get("publishNotReadyAddresses") or view.get(NODE, "", node) is not None:
            found.append(one)
        else:
            lost.append(f"skipping Pod {one.name} for Service {item.namespace}/{item.name}: Node {node} Not Found")
    return found, lost


class _Slice:
    """A slice on its way from what it is to what it should be. A new one has no item."""

    def __init__(self, ports: list[Doc], endpoints: list[Doc], item: Object | None = None) -> None:
        self.item = item
        self.ports = ports
        self.endpoints = endpoints
        self.changed = item is None


def _kept(item: Object, spec: Doc, family: str, pods: list[Object], view: View) -> list[Write]:
    wanted: dict[bytes, tuple[list[Doc], dict[str, Doc]]] = {}
    named_ports = any(isinstance(port.get("targetPort"), str) for port in spec.get("ports", ()))
    for pod in pods:
        entry = endpoint(item, spec, pod, family, view)
        if named_ports or not wanted:  # else all pods have the same
            ports = endpoint_ports(spec, pod.view(Pod))
            group = wanted.setdefault(_key(ports), (ports, {}))
        if entry["addresses"]:
            group[1][_identity(entry)] = entry
    slices = _present(item, family, view)
    trigger = _trigger(
        item, slices, {key: entry for _, entries in wanted.values() for key, entry in entries.items()}, pods
    )
    for ports, endpoints in wanted.values():
        slices += _filled([each for each in slices if _key(each.ports) == _key(ports)], ports, endpoints)
    for each in slices:
        if _key(each.ports) not in wanted:
            each.endpoints = []
    full = [each for each in slices if each.endpoints]
    empty = [each for each in slices if not each.endpoints]
    if not full:  # a placeholder tells that there is nobody
        full = [empty.pop() if empty else _Slice([], [])]
        full[0].changed |= full[0].ports != []
        full[0].ports = []
    annotations = {} if trigger is None else {TRIGGER: trigger}
    return _writes(item, spec, family, full, empty, view, annotations)


def _trigger(item: Object, slices: list[_Slice], entries: dict[str, Doc], pods: Iterable[Object]) -> str | None:
    """The earliest of the changes that lead to a write: a pod became ready, or the Service itself is new."""
    known = {_named(entry): entry for each in slices for entry in each.endpoints}
    changed = {entry["targetRef"]["uid"] for key, entry in entries.items() if known.get(key) != entry}
    turned = (condition(pod.view(Pod).status.conditions, "Ready") for pod in pods if pod.uid in changed)
    times = [ready.last_transition_time for ready in turned if ready is not None and ready.last_transition_time]
    if not slices and item.meta.creation_timestamp:
        times.append(item.meta.creation_timestamp)
    return min(times, default=None)


_encoded = msgspec.json.Encoder(order="sorted").encode


def _key(ports: list[Doc]) -> bytes:
    return b",".join(sorted(map(_encoded, ports)))


def _identity(entry: Doc) -> str:
    return f"{entry['targetRef']['uid']} {','.join(entry['addresses'])} {entry.get('hostname', '')}"


def _present(item: Object, family: str, view: View) -> list[_Slice]:
    """The slices there are, each with what it holds."""
    found = []
    for one in view.owned_by(item.uid, ENDPOINT_SLICE):
        managed = one.meta.labels.get(MANAGED_BY) == _MANAGER and one.meta.deletion_timestamp is None
        if managed and one.sections["addressType"].plain() == family:
            found.append(_Slice(one.sections["ports"].plain() or [], one.sections["endpoints"].plain() or [], one))
    return found


def _filled(slices: list[_Slice], ports: list[Doc], wanted: dict[str, Doc]) -> list[_Slice]:
    """Bring slices of the same ports to hold what is wanted; the new ones that this takes."""
    for each in slices:
        kept = [wanted.pop(name) for name in map(_named, each.endpoints) if name in wanted]
        each.changed |= kept != each.endpoints
        each.endpoints = kept
    rest = [*wanted.values()]
    for each in sorted(
        (each for each in slices if each.changed and each.endpoints), key=lambda one: -len(one.endpoints)
    ):
        room = MOST - len(each.endpoints)
        each.endpoints, rest = each.endpoints + rest[:room], rest[room:]
    new = []
    while rest:
        roomy = [each for each in slices if not each.changed and len(each.endpoints) + len(rest) <= MOST]
        target = max(roomy, key=lambda each: len(each.endpoints), default=None) if len(rest) < MOST else None
        if target is None:
            target = _Slice(ports, [])
            new.append(target)
        room = MOST - len(target.endpoints)
        target.endpoints, rest = target.endpoints + rest[:room], rest[room:]
        target.changed = True
    return new


def _named(entry: Doc) -> str:
    return _identity(entry) if "targetRef" in entry else ""


def _writes(
    item: Object,
    spec: Doc,
    family: str,
    full: list[_Slice],
    empty: list[_Slice],
    view: View,
    annotations: dict[str, str],
) -> list[Write]:
    """An empty slice becomes a new one where one is needed; what is then still empty goes."""
    labels = {key: value for key, value in item.meta.labels.items() if key not in _RESERVED}
    labels |= {HEADLESS: ""} if is_headless(spec) else {}
    labels |= {SERVICE_NAME: item.name, MANAGED_BY: _MANAGER}
    writes: list[Write] = []
    for each in full:
        if each.item is None and empty:
            each.item = empty.pop(0).item
        if each.item is None:
            if item.meta.deletion_timestamp is None and not is_ending(view, item.namespace):
                writes.append(_created(item, labels, annotations, family, each))
        elif each.changed or each.item.meta.labels != labels:
            relabelled = dict.fromkeys(each.item.meta.labels) | labels
            content = {"ports": each.ports or None, "endpoints": each.endpoints or None}
            told = {"labels": relabelled, "annotations": {TRIGGER: None} | annotations}
            writes.append(Patch(each.item, {"metadata": told, **content}))
    return [*writes, *(Delete(each.item) for each in empty if each.item is not None)]


def _created(item: Object, labels: dict[str, str], annotations: dict[str, str], family: str, each: _Slice) -> Create:
    meta = ObjectMeta(
        generate_name=name_prefix(item.name),
        namespace=item.namespace,
        labels=labels,
        annotations=annotations,
        owner_references=(reference(item),),
    )
    return Create(
        ENDPOINT_SLICE,
        meta,
        sections_of({"addressType": family, "endpoints": each.endpoints or None, "ports": each.ports or None}),
    )
