"""The static policy: whose CPUs are whose.

The pools:
- shared: the default set of the state. Containers without CPUs of their own run here. At first every CPU of the
  machine; exclusive assignments shrink it, removals grow it.
- reserved: CPUs for the system, chosen once. Part of the shared pool, never assigned. Strict: not shared either.
- assignable: shared without reserved. Exclusive CPUs come from here.
- exclusive: CPUs assigned to one container of a Guaranteed pod that asks for whole CPUs.
- reusable: what a pod's finished init containers held, for its later containers.

A policy is what stays the same while pods come and go: options, reservation, and the rules. It holds no state.

Source of truth: kubelet 1.36, cpumanager/policy_static.go, with PodLevelResourceManagers off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.node.cpu.assignment import Assignment, take_packed
from bayplan.node.cpu.distributed import take_distributed
from bayplan.node.cpu.options import check_machine, read_options
from bayplan.node.cpu.state import CpuState
from bayplan.node.errors import AllocationError, PolicyError, SMTAlignmentError, StateError
from bayplan.node.sets import format_list, ids_of

if TYPE_CHECKING:
    from bayplan.node.machine import Topology
    from bayplan.node.policies import NodePolicies
    from bayplan.node.sets import CpuSet, NodeSet

_DRAIN = "drain the node and remove the state, or give the settings back that it was made with"


class StaticPolicy:
    """The rules of one node. Raises PolicyError where the machine cannot have them."""

    def __init__(self, topology: Topology, policies: NodePolicies) -> None:
        self.topology = topology
        self.as_upstream = policies.as_upstream
        self.options = read_options(policies.cpu_options)
        check_machine(self.options, topology, policies.topology.policy)
        self.reserved = policies.reserved_cpus or self._chosen(policies.reserved)
        self._check_reservation(policies.reserved)
        self.reserved_physical = topology.siblings(self.reserved)
        """With all siblings of the reserved CPUs."""

    def _chosen(self, count: int) -> CpuSet:
        try:
            return self.take(self.topology.all, count).cpus
        except AllocationError:
            return 0  # the size is checked next, and says it better

    def _check_reservation(self, count: int) -> None:
        if self.reserved.bit_count() != count:
            raise PolicyError(
                "[cpumanager] unable to reserve the required amount of CPUs "
                f"(size of {format_list(self.reserved)} did not equal {count})",
                hint=f"the machine has {len(self.topology.cpus)} CPUs; name as many reserved CPUs as are reserved",
            )
        for unknown in ids_of(self.reserved & ~self.topology.all):
            raise PolicyError(
                "[cpumanager] unable to build the reserved physical CPUs from the reserved set: "
                f"unknown CPU ID: {unknown}",
                hint=f"the machine has {format_list(self.topology.all)}",
            )

    def take(self, available: CpuSet, count: int) -> Assignment:
        """Select CPUs as the options say. Raises AllocationError."""
        options = self.options
        if options.across_nodes:
            group = self.topology.per_core if options.full_cores else 1
            return take_distributed(self.topology, available, count, group=group, as_upstream=self.as_upstream)
        return take_packed(
            self.topology,
            available,
            count,
            spread=options.across_cores,
            prefer_cache=options.by_cache,
            as_upstream=self.as_upstream,
        )

    def started(self, state: CpuState) -> CpuState:
        """The state to go on with: the given one, checked, or the first one of an empty node. Raises StateError."""
        every = self.topology.all & ~self.reserved if self.options.strict else self.topology.all
        if not state.default and not state.assignments:
            return CpuState(every)
        if not state.default and (self.as_upstream or not self.options.strict):  # strictly, all may be someone's own
            raise StateError("default cpuset cannot be empty", hint=_DRAIN)
        for told in (self._reservation_fault(state), _overlap(state)):
            if told:
                raise StateError(told, hint=_DRAIN)
        known = state.default | state.exclusive
        if known != every:
            raise StateError(
                f'current set of available CPUs "{format_list(every)}" '
                f'doesn\'t match with CPUs in state "{format_list(known)}"',
                hint=_DRAIN,
            )
        return state

    def _reservation_fault(self, state: CpuState) -> str:
        default, shared = format_list(state.default), self.reserved & state.default
        if self.options.strict and shared:
            return f'some of strictly reserved cpus: "{format_list(shared)}" are present in defaultCpuSet: "{default}"'
        if not self.options.strict and shared != self.reserved:
            return f'not all reserved cpus: "{format_list(self.reserved)}" are present in defaultCpuSet: "{default}"'
        return ""

    def assignable(self, state: CpuState) -> CpuSet:
        """What exclusive CPUs can come from: where cores are to stay whole, no siblings of reserved CPUs either.

        Upstream offers those siblings all the same, and hands them out where an affinity leaves too little else.
        """
        kept = self.reserved if self.as_upstream or not self.options.full_cores else self.reserved_physical
        return state.default & ~kept

    def check_cores(self, state: CpuState, reusable: CpuSet, count: int) -> None:
        """With whole cores only: raise SMTAlignmentError where the request does not come in whole free cores."""
        if not self.options.full_cores:
            return
        per_core = self.topology.per_core
        if count % per_core:
            raise SMTAlignmentError(
                f"SMT Alignment Error: requested {count} cpus not multiple cpus per core = {per_core}"
            )
        free = state.default & ~self.reserved_physical
        physical = (free if self.as_upstream else free | reusable).bit_count()  # upstream forgets what can be reused
        if count > physical:
            raise SMTAlignmentError(
                "SMT Alignment Error: not enough free physical CPUs: "
                f"available physical CPUs = {physical}, requested CPUs = {count}, CPUs per core = {per_core}"
            )

    def select(self, pool: CpuSet, count: int, nodes: NodeSet | None) -> Assignment:
        """Select from the pool, inside the NUMA nodes (or their sockets) as far as they go. Raises AllocationError."""
        inside = Assignment(0)
        if nodes is not None:
            aligned = pool & self._aligned(nodes)
            inside = self.take(aligned, min(count, aligned.bit_count()))
        outside = self.take(pool & ~inside.cpus, count - inside.cpus.bit_count())
        return Assignment(inside.cpus | outside.cpus, inside.taken + outside.taken)

    def _aligned(self, nodes: NodeSet) -> CpuSet:
        cpus = self.topology.in_nodes(nodes)
        if not self.options.by_socket:
            return cpus
        return sum(members for members in self.topology.sockets.values() if members & cpus)


def _overlap(state: CpuState) -> str:
    for uid, containers in state.assignments.items():
        for name, cpus in containers.items():
            if cpus & state.default:
                return (
                    f'pod: {uid}, container: {name} cpuset: "{format_list(cpus)}" '
                    f'overlaps with default cpuset "{format_list(state.default)}"'
                )
    return ""
