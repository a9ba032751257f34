"""A pod as the scheduler sees it: what it takes, which terms it brings, worked out once.

What follows from the spec alone (`Wants`) is worked out once for all pods that ask for the same; they share it.
Source of truth: kube-scheduler 1.36 framework/types.go (PodInfo).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from bayplan.model.meta import LabelSelector
from bayplan.model.pods import Pod
from bayplan.model.resources import Amounts, NonzeroRequest, nonzero_requests, pod_requests
from bayplan.model.selectors import Selector, from_label_selector
from bayplan.scheduling.gpus.asking import DEVICES, GpuHold, hold_of, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bayplan.model.affinity import PodAffinity, PodAffinityTerm
    from bayplan.model.pods import PodSpec
    from bayplan.scheduling.gpus.asking import Devices

PodKey = tuple[str, str]
"""Namespace and name."""

_NO_LABELS: dict[str, str] = {}


class HostPort(msgspec.Struct, frozen=True):
    """A port of the node that a pod holds. The address 0.0.0.0 stands for all of them."""

    ip: str
    protocol: str
    port: int


class AffinityTerm(msgspec.Struct, frozen=True):
    """A compiled term of pod affinity or anti-affinity. `weight` is 0 for a required one."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    topology_key: str
    weight: int = 0

    def matches(self, pod: PodInfo, namespace_labels: Mapping[str, str]) -> bool:
        """Whether a pod is one of those the term speaks of."""
        near = pod.namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return near and self.selector.matches(pod.labels)


class Wants(msgspec.Struct, frozen=True, eq=False):
    """What follows from a spec alone, in a namespace. Compared by identity: pods that ask for the same share one.

    `spec` is that of one of these pods. Another's may have another node, priority or name.
    """

    spec: PodSpec
    requests: Amounts
    nonzero: NonzeroRequest
    host_ports: tuple[HostPort, ...]
    affinity: tuple[AffinityTerm, ...]
    anti_affinity: tuple[AffinityTerm, ...]
    preferred_affinity: tuple[AffinityTerm, ...]
    preferred_anti_affinity: tuple[AffinityTerm, ...]

    @property
    def has_affinity(self) -> bool:
        """Whether it brings any term at all."""
        return bool(self.affinity or self.anti_affinity or self.preferred_affinity or self.preferred_anti_affinity)


class PodInfo:
    """A pod and what has been worked out about it. `requests` leaves out the place that every pod takes."""

    __slots__ = (
        "_gpus", "key", "labels", "namespace", "nonzero", "pod", "priority", "requests", "terminating", "wants",
    )  # fmt: skip

    def __init__(self, pod: Pod, wants: Wants | None = None) -> None:
        meta = pod.metadata
        self.pod = pod
        self.namespace = meta.namespace
        self.key: PodKey = (meta.namespace, meta.name)
        self.labels = meta.labels
        self.priority = pod.spec.priority
        self.terminating = meta.deletion_timestamp is not None
        self.wants = wants = wants_of(pod.spec, meta.namespace) if wants is None else wants
        if is_being_resized(pod):
            self.requests, self.nonzero = pod_requests(pod), nonzero_requests(pod)
        else:
            self.requests, self.nonzero = wants.requests, wants.nonzero
        self._gpus: GpuHold | None = None

    @property
    def gpus(self) -> GpuHold:
        """What it asks of GPUs, and which it has; worked out when somebody wants to know."""
        if self._gpus is None:
            self._gpus = hold_of(self.requests, self.pod.metadata.annotations)
        return self._gpus

    def with_devices(self, devices: Devices) -> PodInfo:
        """The pod with these GPUs; itself where there are none to write down."""
        if not devices:
            return self
        meta = self.pod.metadata
        named = msgspec.structs.replace(meta, annotations={**meta.annotations, DEVICES: written(devices)})
        return PodInfo(msgspec.structs.replace(self.pod, metadata=named), self.wants)

    def __repr__(self) -> str:
        return f"PodInfo({'/'.join(self.key)})"


def is_being_resized(pod: Pod) -> bool:
    """Whether a pod's status has a word in what it takes."""
    status = pod.status
    statuses = (*status.container_statuses, *status.init_container_statuses)
    return status.resources is not None or any(each.resources is not None for each in statuses)


def wants_of(spec: PodSpec, namespace: str) -> Wants:
    """What a spec brings along; the same for all that ask for the same."""
    key = (namespace, _encoder.encode(_asked(spec)))
    known = _known.get(key)
    if known is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[key] = _worked_out(spec, namespace)
    return known


_encoder = msgspec.msgpack.Encoder()
_known: dict[tuple[str, bytes], Wants] = {}
_MOST_KNOWN = 65_536


def _asked(spec: PodSpec) -> tuple[object, ...]:
    """All of a spec that plugins read of `Wants`."""
    return (
        spec.containers, spec.init_containers, spec.volumes, spec.node_selector, spec.affinity, spec.tolerations,
        spec.topology_spread_constraints, spec.overhead, spec.resources, spec.resource_claims, spec.host_network,
        spec.runtime_class_name, spec.os, spec.host_users,
    )  # fmt: skip


def _worked_out(spec: PodSpec, namespace: str) -> Wants:
    affinity = spec.affinity
    near = affinity.pod_affinity if affinity else None
    away = affinity.pod_anti_affinity if affinity else None
    pod = Pod(spec=spec)
    return Wants(
        spec,
        pod_requests(pod),
        nonzero_requests(pod),
        tuple(_host_ports(spec)),
        _required(near, namespace),
        _required(away, namespace),
        _preferred(near, namespace),
        _preferred(away, namespace),
    )


def _host_ports(spec: PodSpec) -> Iterable[HostPort]:
    """The ports of containers and sidecars; those of other init containers are gone when the pod runs."""
    lasting = (each for each in spec.init_containers if each.is_sidecar)
    for container in (*spec.containers, *lasting):
        for port in container.ports:
            if port.host_port > 0:
                yield HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)  # noqa: S104 the node's


def _required(side: PodAffinity | None, namespace: str) -> tuple[AffinityTerm, ...]:
    return tuple(_term(term, namespace) for term in side.required) if side else ()


def _preferred(side: PodAffinity | None, namespace: str) -> tuple[AffinityTerm, ...]:
    return tuple(_term(one.pod_affinity_term, namespace, one.weight) for one in side.preferred) if side else ()


def _term(term: PodAffinityTerm, namespace: str, weight: int = 0) -> AffinityTerm:
    own = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        frozenset((namespace,)) if own else frozenset(term.namespaces),
        selector_of(term.namespace_selector),
        selector_of(term.label_selector),
        term.topology_key,
        weight,
    )


def selector_of(selector: LabelSelector | None) -> Selector:
    """The compiled selector; those that say the same are the same object."""
    if selector is None:
        return _compiled(b"")
    return _compiled(msgspec.json.encode(selector))


@lru_cache(maxsize=4096)
def _compiled(encoded: bytes) -> Selector:
    return from_label_selector(msgspec.json.decode(encoded, type=LabelSelector) if encoded else None)
