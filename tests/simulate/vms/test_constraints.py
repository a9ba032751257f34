"""Whatever VMs ask of their place is given or they wait: random VMs, random constraints, none ever broken."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from bayplan.simulate.vms import VM, Node, PodManager
from bayplan.testing import fake_cluster, priority_class

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST, ZONE = "kubernetes.io/hostname", "zone"
TEAMS = ("red", "blue", "green")
PRIORITIES = {"low": 10, "": 0, "high": 1000}
Doc = dict[str, Any]


def cluster_nodes() -> list[Node]:
    """Twelve nodes in three zones, half of them with SSDs, a quarter tainted."""
    dedicated = {"key": "dedicated", "value": "vms", "effect": "NoSchedule"}
    return [
        Node(
            f"n{number:02}",
            labels={ZONE: f"z{number % 3}", "disk": "ssd" if number % 2 else "hdd"},
            taints=[dedicated] if number % 4 == 3 else [],
        )
        for number in range(12)
    ]


def term(key: str, team: str) -> Doc:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"team": team}}}


def random_vm(chance: random.Random, number: int) -> VM:
    team = chance.choice(TEAMS)
    vm = VM(f"vm-{number}", chance.uniform(0.02, 0.3), chance.uniform(0.02, 0.3), labels={"team": team})
    if chance.random() < 0.3:
        vm.node_selector = {"disk": chance.choice(["ssd", "hdd"])}
    if chance.random() < 0.3:
        vm.tolerations = [{"key": "dedicated", "operator": "Exists"}]
    if chance.random() < 0.25:
        zones = chance.sample(["z0", "z1", "z2"], 2)
        expression = {"key": ZONE, "operator": chance.choice(["In", "NotIn"]), "values": zones}
        vm.affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if chance.random() < 0.2:
        vm.affinity["podAntiAffinity"] = {REQUIRED: [term(HOST, chance.choice(TEAMS))]}
    elif chance.random() < 0.2:
        vm.affinity["podAffinity"] = {REQUIRED: [term(ZONE, team)]}
    if chance.random() < 0.2:
        selector = {"matchLabels": {"team": team}}
        vm.topology_spread = [
            {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        ]
    vm.priority_class_name = chance.choice(list(PRIORITIES))
    return vm


# --- the rules, said once more and in other words


class Placement:
    """The VMs that have a place, and the rules that a newcomer must keep."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.there: dict[str, tuple[VM, str]] = {}

    def zone(self, key: str, node: str) -> str:
        return node if key == HOST else self.nodes[node].labels[key]

    def neighbours(self, key: str, node: str) -> list[VM]:
        zone = self.zone(key, node)
        return [vm for vm, place in self.there.values() if self.zone(key, place) == zone]

    def broken(self, vm: VM, node: str) -> list[str]:
        """Which rules a VM that has just come to a node breaks."""
        rules = {
            "capacity": self._fits(vm, node),
            "nodeSelector": vm.node_selector.items() <= self.nodes[node].labels.items(),
            "taints": bool(vm.tolerations) or not self.nodes[node].taints,
            "nodeAffinity": self._by_node(vm, node),
            "podAffinity": self._together(vm, node),
            "podAntiAffinity": self._apart(vm, node),
            "spread": self._spread(vm, node),
        }
        return [rule for rule, kept in rules.items() if not kept]

    def _fits(self, vm: VM, node: str) -> bool:
        all_there = [vm, *(other for other, place in self.there.values() if place == node)]
        cpu, memory = (
            sum(each.cpu_consumption for each in all_there),
            sum(each.memory_consumption for each in all_there),
        )
        return cpu <= 1 + 1e-6 and memory <= 1 + 1e-6

    def _by_node(self, vm: VM, node: str) -> bool:
        for required in vm.affinity.get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", ()):
            for one in required["matchExpressions"]:
                if (self.nodes[node].labels[one["key"]] in one["values"]) != (one["operator"] == "In"):
                    return False
        return True

    def _together(self, vm: VM, node: str) -> bool:
        for one in vm.affinity.get("podAffinity", {}).get(REQUIRED, ()):
            team = one["labelSelector"]["matchLabels"]["team"]
            anywhere = any(other.labels["team"] == team for other, _ in self.there.values())
            near = any(other.labels["team"] == team for other in self.neighbours(one["topologyKey"], node))
            if not near and (anywhere or vm.labels["team"] != team):
                return False
        return True

    def _apart(self, vm: VM, node: str) -> bool:
        for other in self.neighbours(HOST, node):
            for asks, asked in ((vm, other), (other, vm)):
                for one in asks.affinity.get("podAntiAffinity", {}).get(REQUIRED, ()):
                    if one["labelSelector"]["matchLabels"]["team"] == asked.labels["team"]:
                        return False
        return True

    def _spread(self, vm: VM, node: str) -> bool:
        for one in vm.topology_spread:
            team = one["labelSelector"]["matchLabels"]["team"]
            # only nodes that the VM's own selector and affinity allow count, as it is by default
            allowed = [
                name
                for name, each in self.nodes.items()
                if vm.node_selector.items() <= each.labels.items() and self._by_node(vm, name)
            ]
            counts = Counter({self.nodes[name].labels[ZONE]: 0 for name in allowed})
            for other, place in self.there.values():
                if place in allowed and other.labels["team"] == team:
                    counts[self.nodes[place].labels[ZONE]] += 1
            if counts[self.nodes[node].labels[ZONE]] + 1 - min(counts.values()) > one["maxSkew"]:
                return False
        return True


def place_many(number: int) -> Counter[str]:
    chance = random.Random(19)
    classes = [priority_class(name, value) for name, value in PRIORITIES.items() if name]
    outcome: Counter[str] = Counter()
    nodes = cluster_nodes()
    placement = Placement(nodes)
    with PodManager(backend=fake_cluster(*classes)) as pods:
        pods.ensure_nodes(nodes)
        for turn in range(number):
            vm = random_vm(chance, turn)
            pods.create_pod(vm)
            node = pods.get_pod_node_assignment(vm.id)
            preempted = [each for each in placement.there if each not in pods.mirror.vms()]
            for name in preempted:
                assert PRIORITIES[placement.there[name][0].priority_class_name] < PRIORITIES[vm.priority_class_name]
                del placement.there[name]
                pods.delete_pod(name)
            if node is None:
                assert pods.why_pending(vm.id)
                pods.delete_pod(vm.id)
            else:
                assert placement.broken(vm, node) == [], f"{vm} on {node}"
                placement.there[vm.id] = vm, node
            outcome.update({"placed" if node else "pending": 1, "preempted": len(preempted)})
            while len(placement.there) > 45 or (placement.there and chance.random() < 0.3):
                leaving = chance.choice(list(placement.there))
                del placement.there[leaving]
                pods.delete_pod(leaving)
    return outcome


def test_no_placement_breaks_a_constraint() -> None:
    found = place_many(150)
    assert found["placed"] > 80
    assert found["placed"] + found["pending"] == 150


@pytest.mark.slow
def test_ten_thousand_placements_break_no_constraint() -> None:
    found = place_many(10_000)
    assert found["placed"] > 5_000
    assert found["preempted"] > 0
