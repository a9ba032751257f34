"""What one object counts for in a quota, and which quotas it counts in: an evaluator a kind.

Admission charges a quota object by object, the quota controller adds a namespace up anew; both ask the evaluators, so
they cannot disagree. Every kind can be counted (`count/deployments.apps`); pods, services, claims and device claims
count for more.

Source of truth: pkg/quota/v1/evaluator/core, apiserver pkg/quota/v1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugin import Request
from bayplan.cluster.embedded.admission.plugins.pod_totals import charged_total, has_pod_level
from bayplan.cluster.embedded.admission.plugins.storage import class_of_claim
from bayplan.cluster.kinds import KINDS, Kind, is_built_in
from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.quantity import Quantity, parse

Usage = dict[str, Quantity]
_ONE = Quantity.whole(1)
_NONE = Quantity.whole(0)

_OLD_NAMES = {"ConfigMap", "ResourceQuota", "ReplicationController", "Secret"}
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
# A quota on one of these obliges every container to say how much: upstream calls it a mistake that must stay.
_MUST_BE_SAID = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_CLASS_SUFFIX = ".storageclass.storage.k8s.io/"
_DEVICES_SUFFIX = ".deviceclass.resource.k8s.io/devices"
_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
_MOST_DEVICES = 32  # what a request for all devices is charged


class Evaluator:
    """Counts objects of a kind: one each, under `count/<resource>` and, for four kinds, under their bare name."""

    def __init__(self, kind: Kind) -> None:
        self.count = f"count/{kind.resource}"
        self._names = frozenset({self.count, kind.plural} if kind.name in _OLD_NAMES else {self.count})

    def handles(self, request: Request) -> bool:
        """Whether the write can change what the object counts for."""
        return request.operation == "CREATE" and not request.subresource

    def tracks(self, resource: str) -> bool:
        """Whether objects of the kind count for a quota's resource."""
        return resource in self._names

    def in_scope(self, _scope: Doc, _doc: Doc) -> bool:
        """Whether the object is in a quota's scope. Plain counts have no scopes, so a scoped quota passes them by."""
        return False

    def unsaid(self, _resources: Iterable[str], _doc: Doc) -> str:
        """What the object must say about the resources and does not; "" if nothing."""
        return ""

    def usage(self, _doc: Doc, _now: Instant | None) -> Usage:
        """What the object counts for. Without `now` nothing is overdue."""
        return dict.fromkeys(self._names, _ONE)

    def matches(self, quota: Doc, hard: Iterable[str], doc: Doc) -> bool:
        """Whether the object counts in the quota."""
        return any(map(self.tracks, hard)) and all(self.in_scope(scope, doc) for scope in _scopes(quota))


class _Pods(Evaluator):
    """Compute resources, as long as the pod is alive; `count/pods` always."""

    def handles(self, request: Request) -> bool:
        if request.operation == "CREATE":
            return not request.subresource
        if request.operation == "DELETE" or request.old is None:
            return False
        moved = not request.subresource and _has_deadline(request.doc) != _has_deadline(request.old)
        return moved or request.subresource == "resize"

    def tracks(self, resource: str) -> bool:
        if resource in (self.count, "pods"):
            return True
        side, _, bare = resource.rpartition(".")
        if side in ("", "requests", "limits") and bare in _COMPUTE:
            return True
        if resource.startswith(("hugepages-", "requests.hugepages-")):
            return True
        extended = "/" in resource and "kubernetes.io/" not in resource
        return resource.startswith("requests.") and (extended or resource.startswith(f"requests.{_DEVICE_CLASS}"))

    def in_scope(self, scope: Doc, doc: Doc) -> bool:
        match scope["scopeName"]:
            case "Terminating":
                return _has_deadline(doc)
            case "NotTerminating":
                return not _has_deadline(doc)
            case "BestEffort":
                return _is_best_effort(doc)
            case "NotBestEffort":
                return not _is_best_effort(doc)
            case "PriorityClass":
                return _selected(scope, {doc["spec"].get("priorityClassName", "")} - {""})
            case "CrossNamespacePodAffinity":
                return _looks_across_namespaces(doc["spec"].get("affinity", {}))
        return False

    def unsaid(self, resources: Iterable[str], doc: Doc) -> str:
        spec = doc["spec"]
        if has_pod_level(spec):
            return ""
        silent: dict[str, set[str]] = {}
        for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
            own = container.get("resources", {})
            said = {f"{side}.{name}" for side in ("requests", "limits") for name in own.get(side, ())}
            said.update(own.get("requests", ()))
            for resource in resources:
                if resource in _MUST_BE_SAID and resource not in said:
                    silent.setdefault(resource, set()).add(container["name"])
        listed = "; ".join(f"{resource} for: {','.join(sorted(silent[resource]))}" for resource in sorted(silent))
        return f"must specify {listed}" if listed else ""

    def usage(self, doc: Doc, now: Instant | None) -> Usage:
        if not _is_charged(doc, now):
            return {self.count: _ONE}
        usage = {self.count: _ONE, "pods": _ONE}
        for name, amount in charged_total(doc, "requests").items():
            native = "/" not in name or "kubernetes.io/" in name
            if name in _COMPUTE or name.startswith("hugepages-"):
                usage[name] = usage[f"requests.{name}"] = amount
            elif not native or name.startswith(_DEVICE_CLASS):
                usage[f"requests.{name}"] = amount
        limits = charged_total(doc, "limits")
        return usage | {f"limits.{name}": limits[name] for name in _COMPUTE if name in limits}


