"""Why a pod waits, or waited: every reason with its times, up to its place or its end.

A workload may wait too: while a quota forbids its pods (`refusals`), there is no pod to ask about. Else its pods do.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.ledger.questions.asking import Scope, read_each
from bayplan.ledger.questions.below import pods_below
from bayplan.ledger.questions.refusals import refusals
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
    pods: tuple[WhyPending, ...] = ()
    """A workload's, those that wait first, the longest first."""

    @property
    def waiting(self) -> bool:
        """Whether a pod has no place, and has not ended without one."""
        pod = self.subject
        return isinstance(pod, GpuPod) and pod.bound_at is None and pod.end_at is None

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
            return f"{name} ({pod.kind}) {self._of_workload(lasted)}"
        if pod.bound_at is not None:
            return f"{name} waited {lasted} for a place and got one on {pod.node_name} at {rfc3339(pod.bound_at)}."
        if pod.end_at is not None:
            return f"{name} waited {lasted} and never got a place: it ended at {rfc3339(pod.end_at)}."
        return f"{name} has been waiting for {lasted}: {self._latest}"

    @property
    def _latest(self) -> str:
        words = [each.message or each.reason or "nobody has tried to place it yet" for each in self.waits[-1:]]
        return words[0] if words else "the ledger does not know why"

    def _of_workload(self, lasted: str) -> str:
        said = [f"could not make its pods for {lasted}: {self.waits[-1].message}"] if self.waits else []
        number = sum(each.waiting for each in self.pods)
        longest = human_duration(self.pods[0].lasted) if self.pods else ""
        if number:
            why = self.pods[0]._latest  # noqa: SLF001 - one of us
            said.append(f"has {number} of {len(self.pods)} GPU pods waiting, up to {longest}: {why}")
        elif self.pods and not said:
            said.append(f"waits for nothing; the longest wait of its {len(self.pods)} GPU pod(s) was {longest}.")
        return "; ".join(said) or "has no GPU pods that the ledger knows, and no quota kept it from making them."


def told(subject: GpuPod | GpuWorkload, periods: Sequence[PendingPeriod], at: Instant) -> WhyPending:
    """The answer, of its periods in order."""
    return WhyPending(
        subject, tuple(Wait(each.start_at, each.end_at, each.reason, each.message) for each in periods), at
    )


async def why_pending(store: Readable, subject: GpuPod | GpuWorkload, at: Instant) -> WhyPending:
    """Why a pod or a workload waits or waited, as known at `at`. Raises StoreUnavailableError, StoreRefusedError."""
    rows = [subject] if isinstance(subject, GpuPod) else await pods_below(store, subject, at)
    uids, by_then = [row.uid for row in rows], TABLES[PendingPeriod].c.start_at <= at
    periods: dict[str, list[PendingPeriod]] = {}
    for each in await read_each(store, PendingPeriod, "pod_uid", uids, Scope(subject.cluster), by_then):
        periods.setdefault(each.pod_uid, []).append(each)
    if isinstance(subject, GpuPod):
        return told(subject, periods.get(subject.uid, ()), at)
    pods = [told(row, periods.get(row.uid, ()), at) for row in rows]
    pods.sort(key=lambda each: (not each.waiting, -each.lasted))
    answer = told(subject, await refusals(store, subject, rows, at), at)
    return msgspec.structs.replace(answer, pods=tuple(pods))
