"""Whether a node takes a pod that was bound to it: the kubelet's own last word, whoever did the binding.

Source of truth: pkg/kubelet/lifecycle/predicate.go. Extended resources that the node does not have are passed over, as
there; devices that are there and taken are not.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from bayplan.cluster.objects import Object, Section
from bayplan.model.node_selectors import node_matcher
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod, PodSpec
from bayplan.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Amounts, amounts, pod_requests
from bayplan.model.selectors import SelectorError
from bayplan.model.taints import NO_EXECUTE, first_untolerated
from bayplan.node.topology.manager import Refusal

_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)


@functools.lru_cache(maxsize=8192)
def requests_of(spec: Section) -> Amounts:
    """What a spec asks for, the pod's own slot included. Pods of one template share the answer: not to be changed."""
    view: PodSpec = spec.view(PodSpec)
    return {**pod_requests(Pod(spec=view)), PODS: 1}


def in_order(asked: Amounts) -> list[str]:
    """The resources in the order in which they are looked at."""
    first = [PODS, *(name for name in _FIRST if name in asked)]
    return first + sorted(name for name in asked if name not in first)


def refusal(item: Object, node: Node, others: Iterable[Object]) -> Refusal | None:
    """Why the node refuses the pod; `others` are those that it has taken before and that are not over."""
    asked = requests_of(item.sections["spec"])
    free = amounts(node.status.allocatable or node.status.capacity)
    used: Amounts = {}
    for other in others:
        for name, amount in requests_of(other.sections["spec"]).items():
            used[name] = used.get(name, 0) + amount
    for name in in_order(asked):
        if "/" in name and name not in free:
            continue
        taken, capacity = used.get(name, 0), free.get(name, 0)
        if asked[name] > 0 and asked[name] > capacity - taken:
            return Refusal(
                f"OutOf{name}",
                f"Node didn't have enough resource: {name}, requested: {asked[name]}, used: {taken}, "
                f"capacity: {capacity}",
            )
    return _unwelcome(item.view(Pod), node)


def _unwelcome(pod: Pod, node: Node) -> Refusal | None:
    if not affine(pod.spec, node):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if first_untolerated(node.spec.taints, pod.spec.tolerations, (NO_EXECUTE,)) is not None:
        return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def affine(spec: PodSpec, node: Node) -> bool:
    """Whether the pod may run on the node by its selector and required affinity; a senseless term matches nothing."""
    if not spec.node_selector and spec.affinity is None:
        return True
    try:
        return node_matcher(spec).matches(node.metadata.labels, node.metadata.name)
    except SelectorError:
        return False


def _predicate(name: str, why: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {why}")
