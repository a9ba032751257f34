"""The words for how a workload is doing. They are the same for every kind.

    Pending      asked for, and none of it runs yet (or none of it any more: it is tried again)
    Running      runs as asked
    Degraded     runs, but not as asked: less is ready than wanted, or it is being restarted
    Suspended    asked to hold nothing: suspended, or scaled to zero
    Terminating  its deletion was asked for
    Succeeded    ended well                    } an end
    Failed       ended badly                   } an end
    Deleted      its object went before it ended by itself: an end

Kinds that serve (a Deployment) never succeed or fail: they are Degraded, and at last Deleted.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from bayplan.model.clock import Instant


class State(Enum):
    """How a workload is doing."""

    PENDING = "Pending"
    RUNNING = "Running"
    DEGRADED = "Degraded"
    SUSPENDED = "Suspended"
    TERMINATING = "Terminating"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    DELETED = "Deleted"


class Verdict(msgspec.Struct, frozen=True):
    """A state and why."""

    state: State
    reason: str = ""
    final: bool = False
    """The object itself says that it has ended."""
    ended_at: Instant | None = None
    """When it ended, where it says so."""


class PodCounts(msgspec.Struct):
    """The GPU pods below a workload whose objects exist, by phase."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    def count(self, phase: str, by: int) -> None:
        """Count a pod in (1) or out (-1). What is in no known phase has not started."""
        name = phase.lower() if phase in ("Running", "Succeeded", "Failed") else "pending"
        setattr(self, name, getattr(self, name) + by)

    def __len__(self) -> int:
        return self.pending + self.running + self.succeeded + self.failed
