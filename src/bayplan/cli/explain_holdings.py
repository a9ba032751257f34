"""Which CPUs, NUMA nodes, memory and devices a pod holds on its node, and why; or why its node would not take it.

Virtual kubelets write what they give a pod on the pod itself. Real ones keep that to themselves; then so much is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.cli.cpu.machine_words import amount
from bayplan.cli.describe.page import NONE
from bayplan.model.errors import PermanentError
from bayplan.model.quantity import parse
from bayplan.model.resources import CPU
from bayplan.node.annotations.equipment import Equipment, equipment_of
from bayplan.node.annotations.holdings import Held, HoldingsError, Refused, holdings_of
from bayplan.node.annotations.managers import rebuilt
from bayplan.node.needs import needs_of
from bayplan.node.reasons import policies_words, why_own_or_shared
from bayplan.node.sets import CpuSet, format_list, parse_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bayplan.cli.describe.page import Page
    from bayplan.model.nodes import Node
    from bayplan.model.pods import Container, Pod
    from bayplan.node.needs import PodNeed

Doc = dict[str, Any]

REFUSALS = ("TopologyAffinityError", "SMTAlignmentError", "UnexpectedAdmissionError")
"""The reasons of pods that the managers of a node refused."""
NOT_TOLD = (
    "its node's kubelet does not tell which it holds; `bayplan agent` on the node does, and `bayplan cpu plan` says "
    "what a kubelet would give it"
)


class Share(msgspec.Struct, frozen=True):
    """What one container runs on."""

    container: str
    cpus: str
    exclusive: bool
    cores: int
    nodes: str
    why: str
    held: Held
    devices: dict[str, str] = {}
    """The NUMA nodes of its devices, by resource."""


class Possession(msgspec.Struct, frozen=True):
    """What a pod holds of which machine, or the sentence why that is not known."""

    unknown: str = ""
    machine: str = ""
    policies: str = ""
    shares: tuple[Share, ...] = ()


def possession(pod: Pod, node: Node | None, pods: Iterable[Pod]) -> Possession | None:
    """What a pod holds; None where nobody would ask. `pods` are all that there are."""
    need = needs_of(pod)
    equipment = None if node is None else equipment_of(node.metadata.annotations)
    if not isinstance(equipment, Equipment):
        return Possession(NOT_TOLD) if any(each.cpus for each in need.containers) else None
    here = [each for each in pods if each.spec.node_name == pod.spec.node_name and not each.is_terminal]
    try:
        found = holdings_of(pod)
        shared = rebuilt(equipment, [each for each in here if each.status.start_time is not None]).managers.cpu.shared
    except PermanentError as broken:
        return Possession(broken.message)
    records = found.containers if found is not None else {}
    specs = (*pod.spec.init_containers, *pod.spec.containers)
    shares = (_share(each, pod, need, equipment, records.get(each.name, Held()), shared) for each in specs)
    return Possession("", _machine(equipment), policies_words(equipment.policies), tuple(shares))


def _share(spec: Container, pod: Pod, need: PodNeed, equipment: Equipment, held: Held, shared: CpuSet) -> Share:
    topology = equipment.machine.topology
    cpus = parse_list(held.cpus) if held.cpus else shared
    near = {(each.resource, each.id): each.nodes for each in equipment.machine.devices}
    places = {
        name: format_list(_union(near.get((name, each), 0) for each in ids)) for name, ids in held.devices.items()
    }
    return Share(
        container=spec.name,
        cpus=format_list(cpus),
        exclusive=bool(held.cpus),
        cores=sum(1 for members in topology.cores.values() if members & cpus),
        nodes=format_list(topology.nodes_of(cpus)),
        why=why_own_or_shared(spec, pod, need, equipment.policies),
        held=held,
        devices=places,
    )


def _union(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found


def _machine(equipment: Equipment) -> str:
    topology = equipment.machine.topology
    counts = ((len(topology.cpus), "CPU"), (len(topology.cores), "core"), (len(topology.nodes), "NUMA node"))
    return f"{equipment.machine.name}: " + ", ".join(f"{count} {what}{'s' * (count != 1)}" for count, what in counts)


# --- as people read it


def possession_page(found: Possession, page: Page) -> None:
    """The section of a pod's page."""
    if found.unknown:
        page.pairs([("CPUs", found.unknown)])
        return
    page.table(
        "CPUs",
        ["Container", "CPUs", "Cores", "NUMA Nodes", "Pool", "Why"],
        [
            [each.container, each.cpus or NONE, str(each.cores), each.nodes, _pool(each), each.why]
            for each in found.shares
        ],
    )
    page.line(f"on {found.machine}", 2)
    page.line(found.policies, 2)
    rows = [row for each in found.shares for row in _extras(each)]
    if rows:
        page.table("Memory And Devices", ["Container", "Resource", "Held", "NUMA Nodes"], rows)
    chosen = [each for each in found.shares if each.held.why]
    if chosen:
        page.table(
            "NUMA Affinity",
            ["Container", "NUMA Nodes", "Preferred", "Hints", "Because"],
            [
                [each.container, _nodes(each.held), _yes(each.held.preferred), _hints(each.held.hints), each.held.why]
                for each in chosen
            ],
        )