class _Services(Evaluator):
    """Services, and what they take of node ports and load balancers."""

    def handles(self, request: Request) -> bool:
        return request.operation != "DELETE" and not request.subresource

    def tracks(self, resource: str) -> bool:
        return resource in (self.count, "services", "services.nodeports", "services.loadbalancers")

    def usage(self, doc: Doc, _now: Instant | None) -> Usage:
        spec = doc["spec"]
        ports = spec.get("ports", ())
        balanced = spec.get("type") == "LoadBalancer"
        if balanced and spec.get("allocateLoadBalancerNodePorts") is False:
            ports = [port for port in ports if port.get("nodePort")]
        return {
            self.count: _ONE,
            "services": _ONE,
            "services.nodeports": Quantity.whole(len(ports)) if balanced or spec.get("type") == "NodePort" else _NONE,
            "services.loadbalancers": _ONE if balanced else _NONE,
        }


class _VolumeClaims(Evaluator):
    """Claims and the storage they ask for, in all and by storage class."""

    _TRACKED = ("persistentvolumeclaims", "requests.storage")

    def handles(self, request: Request) -> bool:
        return request.operation != "DELETE" and request.subresource in ("", "status")

    def tracks(self, resource: str) -> bool:
        if resource == self.count or resource in self._TRACKED:
            return True
        return any(resource.endswith(_CLASS_SUFFIX + tracked) for tracked in self._TRACKED)

    def in_scope(self, scope: Doc, doc: Doc) -> bool:
        if scope["scopeName"] != "VolumeAttributesClass":
            return False
        status = doc.get("status", {})
        names = {
            doc["spec"].get("volumeAttributesClassName", ""),
            status.get("currentVolumeAttributesClassName", ""),
            status.get("modifyVolumeStatus", {}).get("targetVolumeAttributesClassName", ""),
        }
        return _selected(scope, names - {""})

    def usage(self, doc: Doc, _now: Instant | None) -> Usage:
        counts: Usage = {"persistentvolumeclaims": _ONE}
        asked = doc["spec"].get("resources", {}).get("requests", {}).get("storage")
        if asked is not None:
            allocated = doc.get("status", {}).get("allocatedResources", {}).get("storage", "0")
            size = max(_whole(parse(asked)), _whole(parse(allocated)))
            counts["requests.storage"] = size
        named = class_of_claim(doc)
        by_class = {f"{named}{_CLASS_SUFFIX}{name}": amount for name, amount in counts.items()} if named else {}
        return {self.count: _ONE} | counts | by_class


class _DeviceClaims(Evaluator):
    """Devices asked for, by device class; of alternatives the worst case counts."""

    def handles(self, request: Request) -> bool:
        return request.operation != "DELETE" and not request.subresource

    def tracks(self, resource: str) -> bool:
        return resource == self.count or resource.endswith(_DEVICES_SUFFIX)

    def usage(self, doc: Doc, _now: Instant | None) -> Usage:
        total: dict[str, int] = {}
        for request in doc["spec"].get("devices", {}).get("requests", ()):
            worst: dict[str, int] = {}
            for one in request.get("firstAvailable") or [request.get("exactly", {})]:
                name = one.get("deviceClassName", "")
                worst[name] = max(worst.get(name, 0), _devices(one))
            for name, number in worst.items():
                total[name] = total.get(name, 0) + number
        by_class = {f"{name}{_DEVICES_SUFFIX}": Quantity.whole(number) for name, number in total.items() if name}
        return {self.count: _ONE} | by_class


