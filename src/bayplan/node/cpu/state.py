"""The CPU manager's state: a value that says who holds which CPUs. Every change makes a new one.

`default` is the shared pool. It and what is assigned make up all CPUs of the machine (without the reserved ones where
the reservation is strict). Containers of one pod may hold the same CPUs: an init container's are reused by those that
run after it.
"""

from __future__ import annotations

import functools
import operator

import msgspec

from bayplan.node.sets import CpuSet


class CpuState(msgspec.Struct, frozen=True):
    """The shared pool, and exclusive CPUs by pod and container. Empty: not yet initialised."""

    default: CpuSet = 0
    assignments: dict[str, dict[str, CpuSet]] = msgspec.field(default_factory=dict)

    def held(self, uid: str, container: str) -> CpuSet | None:
        """What a container holds; None where nothing was ever assigned to it."""
        return self.assignments.get(uid, {}).get(container)

    @property
    def exclusive(self) -> CpuSet:
        """All CPUs that are assigned."""
        held = (cpus for containers in self.assignments.values() for cpus in containers.values())
        return functools.reduce(operator.or_, held, 0)

    def assigned(self, uid: str, container: str, cpus: CpuSet) -> CpuState:
        """The container holds these CPUs; the shared pool has lost them."""
        pod = {**self.assignments.get(uid, {}), container: cpus}
        return CpuState(self.default & ~cpus, {**self.assignments, uid: pod})

    def removed(self, uid: str, container: str) -> CpuState:
        """The container holds nothing; what no other container of its pod holds is back in the shared pool."""
        released = self.held(uid, container)
        if released is None:
            return self
        pod = {name: cpus for name, cpus in self.assignments[uid].items() if name != container}
        others = {known: containers for known, containers in self.assignments.items() if known != uid}
        in_use = functools.reduce(operator.or_, pod.values(), 0)
        return CpuState(self.default | released & ~in_use, {**others, uid: pod} if pod else others)