def _pool(share: Share) -> str:
    return "exclusive" if share.exclusive else "shared"


def _yes(word: bool) -> str:
    return "yes" if word else "no"


def _nodes(held: Held | Refused) -> str:
    return "any" if held.affinity is None else held.affinity


def _extras(share: Share) -> Iterator[list[str]]:
    for block in share.held.memory:
        yield [share.container, block.resource, amount(block.size), block.nodes]
    for resource, ids in share.held.devices.items():
        yield [share.container, resource, ", ".join(ids), share.devices.get(resource) or "unknown"]


def _hints(hints: Mapping[str, str]) -> str:
    """Who hinted what: `cpu 0 or 1; memory anywhere; nvidia.com/gpu 0-1 at best`."""
    return "; ".join(f"{resource} {each}" for resource, each in hints.items()) or NONE


# --- a pod that was refused


def refusal_page(pod: Pod, page: Page) -> None:
    """The page of a pod that the managers of its node refused."""
    refused = _refused(pod)
    page.pairs(
        [
            ("Name", pod.metadata.name),
            ("Namespace", pod.metadata.namespace),
            ("Node", pod.spec.node_name),
            ("Refused", f"by the node's kubelet: {pod.status.reason}"),
            ("Message", pod.status.message),
            ("Asked", _asked(pod)),
            ("Stopped At", f"container {refused.container}" if refused and refused.container else None),
            ("Hints", [f"{name} {each}" for name, each in refused.hints.items()] or None if refused else None),
            ("Together", _together(refused, pod.status.reason) if refused and refused.why else None),
            ("Free Then", None if refused else "not known: no virtual kubelet wrote it down"),
            ("Let In By", "`bayplan cpu explain -f FILE --machine MACHINE`, given its manifest, says"),
        ]
    )
    if refused is not None:
        names = [*refused.free]
        nodes = dict.fromkeys(node for each in refused.free.values() for node in each)
        page.table(
            "Free Then",
            ["NUMA Node", *names],
            [[node, *(_amount(name, refused.free[name].get(node, "")) for name in names)] for node in nodes],
        )


def _together(refused: Refused, reason: str) -> str:
    """What the hints came to; that alone was not in the way where an allocation failed."""
    many = "s" * (refused.affinity is not None and not refused.affinity.isdigit())
    nodes = f"NUMA node{many} {refused.affinity}" if refused.affinity is not None else "nowhere"
    verdict = f", which {refused.policy} does not admit" if reason == REFUSALS[0] else ""
    return f"{nodes}{verdict}: {refused.why}"


def _amount(resource: str, text: str) -> str:
    if resource == CPU:
        return f"{parse_list(text).bit_count()} ({text})" if text else "0"
    return text if "/" in resource else amount(parse(text or "0").value())


def _asked(pod: Pod) -> list[str]:
    found = []
    for each in (*pod.spec.init_containers, *pod.spec.containers):
        asked = {**each.resources.limits, **each.resources.requests}
        found.append(f"{each.name}: " + (", ".join(f"{much} {name}" for name, much in asked.items()) or NONE))
    return found


def _refused(pod: Pod) -> Refused | None:
    try:
        found = holdings_of(pod)
    except HoldingsError:
        return None  # somebody wrote into it: it is as good as none
    return found.refused if found is not None else None


# --- for programs


def possession_document(found: Possession) -> Doc:
    """The same as one value."""
    if found.unknown:
        return {"unknown": found.unknown}
    return {
        "machine": found.machine,
        "policies": found.policies,
        "containers": [
            {
                "name": each.container,
                "cpus": each.cpus,
                "exclusive": each.exclusive,
                "cores": each.cores,
                "numaNodes": each.nodes,
                "why": each.why,
                "held": msgspec.to_builtins(each.held),
            }
            for each in found.shares
        ],
    }


def refusal_document(pod: Pod) -> Doc:
    """A refused pod's page as one value."""
    refused = _refused(pod)
    return {
        "pod": {"namespace": pod.metadata.namespace, "name": pod.metadata.name},
        "node": pod.spec.node_name,
        "outcome": "refused",
        "reason": pod.status.reason,
        "message": pod.status.message,
        "then": None if refused is None else msgspec.to_builtins(refused),
    }
