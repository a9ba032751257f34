"""Why a pod waits, or waited: every reason with its times, up to its place or its end.

A workload may wait too: while a quota forbids its pods, there is no pod to ask about.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.ledger.questions.asking import Scope, read
from bayplan.ledger.rows import GpuPod, GpuWorkload, PendingPeriod
from bayplan.ledger.store.reading import TABLES, Readable
from bayplan.model.ages import human_duration
from bayplan.model.clock import Instant, rfc3339


class Wait(msgspec.Struct, frozen=True):
    """One reason, for as long as it held."""

    start: Instant
    end: Instant | None
    """None: it still does."""
    reason: str
    """Empty: the scheduler had not tried yet."""
    message: str


class WhyPending(msgspec.Struct, frozen=True):
    """A pod's time in the queue, or a workload's before its pods could be made."""

    subject: GpuPod | GpuWorkload
    waits: tuple[Wait, ...]
    at: Instant
    """When it was asked."""

    @property
    def lasted(self) -> int:
        """Microseconds in the queue, so far."""
        return sum((self.at if each.end is None else each.end) - each.start for each in self.waits)

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        pod, lasted = self.subject, human_duration(self.lasted)
        name = f"{pod.namespace}/{pod.name}"
        if isinstance(pod, GpuWorkload):
            last = f": {self.waits[-1].message}" if self.waits else ""
            return f"{name} ({pod.kind}) could not make its pods for {lasted}{last}"
        if pod.bound_at is not None:
            return f"{name} waited {lasted} for a place and got one on {pod.node_name} at {rfc3339(pod.bound_at)}."
        if pod.end_at is not None:
            return f"{name} waited {lasted} and never got a place: it ended at {rfc3339(pod.end_at)}."
        words = [each.message or each.reason or "nobody has tried to place it yet" for each in self.waits[-1:]]
        return f"{name} has been waiting for {lasted}: {words[0] if words else 'the ledger does not know why'}"


def told(subject: GpuPod | GpuWorkload, periods: Sequence[PendingPeriod], at: Instant) -> WhyPending:
    """The answer, of its periods in order."""
    return WhyPending(
        subject, tuple(Wait(each.start_at, each.end_at, each.reason, each.message) for each in periods), at
    )


async def why_pending(store: Readable, subject: GpuPod | GpuWorkload, at: Instant) -> WhyPending:
    """Why a pod or a workload waits or waited, as known at `at`. Raises StoreUnavailableError, StoreRefusedError."""
    columns = TABLES[PendingPeriod].c
    of_pod = (columns.pod_uid == subject.uid, columns.start_at <= at)
    return told(subject, await read(store, PendingPeriod, Scope(subject.cluster), *of_pod), at)
