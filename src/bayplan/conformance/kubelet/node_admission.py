"""Family kubelet/node_admission: a sequence of pods on a machine whose CPUs, memory and topology are all managed."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.conformance.frame import Verdict
from bayplan.conformance.kubelet.admissions import admission_of, policies_of
from bayplan.conformance.kubelet.cases import Case, pod_of, topology_of
from bayplan.conformance.kubelet.memory_manager import (
    Recorded,
    blocks_of,
    node_of,
    numa_nodes,
    reserved_of,
)
from bayplan.conformance.scheduling.cases import first_difference
from bayplan.node.admission import NodeManagers
from bayplan.node.machine import Machine
from bayplan.node.needs import PodNeed
from bayplan.node.policies import NodePolicies
from bayplan.node.sets import format_list, parse_list


def run(case: Case) -> Verdict:
    """Run one case: every step's answer and the whole state after it must agree."""
    asked = case["topology_manager"]
    told = _difference(case)
    group = f"{asked['policy']}/{asked.get('scope', '-')}"
    return Verdict(case["id"], group, agrees=not told, difference=told)


def _difference(case: Case) -> str:
    node = _Node(case)
    ours = {"effective_reserved": format_list(node.managers.cpu.reserved)}
    told = first_difference(ours, {key: case[key] for key in ours})
    for number, step in enumerate(case["steps"]):
        ours = {**_OPS[step["op"]](node, step), **node.state()}
        told = told or first_difference(ours, step["expect"], f"step {number} {step['op']}")
    return told


class _Node:
    """The managers, and the pods they were told of."""

    def __init__(self, case: Case) -> None:
        policies = NodePolicies(
            cpu="static",
            cpu_options=case["options"],
            reserved=case["num_reserved"],
            reserved_cpus=parse_list(case["reserved_cpus"]),
            topology=policies_of(case["topology_manager"]),
            memory="Static",
            reserved_memory=reserved_of(case),
            as_upstream=True,
        )
        self.managers = NodeManagers(Machine(case["id"], topology_of(case), tuple(numa_nodes(case))), policies)
        self.pods: dict[str, PodNeed] = {}

    def state(self) -> Recorded:
        """What every step tells."""
        cpu, memory = self.managers.cpu, self.managers.memory.state
        machine = [node_of(each, node) for each, node in memory.nodes.items()]
        for node in machine:
            node["memory"] = {
                name: [table[field] for field in ("allocatable", "reserved", "free")]
                for name, table in node["memory"].items()
            }
        return {
            "cpu_assignments": {
                uid: {name: format_list(cpus) for name, cpus in containers.items()}
                for uid, containers in cpu.state.assignments.items()
            },
            "cpu_default": format_list(cpu.state.default),
            "cpu_reusable": {uid: format_list(cpus) for uid, cpus in cpu.reusable.items()},
            "blocks": blocks_of(memory),
            "machine": machine,
        }

    def admit(self, step: Case) -> Recorded:
        pod = self.pods[step["pod"]["uid"]] = pod_of(step["pod"])
        admission = self.managers.admit(pod)
        refusal = admission.refusal
        errors = {refusal.provider: refusal.error.message} if refusal and refusal.error else {}
        return {
            **admission_of(admission),
            "cpu_error": errors.get("cpu"),
            "memory_error": errors.get("memory"),
        }

    def remove_pod(self, step: Case) -> Recorded:
        self.managers.remove(step["uid"])
        return {}

    def start_containers(self, step: Case) -> Recorded:
        self.managers.start_containers(self.pods[step["uid"]])
        return {}


_OPS: dict[str, Callable[[_Node, Case], Recorded]] = {
    "admit": _Node.admit,
    "remove_pod": _Node.remove_pod,
    "start_containers": _Node.start_containers,
}
