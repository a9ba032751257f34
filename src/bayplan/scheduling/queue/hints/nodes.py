"""Hints of the plugins that look at one node at a time.

Source of truth: kube-scheduler 1.36, the functions isSchedulableAfter... of nodeunschedulable, tainttoleration,
nodeaffinity, nodeports, noderesources and nodedeclaredfeatures. NodeTopology's are our own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.model.node_selectors import node_matcher, node_terms
from bayplan.model.resources import PODS, amounts
from bayplan.model.taints import HARD_EFFECTS, first_untolerated
from bayplan.node.annotations.equipment import CONFIGURATION, MACHINE
from bayplan.node.annotations.managers import seen_of
from bayplan.scheduling.plugins.node_ports import ports_clash
from bayplan.scheduling.queue.hints.contract import ALWAYS, NEVER
from bayplan.scheduling.queue.hints.own import holds_place, itself

if TYPE_CHECKING:
    from bayplan.model.nodes import Node
    from bayplan.scheduling.arguments import NodeAffinityArgs
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.queue.hints.contract import Hint, Judge


def uncordoned(old: Node | None, new: Node) -> Judge:
    """A node came that takes pods, or takes them again."""
    return ALWAYS if not new.spec.unschedulable and (old is None or old.spec.unschedulable) else NEVER


def tolerated(old: Node | None, new: Node) -> Judge:
    """A node came, or lost what the pod did not tolerate."""

    def judge(pod: PodInfo) -> bool:
        tolerations = pod.pod.spec.tolerations
        was_tolerated = old is not None and first_untolerated(old.spec.taints, tolerations, HARD_EFFECTS) is None
        return not was_tolerated and first_untolerated(new.spec.taints, tolerations, HARD_EFFECTS) is None

    return judge


def selected(args: NodeAffinityArgs) -> Hint:
    """A node that the pod selects, and did not before. Under an added affinity, only nodes that it allows."""
    required = args.added_affinity.required if args.added_affinity else None
    added = node_terms(required.node_selector_terms) if required else None

    def hint(old: Node | None, new: Node) -> Judge:
        labels, name = new.metadata.labels, new.metadata.name
        if added is not None and not any(term.matches(labels, name) for term in added):
            return NEVER

        def judge(pod: PodInfo) -> bool:
            matcher = node_matcher(pod.pod.spec)
            return matcher.matches(labels, name) and not (
                old is not None and matcher.matches(old.metadata.labels, old.metadata.name)
            )

        return judge

    return hint


def freed_ports(old: PodInfo, _new: None) -> Judge:
    """A pod went that held a port which the pod wants."""
    ports = old.wants.host_ports
    if not ports or not holds_place(old):
        return NEVER
    return lambda pod: ports_clash(pod.wants.host_ports, ports)


def freed_resources(old: PodInfo, new: PodInfo | None) -> Judge:
    """A pod went, or takes less of something that the pod asks for. A pod that asks for less helps itself."""
    if new is None:
        return ALWAYS if holds_place(old) else NEVER
    if not new.pod.spec.node_name:
        return itself(old, new)
    freed = {name for name, amount in old.requests.items() if amount > new.requests.get(name, 0)}
    return (lambda pod: any(pod.requests.get(name) for name in freed)) if freed else NEVER


def more_resources(old: Node | None, new: Node) -> Judge:
    """A node that could hold the pod if it were empty, and has more of something that it asks for than before."""
    offers = amounts(new.status.allocatable)
    before = amounts(old.status.allocatable) if old is not None else {}
    grown = {name for name, amount in offers.items() if amount > before.get(name, 0)}
    if not grown or not offers.get(PODS):
        return NEVER
    any_pod = old is None or PODS in grown

    def judge(pod: PodInfo) -> bool:
        requests = pod.requests
        if any(amount > offers.get(name, 0) for name, amount in requests.items()):
            return False
        return any_pod or any(amount and name in grown for name, amount in requests.items())

    return judge


def device_class(_old: object, _new: object) -> Judge:
    """A class may stand for an extended resource. Upstream looks closer, at the resource's name."""
    return lambda pod: any("/" in name for name in pod.requests)


def declared(old: Node | None, new: Node) -> Judge:
    """A node came, or declares other features."""
    changed = old is None or old.status.declared_features != new.status.declared_features
    return ALWAYS if changed else NEVER


def given_back(old: PodInfo, new: PodInfo | None) -> Judge:
    """A pod went, or holds something else of its node: the memory of its init containers is free once they are done."""
    if new is None:
        return ALWAYS if holds_place(old) else NEVER
    if not new.pod.spec.node_name:
        return itself(old, new)
    return ALWAYS if seen_of(old.pod) != seen_of(new.pod) else NEVER


def re_equipped(old: Node | None, new: Node) -> Judge:
    """A node came, or says something else of its machine or its kubelet."""
    before, after = old.metadata.annotations if old else {}, new.metadata.annotations
    changed = any(before.get(name) != after.get(name) for name in (MACHINE, CONFIGURATION))
    return ALWAYS if old is None or changed else NEVER
