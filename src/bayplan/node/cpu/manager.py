"""The CPU manager of a node: one policy, over a state that is a value.

The topology manager asks it for hints and tells it to allocate; it answers from its state and replaces it. What it has
replaced nobody can change, so a fork is a copy of a few references.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Self

from bayplan.node.cpu.hints import container_hints, pod_hints
from bayplan.node.cpu.policy import StaticPolicy
from bayplan.node.cpu.state import CpuState
from bayplan.node.errors import PolicyError
from bayplan.node.needs import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bayplan.node.cpu.assignment import Assignment
    from bayplan.node.machine import Topology
    from bayplan.node.needs import ContainerNeed, PodNeed
    from bayplan.node.policies import NodePolicies
    from bayplan.node.sets import CpuSet
    from bayplan.node.topology.hint import Hint, Hints

NONE, STATIC = "none", "static"


class CpuManager:
    """A provider of CPUs (node/provider.py). Policy none has no opinion and assigns nothing: all CPUs are shared.

    Made anew over a remembered state, as after a restart, it checks that the state fits, and knows of no CPUs to reuse.
    Raises PolicyError for settings that the machine cannot have, StateError for a state that does not fit.
    """

    def __init__(self, topology: Topology, policies: NodePolicies, state: CpuState | None = None) -> None:
        self.topology = topology
        self.policy = _policy(topology, policies)
        self._state = state if state is not None else CpuState()
        if self.policy is not None:
            self._state = self.policy.started(self._state)
        self._reusable: tuple[str, CpuSet] = ("", 0)
        self._how: dict[tuple[str, str], Assignment] = {}

    @property
    def state(self) -> CpuState:
        """Who holds what, to be remembered over a restart."""
        return self._state

    @property
    def reserved(self) -> CpuSet:
        """CPUs kept for the system."""
        return self.policy.reserved if self.policy is not None else 0

    @property
    def shared(self) -> CpuSet:
        """The CPUs of the containers that have none of their own."""
        return self._state.default if self.policy is not None else self.topology.all

    @property
    def assignable(self) -> CpuSet:
        """Shared CPUs that could become someone's own."""
        return self.policy.assignable(self._state) if self.policy is not None else 0

    @property
    def exclusive(self) -> CpuSet:
        """All CPUs that are someone's own."""
        return self._state.exclusive

    @property
    def reusable(self) -> Mapping[str, CpuSet]:
        """What a pod's later containers may take over from its init containers: of the last pod that got CPUs."""
        uid, cpus = self._reusable
        return {uid: cpus} if cpus else {}

    def how(self, uid: str, container: str) -> Assignment | None:
        """How a container's CPUs were selected, step by step; None for those of before the last restart."""
        return self._how.get((uid, container))

    def hints(self, pod: PodNeed, container: ContainerNeed) -> Hints:
        """The NUMA nodes that would do for one container."""
        if self.policy is None:
            return None
        return container_hints(self.policy, self._state, self._reusable_of(pod), pod, container)

    def pod_hints(self, pod: PodNeed) -> Hints:
        """The NUMA nodes that would do for the whole pod."""
        if self.policy is None:
            return None
        return pod_hints(self.policy, self._state, self._reusable_of(pod), pod)

    def allocate(self, pod: PodNeed, container: ContainerNeed, affinity: Hint) -> None:
        """Give the container its CPUs, inside the affinity as far as that goes. What it holds already it keeps.

        Raises AllocationError. (Upstream raises SMTAlignmentError even for what is held already, where little is left.)
        """
        if self.policy is None or not container.cpus or pod.pod_level:
            return
        reusable = self._reusable_of(pod)
        cpus = self._state.held(pod.uid, container.name)
        if cpus is None or self.policy.as_upstream:
            self.policy.check_cores(self._state, reusable, container.cpus)
        if cpus is None:
            pool = self.policy.assignable(self._state) | reusable
            selected = self.policy.select(pool, container.cpus, affinity.nodes)
            cpus = selected.cpus
            self._state = self._state.assigned(pod.uid, container.name, cpus)
            self._how = {**self._how, (pod.uid, container.name): selected}
        self._reusable = pod.uid, reusable | cpus if container.role is Role.INIT else reusable & ~cpus

    def remove(self, uid: str, container: str) -> None:
        """Take back what the container holds, but for what another container of its pod holds too."""
        self._state = self._state.removed(uid, container)
        self._how = {key: how for key, how in self._how.items() if key != (uid, container)}

    def fork(self) -> Self:
        """A copy to try things on."""
        return copy.copy(self)

    def _reusable_of(self, pod: PodNeed) -> CpuSet:
        uid, cpus = self._reusable
        return cpus if uid == pod.uid else 0


def _policy(topology: Topology, policies: NodePolicies) -> StaticPolicy | None:
    """The static policy, or None for none. Raises PolicyError."""
    if policies.cpu == STATIC:
        return StaticPolicy(topology, policies)
    if policies.cpu != NONE:
        raise PolicyError(f'unknown policy: "{policies.cpu}"', hint=f"known: {NONE}, {STATIC}")
    if policies.cpu_options:
        given = " ".join(f"{name}:{value}" for name, value in sorted(policies.cpu_options.items()))
        raise PolicyError(
            f"None policy: received unsupported options=map[{given}]", hint="options are for the policy static"
        )
    return None
