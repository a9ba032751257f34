"""What can go wrong on a node, in the kubelet's words where the kubelet has them."""

from __future__ import annotations

from typing import ClassVar

from bayplan.model.errors import PermanentError


class AllocationError(PermanentError):
    """A manager cannot give a container what it asks for. `reason` is the pod's status reason.

    The message is the manager's own; `admission_message` is what the pod's status says.
    """

    code = "BP-N010"
    reason: ClassVar[str] = "UnexpectedAdmissionError"

    @property
    def admission_message(self) -> str:
        """The message in the status of the refused pod."""
        return f"Allocate failed due to {self.message}, which is unexpected"


class SMTAlignmentError(AllocationError):
    """Whole cores were asked for (full-pcpus-only), and the request does not come in whole cores."""

    code = "BP-N011"
    reason = "SMTAlignmentError"

    @property
    def admission_message(self) -> str:
        return self.message


class PolicyError(PermanentError):
    """Policies, options or reservations that this machine cannot have."""

    code = "BP-N012"


class StateError(PermanentError):
    """A remembered state that does not fit the machine or the policies. It is kept as it is."""

    code = "BP-N013"
