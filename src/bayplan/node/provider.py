"""What the topology manager asks of each resource's manager.

Managers carry a state that is a value: `fork` is a cheap copy to try things on, and neither sees what the other does.
"""

from __future__ import annotations

from typing import Protocol, Self

from bayplan.node.needs import ContainerNeed, PodNeed
from bayplan.node.topology.hint import Hint, Hints


class Provider(Protocol):
    """A manager of one kind of resource (CPUs, memory, devices)."""

    def hints(self, pod: PodNeed, container: ContainerNeed) -> Hints:
        """The NUMA nodes that would do for one container."""
        ...

    def pod_hints(self, pod: PodNeed) -> Hints:
        """The NUMA nodes that would do for the whole pod."""
        ...

    def allocate(self, pod: PodNeed, container: ContainerNeed, affinity: Hint) -> None:
        """Give the container what it asks for, inside the affinity as far as the policy says. Idempotent.

        Raises AllocationError; what the pod's earlier containers got stays until they are removed.
        """
        ...

    def remove(self, uid: str, container: str) -> None:
        """Take back what the container holds. Unknown containers are no error."""
        ...

    def fork(self) -> Self:
        """A copy to try things on."""
        ...
