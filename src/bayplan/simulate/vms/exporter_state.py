"""`ExporterState`: nodes and the VMs on them, as the scheduler has decided; moves are wishes that it is asked about.

While there is an API, a node's VMs are those whose pods are on it, whoever put them there or took them away: what the
watches tell is taken in at the next look, so a look costs as much as has changed. While there is none, the VMs stay as
they were, moves are made on our word alone and marked `direct`; when it is back, the pods' places count again.

The lock is never held while a cluster is asked, so nobody who scrapes waits for a migration.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.service.logging import get_logger
from bayplan.simulate.vms.agreement import Agreement, MoveResult, agreement
from bayplan.simulate.vms.grounds import ClusterAway
from bayplan.simulate.vms.launcher import check_nodes
from bayplan.simulate.vms.manager import PodManager
from bayplan.simulate.vms.pressure import Curve, cpu_pressure, memory_pressure, monotone
from bayplan.simulate.vms.reasons import DIRECT, Why
from bayplan.simulate.vms.vm import VM, Node, check_vms

log = get_logger(__name__)
_REMEMBERED = 100_000


class NotInScenarioError(PermanentError):
    """A VM or node that the scenario does not have."""

    code = "BP-X034"


class NodeUse(msgspec.Struct, frozen=True):
    """What a node shows."""

    cpu_usage: float
    cpu_pressure: float
    memory_usage: float
    memory_pressure: float
    vms: int


class ExporterState:
    """The state behind the metrics. Every method may be called from any thread."""

    def __init__(self, pod_manager: PodManager, *, curve: Curve = monotone) -> None:
        self.pod_manager = pod_manager
        self._curve = curve
        self._lock = threading.RLock()
        self._nodes: dict[str, Node] = {}
        self._vms: dict[str, VM] = {}
        self._at: dict[str, str] = {}  # on whose list each VM stands
        self._moves: deque[MoveResult] = deque(maxlen=_REMEMBERED)
        self._placed = self._as_wished = 0
        self._touched: dict[str, None] = {}  # VMs whose place may have changed; filled on another thread
        pod_manager.mirror.listeners.append(self._touch)
        pod_manager.on_return.append(self._returned)

    def _touch(self, vm_id: str) -> None:
        self._touched[vm_id] = None

    # --- looking

    @property
    def nodes(self) -> dict[str, Node]:
        """The nodes with their VMs, as of now."""
        with self._lock:
            self._take_in()
            return dict(self._nodes)

    @property
    def vms(self) -> dict[str, VM]:
        """All VMs, placed or not."""
        with self._lock:
            self._take_in()
            return dict(self._vms)

    def counts(self) -> dict[str, int]:
        """How many VMs are scheduled, pending and missing: together all of them."""
        found = {"scheduled": 0, "pending": 0, "missing": 0}
        mirror = self.pod_manager.mirror
        for vm in self.vms.values():
            found["scheduled" if vm.scheduled_node else "pending" if mirror.place(vm.id) else "missing"] += 1
        return found

    def use(self) -> dict[str, NodeUse]:
        """What every node shows. It costs as much as there are VMs, and asks no API."""
        with self._lock:
            self._take_in()
            return {name: self._use(node) for name, node in self._nodes.items()}

    def use_of(self, name: str) -> NodeUse:
        """What one node shows. Raises NotInScenarioError."""
        with self._lock:
            self._take_in()
            return self._use(self._node(name))

    def agreement(self) -> Agreement:
        """Wished against chosen, so far."""
        with self._lock:
            return agreement(self._moves, self._placed, self._as_wished)

    def _use(self, node: Node) -> NodeUse:
        cpu, memory = node.load(self.pod_manager.shape)
        return NodeUse(
            min(1.0, cpu),
            cpu_pressure(cpu, self._curve),
            min(1.0, memory),
            memory_pressure(memory, self._curve),
            len(node.vms),
        )

    def _node(self, name: str) -> Node:
        if name not in self._nodes:
            raise NotInScenarioError(f'there is no node "{name}"', hint="GET /scenario lists them")
        return self._nodes[name]

    # --- loading

    def load_scenario(self, nodes: Sequence[Node]) -> dict[str, int]:
        """Take these nodes and VMs. Where the VMs stand is a wish: the scheduler places them. Counts as `counts`.

        Raises VMError for what cannot be, and then everything stays as it was.
        """
        vms = [vm for node in nodes for vm in node.vms]
        wished = {vm.id: node.name for node in nodes for vm in node.vms}
        away = False
        check_nodes(nodes)
        check_vms(vms)
        try:
            self.pod_manager.check_vms(vms)
            for name in self.pod_manager.ensure_nodes(nodes, no_others=True):
                log.warning("the cluster has no such node", node=name)
            self.pod_manager.sync_pods_with_vms(vms)
            self.pod_manager.update_vm_node_assignments(vms)
        except ClusterAway:
            away = True
        with self._lock:
            self._nodes = {node.name: node for node in nodes}
            self._vms = {vm.id: vm for vm in vms}
            if away:
                for vm in vms:
                    vm.scheduled_node = wished[vm.id]
            self._regroup()
            self._placed = 0 if away else sum(bool(vm.scheduled_node) for vm in vms)
            self._as_wished = 0 if away else sum(vm.scheduled_node == wished[vm.id] for vm in vms)
        return self.counts()

    def refresh(self) -> dict[str, int]:
        """Ask the cluster for all VMs anew, and give a pod to those that lost theirs. Raises ClusterAway."""
        vms = list(self.vms.values())
        self.pod_manager.read_anew()
        self.pod_manager.sync_pods_with_vms(vms)
        self.pod_manager.update_vm_node_assignments(vms)
        with self._lock:
            self._regroup()
        return self.counts()

    def _returned(self) -> None:
        try:
            counts = self.refresh()
        except ClusterAway:
            return  # gone again; the next return will do
        log.warning("the pods' places count again", **counts)

    # --- moving

    def move_vm(self, vm_id: str, from_node: str, to_node: str) -> MoveResult:
        """Wish a VM onto another node. The scheduler decides; the answer says where to, and why not as wished.

        Raises NotInScenarioError for a VM or node that the scenario does not have.
        """
        vm = self.check_move(vm_id, from_node, to_node)
        if to_node == from_node:
            result = MoveResult(
                to_node,
                vm.scheduled_node,
                Why("", f"{vm_id} is to leave {from_node} for itself"),
                vm=vm_id,
                source=from_node,
            )
        else:
            result = self._move(vm, from_node, to_node)
        with self._lock:
            self._moves.append(result)
        return result

    def check_move(self, vm_id: str, from_node: str, to_node: str) -> VM:
        """The VM of a wish that can be tried, however it will end. Raises NotInScenarioError."""
        with self._lock:
            self._take_in()
            self._node(from_node)
            self._node(to_node)
            vm = self._vms.get(vm_id)
        if vm is None:
            raise NotInScenarioError(f'there is no VM "{vm_id}"', hint="GET /scenario lists them")
        return vm

    def _move(self, vm: VM, source: str, wished: str) -> MoveResult:
        try:
            done = self.pod_manager.migrate(vm, source, wished=wished)
        except ClusterAway as away:
            return self._move_directly(vm, source, wished, away)
        with self._lock:
            self._take_in()
            cost = 0.0
            if self._is_ours(vm):
                self._put(vm, done.chosen)
                cost = self._cost(vm, done.chosen, wished) if done and done.chosen != wished else 0.0
        seconds = done.copy.seconds if done else 0.0
        return MoveResult(wished, done.chosen, done.why, False, vm.id, source, seconds, cost, done.moved)

    def _move_directly(self, vm: VM, source: str, wished: str, away: ClusterAway) -> MoveResult:
        with self._lock:
            if vm.scheduled_node != source or not self._is_ours(vm):
                where = f"not on {source}" if self._is_ours(vm) else "no VM of the scenario any more"
                why = Why(DIRECT, f"{vm.id} is {where}")
                return MoveResult(wished, vm.scheduled_node, why, True, vm.id, source)
            self._put(vm, wished)
        why = Why(DIRECT, f"moved without asking: {away.message}")
        return MoveResult(wished, wished, why, True, vm.id, source, moved=True)

    def _is_ours(self, vm: VM) -> bool:
        """Whether it is a VM of this scenario still: another one may have been loaded while it moved."""
        return self._vms.get(vm.id) is vm

    def _cost(self, vm: VM, chosen: str, wished: str) -> float:
        """How much worse it is on the chosen node than it would have been on the wished one."""
        if chosen not in self._nodes or wished not in self._nodes:
            return 0.0
        there = self._nodes[wished]
        would = Node(wished, [*there.vms, vm], there.capacity)
        return _worst(self._use(self._nodes[chosen])) - _worst(self._use(would))

    # --- the pods' places taken in

    def _take_in(self) -> None:
        """Follow what the watches told since the last look. While the API is away our own word counts."""
        if self.pod_manager.away:
            return
        mirror = self.pod_manager.mirror
        while self._touched:
            vm = self._vms.get(self._touched.popitem()[0])
            if vm is not None:
                place = mirror.place(vm.id)
                vm.pod_name = place.name if place is not None else ""
                self._put(vm, place.node if place is not None else "")

    def _put(self, vm: VM, node: str) -> None:
        vm.scheduled_node = node
        before = self._at.pop(vm.id, "")
        if before != node:
            if before:
                self._nodes[before].vms[:] = [each for each in self._nodes[before].vms if each is not vm]
            if node:
                self._there(node).append(vm)
        if node:
            self._at[vm.id] = node

    def _there(self, name: str) -> list[VM]:
        """The VMs of a node; one that the scenario does not have comes in by being chosen."""
        if name not in self._nodes:
            seen = self.pod_manager.mirror.nodes.get(name)
            self._nodes[name] = Node(name) if seen is None else Node(name, capacity=seen.shape)
        return self._nodes[name].vms

    def _regroup(self) -> None:
        self._at = {vm.id: vm.scheduled_node for vm in self._vms.values() if vm.scheduled_node}
        for node in self._nodes.values():
            node.vms.clear()
        for vm in self._vms.values():
            if vm.scheduled_node:
                self._there(vm.scheduled_node).append(vm)


def _worst(use: NodeUse) -> float:
    return max(use.cpu_pressure, use.memory_pressure)
