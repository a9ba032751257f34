"""The state that decisions are made on: nodes in search order, what each holds, and the objects around them.

It changes only by `put` and `drop`, in the order in which a scheduler would hear of the changes, since order decides:
zones stand in order of first appearance, a node within its zone in order of arrival.

Source of truth: kube-scheduler 1.36 backend/cache (node_tree.go, cache.go) and framework/types.go (NodeInfo).
"""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeVar

import msgspec

from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.policies import Namespace
from bayplan.model.resources import PODS, Amounts, amounts
from bayplan.scheduling.pods import HostPort, PodInfo, PodKey

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from bayplan.model.meta import KubernetesObject

ObjectT = TypeVar("ObjectT", bound="KubernetesObject")

_ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ABSENT = Node()
_NONE: dict[str, str] = {}


class Image(msgspec.Struct):
    """An image as the cluster knows it: one size, that of the first node which reported it, and who has it."""

    size: int
    nodes: set[str]


class NodeState:
    """A node, and what the pods on it take. Mutable; `step` grows with each change."""

    __slots__ = (
        "allocatable", "images", "labels", "name", "node", "nonzero_cpu", "nonzero_memory", "pods", "ports",
        "requested", "step",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node = _ABSENT
        self.labels: Mapping[str, str] = _NONE
        self.allocatable: Amounts = {}
        self.images: dict[str, Image] = {}
        self.pods: dict[PodKey, PodInfo] = {}
        self.requested: Amounts = {}
        self.nonzero_cpu = 0
        self.nonzero_memory = 0
        self.ports: Counter[HostPort] = Counter()
        self.step = 0

    @property
    def present(self) -> bool:
        """Whether there is such a node; pods may be bound to one that is not there."""
        return self.node is not _ABSENT

    @property
    def free_places(self) -> int:
        """How many more pods the kubelet takes."""
        return self.allocatable.get(PODS, 0) - len(self.pods)

    def add(self, pod: PodInfo) -> None:
        """Count a pod in."""
        self.pods[pod.key] = pod
        self._count(pod, 1)

    def remove(self, key: PodKey) -> PodInfo:
        """Count a pod out."""
        pod = self.pods.pop(key)
        self._count(pod, -1)
        return pod

    def _count(self, pod: PodInfo, sign: int) -> None:
        self.step += 1
        requested = self.requested
        for name, amount in pod.requests.items():
            requested[name] = requested.get(name, 0) + sign * amount
        self.nonzero_cpu += sign * pod.nonzero.cpu
        self.nonzero_memory += sign * pod.nonzero.memory
        for port in pod.wants.host_ports:
            self.ports[port] += sign
            if not self.ports[port]:
                del self.ports[port]

    def copy(self) -> NodeState:
        """One to try things on."""
        other = NodeState(self.name)
        other.node, other.labels, other.allocatable, other.images = (
            self.node, self.labels, self.allocatable, self.images,
        )  # fmt: skip
        other.pods, other.requested, other.ports = self.pods.copy(), self.requested.copy(), self.ports.copy()
        other.nonzero_cpu, other.nonzero_memory, other.step = self.nonzero_cpu, self.nonzero_memory, self.step
        return other


class ClusterState:
    """All that decisions depend on."""

    def __init__(self, objects: Iterable[KubernetesObject] = ()) -> None:
        self._states: dict[str, NodeState] = {}
        self._zones: dict[str, dict[str, None]] = {}
        self._order: list[NodeState] | None = None
        self._where: dict[PodKey, str] = {}
        self._objects: dict[type[KubernetesObject], dict[str, dict[str, KubernetesObject]]] = {}
        self._nominated: dict[str, dict[PodKey, PodInfo]] = {}
        self._nominations: dict[PodKey, str] = {}
        self.images: dict[str, Image] = {}
        self.priorities: Counter[int] = Counter()
        """Of the placed pods; how many have each."""
        self.with_affinity: dict[PodKey, tuple[PodInfo, NodeState]] = {}
        """The placed pods that bring any affinity term, and where they are."""
        self.with_anti_affinity: dict[PodKey, tuple[PodInfo, NodeState]] = {}
        """Those of them that require to be away from others."""
        for each in objects:
            self.put(each)

    def copy(self, only: Collection[str] | None = None) -> ClusterState:
        """One to try things on. With `only`, no other of the nodes that are there may be changed in it."""
        other = ClusterState()
        other._states = self._states.copy()
        other.images = {name: Image(each.size, each.nodes.copy()) for name, each in self.images.items()}
        own = self._states if only is None else {name: self._states[name] for name in only}
        for name, state in own.items():
            other._states[name] = twin = state.copy()
            twin.images = {image: other.images[image] for image in state.images}
        other._zones = {zone: names.copy() for zone, names in self._zones.items()}
        other._order = self._order and [other._states[node.name] for node in self._order]
        other._where, other._nominations = self._where.copy(), self._nominations.copy()
        other.priorities = self.priorities.copy()
        other._objects = {
            kind: {space: named.copy() for space, named in spaces.items()} for kind, spaces in self._objects.items()
        }
        other._nominated = {node: waiting.copy() for node, waiting in self._nominated.items()}
        for mine, theirs in (
            (self.with_affinity, other.with_affinity),
            (self.with_anti_affinity, other.with_anti_affinity),
        ):
            theirs.update({key: (pod, other._states[on.name]) for key, (pod, on) in mine.items()})
        return other

    # --- nodes

    @property
    def nodes(self) -> list[NodeState]:
        """The nodes in search order: one of each zone in turn."""
        if self._order is None:
            rounds = zip_longest(*self._zones.values())
            self._order = [self._states[name] for row in rounds for name in row if name is not None]
        return self._order

    def node(self, name: str) -> NodeState | None:
        """A node that is there, by name."""
        state = self._states.get(name)
        return state if state is not None and state.present else None

    def put_node(self, node: Node) -> NodeState:
        """A node came or changed. One that changes its zone keeps its place in the order until a node comes or goes."""
        name = node.metadata.name
        state = self._states.get(name)
        if state is None:
            state = self._states[name] = NodeState(name)
        zone = zone_of(node.metadata.labels)
        if not state.present:
            self._order = None
        if not state.present or zone_of(state.labels) != zone:
            self._leave_zone(state)
            self._zones.setdefault(zone, {})[name] = None
        self._forget_images(state)
        if state.node.status.allocatable != node.status.allocatable:
            state.allocatable = amounts(node.status.allocatable)
        state.node, state.labels = node, node.metadata.labels
        self._note_images(state)
        state.step += 1
        return state

    def drop_node(self, name: str) -> None:
        """A node went. Pods that are still bound to it are remembered, in case it comes back."""
        state = self._states[name]
        self._leave_zone(state)
        self._forget_images(state)
        self._order = None
        state.node, state.labels, state.allocatable = _ABSENT, _NONE, {}
        if not state.pods:
            del self._states[name]

    def _leave_zone(self, state: NodeState) -> None:
        if state.present:
            zone = zone_of(state.labels)
            del self._zones[zone][state.name]
            if not self._zones[zone]:
                del self._zones[zone]

    def _note_images(self, state: NodeState) -> None:
        for image in state.node.status.images:
            for name in image.names:
                known = self.images.get(name)
                if known is None:
                    known = self.images[name] = Image(image.size_bytes, set())
                known.nodes.add(state.name)
                state.images[name] = known

    def _forget_images(self, state: NodeState) -> None:
        for name, known in state.images.items():
            known.nodes.discard(state.name)
            if not known.nodes:
                del self.images[name]
        state.images = {}

    # --- pods

    def place_of(self, key: PodKey) -> str | None:
        """The name of the node that a pod counts on."""
        return self._where.get(key)

    def pod(self, key: PodKey) -> PodInfo | None:
        """A pod that counts on a node."""
        place = self._where.get(key)
        return None if place is None else self._states[place].pods[key]

    def put_pod(self, pod: PodInfo, node: str) -> NodeState:
        """A pod stands on a node from now on, wherever it was before."""
        if pod.key in self._where or self._nominations:
            self.drop_pod(pod.key)
        state = self._states.get(node)
        if state is None:
            state = self._states[node] = NodeState(node)
        state.add(pod)
        self._where[pod.key] = node
        self.priorities[pod.priority] += 1
        if pod.wants.has_affinity:
            self.with_affinity[pod.key] = pod, state
            if pod.wants.anti_affinity:
                self.with_anti_affinity[pod.key] = pod, state
        return state

    def drop_pod(self, key: PodKey) -> NodeState | None:
        """A pod is gone; the node that it leaves, if it was on one."""
        self.withdraw(key)
        name = self._where.pop(key, None)
        if name is None:
            return None
        state = self._states[name]
        priority = state.remove(key).priority
        self.priorities[priority] -= 1
        if not self.priorities[priority]:
            del self.priorities[priority]
        self.with_affinity.pop(key, None)
        self.with_anti_affinity.pop(key, None)
        if not state.pods and not state.present:
            del self._states[name]
        return state

    def has_pods_below(self, priority: int) -> bool:
        """Whether any pod on any node is of lower priority."""
        return min(self.priorities, default=priority) < priority

    # --- nominations: pods that evicted others and wait for their place

    def nominate(self, pod: PodInfo, node: str) -> None:
        """A pod waits for a place on a node."""
        self.withdraw(pod.key)
        self._nominated.setdefault(node, {})[pod.key] = pod
        self._nominations[pod.key] = node

    def withdraw(self, key: PodKey) -> None:
        """A pod waits no more."""
        node = self._nominations.pop(key, None)
        if node is not None:
            waiting = self._nominated[node]
            del waiting[key]
            if not waiting:
                del self._nominated[node]

    def nomination_of(self, key: PodKey) -> str | None:
        """The node that a pod waits for."""
        return self._nominations.get(key)

    @property
    def waited_for(self) -> Iterable[str]:
        """The nodes that somebody waits for."""
        return self._nominated.keys()

    def nominated_on(self, node: str) -> Iterable[PodInfo]:
        """Who waits for a place on a node."""
        return self._nominated[node].values() if node in self._nominated else ()

    # --- the rest

    def put(self, item: KubernetesObject) -> None:
        """An object came or changed. Pods count where they are bound or nominated; others wait elsewhere."""
        if isinstance(item, Node):
            self.put_node(item)
        elif isinstance(item, Pod):
            self._put_pod(PodInfo(item))
        else:
            meta = item.metadata
            self._objects.setdefault(type(item), {}).setdefault(meta.namespace, {})[meta.name] = item

    def _put_pod(self, info: PodInfo) -> None:
        pod = info.pod
        if pod.is_terminal:
            self.drop_pod(info.key)
        elif pod.spec.node_name:
            self.put_pod(info, pod.spec.node_name)
        elif pod.status.nominated_node_name:
            self.nominate(info, pod.status.nominated_node_name)

    def drop(self, item: KubernetesObject) -> None:
        """An object went."""
        meta = item.metadata
        if isinstance(item, Node):
            self.drop_node(meta.name)
        elif isinstance(item, Pod):
            self.drop_pod((meta.namespace, meta.name))
        else:
            spaces = self._objects.get(type(item), {})
            named = spaces.get(meta.namespace, {})
            named.pop(meta.name, None)
            if not named:
                spaces.pop(meta.namespace, None)

    def all(self, kind: type[ObjectT], namespace: str | None = None) -> Iterator[ObjectT]:
        """The objects of a kind other than Node and Pod, of one namespace or of each in turn, in order of arrival."""
        spaces = self._objects.get(kind, {})
        for named in spaces.values() if namespace is None else (spaces.get(namespace, {}),):
            yield from named.values()  # type: ignore[misc]  # kept under their own type

    def find(self, kind: type[ObjectT], namespace: str, name: str) -> ObjectT | None:
        """One of them."""
        return self._objects.get(kind, {}).get(namespace, {}).get(name)  # type: ignore[return-value]  # as above

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """A namespace's labels; none where it is not known."""
        found = self.find(Namespace, "", name)
        return found.metadata.labels if found else _NONE


def zone_of(labels: Mapping[str, str]) -> str:
    """The zone that a node is counted to; empty for nodes that name neither zone nor region."""
    zone, region = _first(labels, _ZONE), _first(labels, _REGION)
    return f"{region}:\0:{zone}" if zone or region else ""


def _first(labels: Mapping[str, str], keys: Iterable[str]) -> str:
    return next((labels[key] for key in keys if key in labels), "")
