"""Family kubelet/memory_manager: a sequence of pods that come and go, on a machine whose memory is managed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.conformance.frame import Verdict
from bayplan.conformance.kubelet.admissions import attempt, hints_of, policies_of
from bayplan.conformance.kubelet.cases import Case, pod_of
from bayplan.conformance.scheduling.cases import first_difference
from bayplan.model.errors import PermanentError
from bayplan.node.errors import PolicyError
from bayplan.node.machine import NumaNode
from bayplan.node.memory.manager import MemoryManager
from bayplan.node.memory.state import MemoryState, NodeMemory
from bayplan.node.needs import PodNeed, Role
from bayplan.node.sets import NodeSet, ids_of
from bayplan.node.topology.manager import TopologyManager

Recorded = dict[str, Any]


def run(case: Case) -> Verdict:
    """Run one case: every step's answer and the whole state after it must agree."""
    asked = case["topology_manager"]
    group = f"{asked.get('policy', asked['mode'])}/{asked.get('scope', '-')}"
    apart = any(step["expect"].get("error_depends_on_map_order") for step in case["steps"])
    told = _difference(case)
    return Verdict(
        case["id"], group, agrees=not told, difference=told, apart="upstream's answer is random" if apart else ""
    )


def _difference(case: Case) -> str:
    try:
        node = _Node(case)
    except PolicyError as error:
        return first_difference({"new_error": error.message}, {"new_error": case["new_error"]})
    start = {"new_error": None, "initial_state": node.state()["machine"]}
    told = first_difference(start, {key: case.get(key) for key in start})
    for number, step in enumerate(case["steps"]):
        ours = {**_OPS[step["op"]](node, step), **node.state()}
        told = told or first_difference(ours, step["expect"], f"step {number} {step['op']}")
    return told


class _Node:
    """The memory manager under its topology manager, and the pods it was told of."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.topology = self._topology()
        self.memory = MemoryManager(numa_nodes(case), "Static", reserved_of(case), as_upstream=True)
        self.pods: dict[str, PodNeed] = {}

    def _topology(self) -> TopologyManager | None:
        asked = self.case["topology_manager"]
        if asked["mode"] == "fixed":
            return None
        try:
            return TopologyManager(policies_of(asked), numa_nodes(self.case))
        except PolicyError as error:
            raise PolicyError(f"topology manager: {error.message}") from error

    def state(self) -> Recorded:
        """What every step tells."""
        state = self.memory.state
        machine = [node_of(each, node) for each, node in state.nodes.items()]
        return {"machine": machine, "blocks": blocks_of(state), "reusable": _reusable(state)}

    def admit(self, step: Case) -> Recorded:
        pod = pod_of(step["pod"])
        self.pods[pod.uid] = pod
        return attempt(step, pod, {"memory": self.memory}, self.topology)

    def remove_pod(self, step: Case) -> Recorded:
        for container in self.pods[step["uid"]].containers:
            self.memory.remove(step["uid"], container.name)
        return {}

    def remove_container(self, step: Case) -> Recorded:
        self.memory.remove(step["uid"], step["container"])
        return {}

    def start_containers(self, step: Case) -> Recorded:
        for container in self.pods[step["uid"]].containers:
            if container.role is Role.INIT:
                self.memory.remove(step["uid"], container.name)
        return {}

    def hints(self, step: Case) -> Recorded:
        pod = pod_of(step["pod"])
        return {
            "container_hints": {each.name: hints_of(self.memory.hints(pod, each)) for each in pod.containers},
            "pod_hints": hints_of(self.memory.pod_hints(pod)),
        }

    def restart(self, step: Case) -> Recorded:
        self.case = _with_reserved(self.case, step.get("new_reserved"))
        self.memory.state = msgspec.structs.replace(self.memory.state, reusable={})  # it was the old manager's
        try:
            self.memory = MemoryManager(
                numa_nodes(self.case), "Static", reserved_of(self.case), self.memory.state, as_upstream=True
            )
        except PermanentError as error:
            return {"error": error.message}
        self.topology = self._topology()
        return {"error": None}


_OPS: dict[str, Callable[[_Node, Case], Recorded]] = {
    "admit": _Node.admit,
    "remove_pod": _Node.remove_pod,
    "remove_container": _Node.remove_container,
    "start_containers": _Node.start_containers,
    "hints": _Node.hints,
    "restart": _Node.restart,
}


def numa_nodes(case: Case) -> list[NumaNode]:
    """The NUMA nodes of a case with their memory, and with their distances where the case has them."""
    rows = case["topology_manager"].get("distances") or {}
    return [
        NumaNode(
            id=node["id"],
            memory=node["memory"],
            hugepages={int(kib): count for kib, count in node["hugepages"].items()},
            distances=dict(enumerate(rows.get(str(node["id"]), ()))),
        )
        for node in case["nodes"]
    ]


def reserved_of(case: Case) -> dict[int, dict[str, int]]:
    """The memory kept for the system."""
    return {node["id"]: node["reserved"] for node in case["nodes"]}


def _with_reserved(case: Case, reserved: Case | None) -> Case:
    if reserved is None:
        return case
    return {**case, "nodes": [{**node, "reserved": reserved.get(str(node["id"]), {})} for node in case["nodes"]]}


def blocks_of(state: MemoryState) -> Recorded:
    """The blocks in the recordings' form."""
    return {
        uid: {
            name: [[block.resource, [*ids_of(block.nodes)], block.size] for block in blocks]
            for name, blocks in containers.items()
        }
        for uid, containers in state.blocks.items()
    }


def node_of(each: int, node: NodeMemory) -> Recorded:
    """A NUMA node in the recordings' form."""
    tables = {name: table._asdict() for name, table in node.tables.items()}
    return {"id": each, "assignments": node.assignments, "cells": [*ids_of(node.cells)], "memory": tables}


def _reusable(state: MemoryState) -> Recorded:
    """What pods may use again, by groups told in binary digits."""
    return {
        uid: {_binary(group): dict(amounts) for group, amounts in groups.items()}
        for uid, groups in state.reusable.items()
    }


def _binary(group: NodeSet) -> str:
    """Upstream pads to an even number of digits, but for powers of four."""
    return f"{group:b}".zfill(max(2, ((group - 1).bit_length() + 1) // 2 * 2))
