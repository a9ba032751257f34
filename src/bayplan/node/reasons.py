"""Why a container has the CPUs that it has, in words a person understands.

Whoever shows holdings says it with these.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bayplan.model.qos import QosClass
from bayplan.model.quantity import parse
from bayplan.model.resources import CPU, MEMORY
from bayplan.node.cpu.assignment import Level
from bayplan.node.cpu.manager import STATIC
from bayplan.node.sets import NodeSet, format_list, mask_of

if TYPE_CHECKING:
    from bayplan.model.pods import Container, Pod
    from bayplan.node.cpu.assignment import Assignment, Taken
    from bayplan.node.machine import Topology
    from bayplan.node.needs import PodNeed
    from bayplan.node.policies import NodePolicies
    from bayplan.node.topology.hint import Hint, Hints

_MOST = 3
"""So many hints of a resource are told; the merge chose among them, and says which."""


def many(count: int, what: str) -> str:
    """`1 CPU`, `2 CPUs`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def policies_words(policies: NodePolicies) -> str:
    """`CPU manager static (full-pcpus-only), topology manager restricted by pod, memory manager None`."""
    topology = policies.topology
    options = ", ".join(name if value == "true" else f"{name}={value}" for name, value in policies.cpu_options.items())
    parts = (
        f"CPU manager {policies.cpu}" + (f" ({options})" if options else ""),
        f"topology manager {topology.policy}" + (f" by {topology.scope}" if topology.policy != "none" else ""),
        f"memory manager {policies.memory}",
    )
    return ", ".join(parts)


# --- whether a container has CPUs of its own


def why_own_or_shared(container: Container, pod: Pod, need: PodNeed, policies: NodePolicies) -> str:
    """Why a container has CPUs of its own, or has not."""
    asked = container.resources.requests.get(CPU) or container.resources.limits.get(CPU)
    shared = why_shared(container, pod, need, policies)
    return shared or f"Guaranteed, and {asked} is a whole number of CPUs"


def why_shared(container: Container, pod: Pod, need: PodNeed, policies: NodePolicies) -> str:
    """Why a container has no CPUs of its own; empty where it is due some."""
    if policies.cpu != STATIC:
        return f"policy {policies.cpu}: no container has CPUs of its own"
    if need.pod_level:
        return "pod-level resources: the CPU manager leaves such pods alone"
    if need.qos is not QosClass.GUARANTEED:
        return f"{need.qos.value}: {why_not_guaranteed(pod)}"
    if not need.container(container.name).cpus:
        asked = container.resources.requests.get(CPU) or container.resources.limits.get(CPU)
        return f"{asked} is not a whole number of CPUs"
    return ""


def why_not_guaranteed(pod: Pod) -> str:
    """The first thing that keeps a pod from being Guaranteed."""
    every = (*pod.spec.init_containers, *pod.spec.containers)
    named = f"{pod.status.qos_class} by its status"
    return next(itertools.chain.from_iterable(map(_missing, every)), named)


def _missing(container: Container) -> Iterator[str]:
    requests, limits = container.resources.requests, container.resources.limits
    if not {CPU, MEMORY} & {*requests, *limits}:
        yield f"{container.name} asks for neither cpu nor memory"
    for name in (CPU, MEMORY):
        limit, asked = limits.get(name), requests.get(name, limits.get(name))
        if limit is None or parse(limit).nanos <= 0:
            yield f"{container.name} has no {name} limit"
        elif asked is not None and parse(asked) != parse(limit):
            yield f"{container.name}: {name} request {asked} differs from limit {limit}"


# --- how its CPUs were selected


def how_selected(assignment: Assignment, topology: Topology) -> str:
    """`whole NUMA node 1 (32 CPUs), cores 4-5 (siblings 68-69)`, in the order in which they were taken."""
    steps = itertools.groupby(assignment.taken, key=lambda taken: _kind(taken, topology))
    return ", ".join(_words(kind, [*taken], topology) for kind, taken in steps)


class _Kind(NamedTuple):
    level: Level
    whole: bool


def _kind(taken: Taken, topology: Topology) -> _Kind:
    whole = taken.level is not Level.CACHE or topology.caches.get(taken.group) == taken.cpus
    return _Kind(taken.level, whole)


_NAMES = {Level.NODE: "NUMA node", Level.SOCKET: "socket", Level.CACHE: "L3 group"}


def _words(kind: _Kind, taken: Sequence[Taken], topology: Topology) -> str:
    groups, cpus = mask_of(each.group for each in taken), 0
    for each in taken:
        cpus |= each.cpus
    some = "s" if len(taken) > 1 else ""
    if kind.level is Level.CPU:
        return f"single CPU{some} {format_list(cpus)}"
    if kind.level is Level.CORE:
        siblings = cpus & ~mask_of(topology.cores)
        plural = "s" if siblings.bit_count() > 1 else ""
        told = f" (sibling{plural} {format_list(siblings)})" if siblings else ""
        return f"core{some} {format_list(groups)}{told}"
    name = f"{_NAMES[kind.level]}{some} {format_list(groups)}"
    return f"whole {name} ({many(cpus.bit_count(), 'CPU')})" if kind.whole else f"CPUs {format_list(cpus)} of {name}"


# --- who hinted what


def hinted(providers: Mapping[str, Hints]) -> dict[str, str]:
    """Which NUMA nodes each resource would be best on, by resource; resources without an opinion are left out."""
    return {
        resource: hint_words(hints)
        for found in providers.values()
        for resource, hints in (found or {}).items()
        if hints is not None
    }


def hint_words(hints: Iterable[Hint]) -> str:
    """`0 or 1`; `one of 0-7`; `0-1 at best` where nothing is preferred; `nowhere`, `anywhere`."""
    every = [*hints]
    preferred = [hint.nodes for hint in every if hint.preferred]
    if None in preferred:
        return "anywhere"
    masks: list[NodeSet] = [nodes for nodes in preferred if nodes is not None] or _fewest(every)
    if not masks:
        return "nowhere"
    return _either(masks) + ("" if preferred else " at best")


def _either(masks: Sequence[NodeSet]) -> str:
    if len(masks) > 2 and all(mask.bit_count() == 1 for mask in masks):
        return f"one of {format_list(sum(masks))}"
    texts = [format_list(mask) for mask in masks[:_MOST]]
    if len(masks) > _MOST:
        texts.append(f"{len(masks) - _MOST} more")
    return " or ".join(texts)


def _fewest(hints: Iterable[Hint]) -> list[NodeSet]:
    masks = [hint.nodes for hint in hints if hint.nodes is not None]
    least = min((mask.bit_count() for mask in masks), default=0)
    return [mask for mask in masks if mask.bit_count() == least]
