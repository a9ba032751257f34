"""Family kubelet/static_policy: the CPU manager over a sequence of admissions, removals and restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.conformance.frame import Verdict
from bayplan.conformance.kubelet.admissions import attempt, policies_of
from bayplan.conformance.kubelet.cases import pod_of, topology_of
from bayplan.conformance.scheduling.cases import first_difference
from bayplan.model.errors import PermanentError
from bayplan.node.cpu.manager import CpuManager
from bayplan.node.errors import PolicyError
from bayplan.node.machine import NumaNode
from bayplan.node.policies import NodePolicies, TopologyPolicies
from bayplan.node.sets import format_list, parse_list
from bayplan.node.topology.manager import TopologyManager

if TYPE_CHECKING:
    from bayplan.conformance.kubelet.cases import Case
    from bayplan.node.needs import PodNeed


def run(case: Case) -> Verdict:
    """Run one case. From the step on at which upstream hands out a CPU twice, our own answers must do without."""
    anomaly = case.get("anomaly")
    steps = case["steps"][: anomaly["step"]] if anomaly else case["steps"]
    told = _difference({**case, "steps": steps}) or (kept_apart(case) if anomaly else "")
    group = "refused" if case["new_error"] else case["topology_manager"]["mode"]
    return Verdict(
        case["id"], group, agrees=not told, difference=told, apart=anomaly["kind"] if anomaly and not told else ""
    )


def _difference(case: Case) -> str:
    """The first thing in which the compatibility mode differs from the recording."""
    try:
        node = _Node(case, as_upstream=True)
    except PermanentError as error:
        return first_difference({"new_error": error.message}, {"new_error": case["new_error"]})
    start = {"new_error": None, "initial_default": format_list(node.cpu.state.default), **node.reservation()}
    told = first_difference(start, {key: case[key] for key in start})
    for number, step in enumerate(case["steps"]):
        told = told or first_difference(node.take(step), step["expect"], f"step {number} {step['op']}")
    return told


def kept_apart(case: Case) -> str:
    """Where our own mode fails to keep the pools apart, or loses a CPU."""
    node = _Node(case, as_upstream=False)
    for number, step in enumerate(case["steps"]):
        node.take(step)
        told = node.broken()
        if told:
            return f"step {number} {step['op']}: {told}"
    return ""


class _Node:
    """The CPU manager, alone or under its topology manager, and the pods it was told of."""

    def __init__(self, case: Case, *, as_upstream: bool) -> None:
        self.case = case
        self.machine = topology_of(case)
        self.topology = self._topology_manager()
        self.policies = NodePolicies(
            cpu="static",
            cpu_options=case["options"],
            reserved=case["num_reserved"],
            reserved_cpus=parse_list(case["reserved_cpus"]),
            topology=self.topology.policies if self.topology is not None else TopologyPolicies(),
            as_upstream=as_upstream,
        )
        self.cpu = CpuManager(self.machine, self.policies)
        self.pods: dict[str, PodNeed] = {}

    def _topology_manager(self) -> TopologyManager | None:
        asked = self.case["topology_manager"]
        if asked["mode"] != "manager":
            return None
        rows = asked.get("distances") or {}
        nodes = [NumaNode(each, 0, distances=dict(enumerate(rows.get(str(each), ())))) for each in self.machine.nodes]
        try:
            return TopologyManager(policies_of(asked), nodes)
        except PolicyError as error:
            raise PolicyError(f"topology manager: {error.message}") from error

    def take(self, step: Case) -> Case:
        """Take one step: its own answer, and what every step tells."""
        told = {"admit": self._admit, "restart": self._restart}.get(step["op"], self._remove)(step)
        state = self.cpu.state
        assignments = {
            uid: {name: format_list(cpus) for name, cpus in containers.items()}
            for uid, containers in state.assignments.items()
        }
        reusable = {uid: format_list(cpus) for uid, cpus in self.cpu.reusable.items()}
        return {"assignments": assignments, "default": format_list(state.default), "reusable": reusable, **told}

    def reservation(self) -> Case:
        """The reserved CPUs in the recordings' form."""
        policy = self.cpu.policy
        return {
            "effective_reserved": format_list(self.cpu.reserved),
            "effective_reserved_physical": format_list(policy.reserved_physical if policy is not None else 0),
        }

    def broken(self) -> str:
        """What is wrong with the books, if anything."""
        state, held = self.cpu.state, 0
        for uid, containers in state.assignments.items():
            pod = 0
            for cpus in containers.values():
                pod |= cpus
            if pod & (held | state.default | self.cpu.reserved):
                return f"{uid} holds CPUs of others: {format_list(pod & (held | state.default | self.cpu.reserved))}"
            held |= pod
        missing = self.machine.all & ~(held | state.default | self.cpu.reserved)
        return f"CPUs lost: {format_list(missing)}" if missing else ""

    def _admit(self, step: Case) -> Case:
        pod = self.pods[step["pod"]["uid"]] = pod_of(step["pod"])
        return attempt(step, pod, {"cpu": self.cpu}, self.topology)

    def _remove(self, step: Case) -> Case:
        if step["op"] == "remove_container":
            self.cpu.remove(step["uid"], step["container"])
            return {"error": None}
        for container in self.pods[step["uid"]].containers if step["uid"] in self.pods else ():
            self.cpu.remove(step["uid"], container.name)
        return {}

    def _restart(self, step: Case) -> Case:
        changes = {"reserved": step["num_reserved"], "reserved_cpus": parse_list(step["reserved_cpus"])}
        self.policies = msgspec.structs.replace(self.policies, **changes)
        try:
            self.cpu = CpuManager(self.machine, self.policies, self.cpu.state)
        except PermanentError as error:
            return {"error": error.message, "reusable": {}}  # what could be reused was the old manager's
        self.topology = self._topology_manager()
        return {"error": None, **self.reservation()}
