"""Family kubelet/topology_hints: the CPU manager's hints for a container or a pod on a given state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.conformance.frame import Verdict
from bayplan.conformance.kubelet.admissions import hints_of
from bayplan.conformance.kubelet.cases import pod_of, topology_of
from bayplan.node.cpu.hints import container_hints, pod_hints
from bayplan.node.cpu.policy import StaticPolicy
from bayplan.node.cpu.state import CpuState
from bayplan.node.policies import NodePolicies
from bayplan.node.sets import parse_list

if TYPE_CHECKING:
    from bayplan.conformance.kubelet.cases import Case
    from bayplan.node.topology.hint import Hints


def run(case: Case) -> Verdict:
    """Run one case."""
    ours = hints_of(_hints(case))
    told = "" if ours == case["hints"] else f"{ours}, expected {case['hints']}"
    return Verdict(case["id"], case["scope"], agrees=not told, difference=told)


def _hints(case: Case) -> Hints:
    reserved = parse_list(case["reserved"])
    policies = NodePolicies(
        cpu="static",
        cpu_options=case["options"],
        reserved=reserved.bit_count(),
        reserved_cpus=reserved,
        as_upstream=True,
    )
    policy = StaticPolicy(topology_of(case), policies)
    assignments = {
        uid: {name: parse_list(cpus) for name, cpus in containers.items()}
        for uid, containers in case["assignments"].items()
    }
    state = CpuState(parse_list(case["default"]), assignments)
    pod = pod_of(case["pod"])
    reusable = parse_list(case["reusable"].get(pod.uid, ""))
    if case["scope"] == "pod":
        return pod_hints(policy, state, reusable, pod)
    return container_hints(policy, state, reusable, pod, pod.container(case["container"]))