_SPECIAL: dict[str, type[Evaluator]] = {
    "Pod": _Pods,
    "Service": _Services,
    "PersistentVolumeClaim": _VolumeClaims,
    "ResourceClaim": _DeviceClaims,
}
_EVALUATORS: dict[str, Evaluator] = {
    kind.name: _SPECIAL.get(kind.name, Evaluator)(kind)
    for kind in KINDS.values()
    if kind.namespaced and kind.name != "Event"
}


def evaluator_of(kind: Kind) -> Evaluator | None:
    """Who counts objects of a kind; None for events and cluster-scoped kinds, which no quota holds back."""
    return _EVALUATORS.get(kind.name) if is_built_in(kind) else None


def usage(quota: Doc, objects: Mapping[str, Sequence[Doc]], now: Instant) -> dict[str, str]:
    """`status.used` of a quota over all objects of its namespace, by the kind's name (`Pod`).

    Only the quota's own resources that some kind counts for are in it, zeros included.
    """
    hard: Mapping[str, str] = quota.get("spec", {}).get("hard", {})
    used = {name: _NONE for name in hard if any(one.tracks(name) for one in _EVALUATORS.values())}
    for kind, docs in objects.items():
        evaluator = _EVALUATORS.get(kind)
        if evaluator is None or not any(map(evaluator.tracks, used)):
            continue
        for doc in docs:
            if evaluator.matches(quota, used, doc):
                for name, amount in evaluator.usage(doc, now).items():
                    if name in used:
                        used[name] = used[name] + amount
    return {name: str(amount) for name, amount in used.items()}


def kinds_counted_in(quota: Doc) -> list[str]:
    """The kinds whose objects a quota counts: what the controller must look at."""
    hard = quota.get("spec", {}).get("hard", {})
    return [name for name, evaluator in _EVALUATORS.items() if any(map(evaluator.tracks, hard))]


def _scopes(quota: Doc) -> list[Doc]:
    spec = quota.get("spec", {})
    plain = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes", ())]
    return [*plain, *spec.get("scopeSelector", {}).get("matchExpressions", ())]


def _selected(scope: Doc, names: set[str]) -> bool:
    """Whether one of an object's names, or having none, fits the scope's operator."""
    values = set(scope.get("values", ()))
    match scope.get("operator"):
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return bool(names & values)
        case "NotIn":
            return not names or bool(names - values)
    return False


def _has_deadline(pod: Doc) -> bool:
    deadline: int | None = pod["spec"].get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def _is_best_effort(pod: Doc) -> bool:
    return bool(pod.get("status", {}).get("qosClass") == "BestEffort")


def _looks_across_namespaces(affinity: Doc) -> bool:
    for side in (affinity.get("podAffinity", {}), affinity.get("podAntiAffinity", {})):
        preferred = side.get("preferredDuringSchedulingIgnoredDuringExecution", ())
        terms = [
            *side.get("requiredDuringSchedulingIgnoredDuringExecution", ()),
            *(one.get("podAffinityTerm", {}) for one in preferred),
        ]
        if any(term.get("namespaces") or "namespaceSelector" in term for term in terms):
            return True
    return False


def _is_charged(pod: Doc, now: Instant | None) -> bool:
    """Whether the pod is alive. One that is stuck in deletion for twice its grace no longer counts."""
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return False
    meta = pod.get("metadata", {})
    deleted, grace = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    if now is None or deleted is None or grace is None:
        return True
    return bool(now <= parse_rfc3339(deleted) + grace * SECOND)


def _whole(amount: Quantity) -> Quantity:
    return Quantity.whole(amount.value(), amount.format)


def _devices(request: Doc) -> int:
    match request.get("allocationMode"):
        case "ExactCount":
            return int(request.get("count", 0))
        case "All":
            return _MOST_DEVICES
    return 0
