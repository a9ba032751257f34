"""A pod with gates stays out of the queue until others have removed them.

Source of truth: kube-scheduler 1.36 SchedulingGates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.framework import Plugin, Refusal

if TYPE_CHECKING:
    from bayplan.scheduling.pods import PodInfo


class SchedulingGates(Plugin):
    """Holds pods back."""

    name = "SchedulingGates"

    def enqueue(self, pod: PodInfo) -> Refusal | None:
        """Names the gates that are left."""
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return Refusal(self.name, (f"waiting for scheduling gates: [{names}]",), hopeless=True)
