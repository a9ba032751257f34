"""What happened between two versions of a pod: exactly one event for each transition.

    Phase       another phase                     at its own time: creation, first start, last finish
    Condition   another status, or gone           at its lastTransitionTime
    Restart     a container's count went up       as the new run started
    Exit        a run of a container ended        as it finished; a run is known by its id and its times
    Bound, Resized, Deleting

Of a pod never seen before there is no earlier version: its phase and conditions are told, each at its own time, and
nothing else. A reason or a time that changes while the status stays is no transition. Whoever misses versions sees
fewer transitions, never others: a condition that went and came back in between has not moved.
"""

from __future__ import annotations

from typing import NamedTuple

from bayplan.ledger.differ.facts import PodFacts
from bayplan.ledger.differ.life import Life
from bayplan.ledger.differ.reading import count, sound
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.rows import GpuPodsEvent
from bayplan.model.clock import Instant
from bayplan.model.meta import Condition
from bayplan.model.pods import ContainerStateTerminated, ContainerStatus

_NO_STATUS = ContainerStatus()


class _Teller:
    """Makes the events of one version."""

    __slots__ = ("events", "facts", "seen")

    def __init__(self, facts: PodFacts, seen: Seen) -> None:
        self.facts, self.seen = facts, seen
        self.events: list[GpuPodsEvent] = []

    def tell(
        self,
        kind: str,
        at: Instant | None,
        value: str = "",
        before: str = "",
        subject: str = "",
        reason: str = "",
        message: str = "",
        restarts: int | None = None,
        exit_code: int | None = None,
    ) -> None:
        self.events.append(
            GpuPodsEvent(
                cluster=self.seen.cluster,
                pod_uid=self.facts.uid,
                resource_version=self.facts.resource_version,
                event_type=kind,
                subject=subject,
                pod_phase=self.facts.phase,
                value=value,
                before=before,
                reason=reason,
                message=message,
                restart_count=self.facts.restarts if restarts is None else count(restarts),
                exit_code=None if exit_code is None else count(exit_code),
                at=self.seen.at if at is None else at,
                observed_at=self.seen.at,
            )
        )


def transitions(
    was: PodFacts | None, lived: Life | None, facts: PodFacts, life: Life, seen: Seen
) -> list[GpuPodsEvent]:
    """The events that a version brings; `was` and `lived` are None at first sight."""
    teller = _Teller(facts, seen)
    if was is None or was.phase != facts.phase:
        before = was.phase if was else ""
        at = _phase_at(lived, facts, life)
        teller.tell("Phase", at, facts.phase, before, reason=facts.reason, message=facts.message)
    if was is None or was.whole:
        _conditions(teller, was.conditions if was else (), facts.conditions)
    if was is None or lived is None:
        return teller.events
    if was.whole and was.containers != facts.containers:
        old = {status.name: status for status in was.containers}
        for status in facts.containers:
            _container(teller, old.get(status.name, _NO_STATUS), status)
    if lived.bound_at is None and life.bound_at is not None:
        teller.tell("Bound", life.bound_at, facts.node)
    if was.whole and was.counted is not facts.counted:
        _resizes(teller, was.counted.asked, facts.counted.asked)
    if facts.deleting and not was.deleting:
        teller.tell("Deleting", sound(facts.deletion_asked_at, seen.at))
    return teller.events


def gone(facts: PodFacts, seen: Seen) -> GpuPodsEvent:
    """The event of a pod's disappearance."""
    teller = _Teller(facts, seen)
    teller.tell("Gone", None, reason="inferred" if seen.inferred_after is not None else "")
    return teller.events[0]


def _phase_at(lived: Life | None, facts: PodFacts, life: Life) -> Instant | None:
    """When the phase began; None: nothing says it."""
    if facts.terminal:
        return life.end.at if life.end else None
    if facts.phase == "Running" and (lived is None or lived.started_at is None):
        return life.started_at
    return life.created_at if lived is None else None


def _conditions(teller: _Teller, was: tuple[Condition, ...], now: tuple[Condition, ...]) -> None:
    old = {each.type: each for each in was}
    new = {each.type: each for each in now}  # of two of a type the last counts
    for kind, each in new.items():
        known = old.get(kind)
        if known is not None and known.status == each.status:
            continue
        at = sound(each.last_transition_time, teller.seen.at)
        before = known.status if known else ""
        teller.tell("Condition", at, each.status, before, kind, each.reason, each.message)
    for kind, each in old.items():
        if kind not in new:
            teller.tell("Condition", None, "", each.status, kind)


class _Run(NamedTuple):
    """What tells one run of a container from another."""

    id: str
    started_at: str | None
    finished_at: str | None
    exit_code: int


def _run(over: ContainerStateTerminated | None) -> _Run | None:
    return None if over is None else _Run(over.container_id, over.started_at, over.finished_at, over.exit_code)


def _container(teller: _Teller, was: ContainerStatus, now: ContainerStatus) -> None:
    if now.restart_count > was.restart_count:
        run = now.state.running or now.state.terminated
        at = sound(run.started_at, teller.seen.at) if run else None
        value, before = str(count(now.restart_count)), str(count(was.restart_count))
        teller.tell("Restart", at, value, before, now.name, restarts=now.restart_count)
    over, earlier = now.state.terminated, now.last_state.terminated
    if over is None and earlier is None:
        return
    told = (_run(was.state.terminated), _run(was.last_state.terminated))
    fresh = over is not None and _run(over) not in told
    if earlier is not None and _run(earlier) not in (*told, _run(over)):
        # Two runs may come to an end between two versions; an event is known by its container, so one is set apart.
        subject = f"{now.name} (run {max(now.restart_count, 1)})" if fresh else now.name
        _exit(teller, subject, earlier, max(now.restart_count - 1, 0))
    if fresh and over is not None:
        _exit(teller, now.name, over, now.restart_count)


def _exit(teller: _Teller, subject: str, over: ContainerStateTerminated, restarts: int) -> None:
    at = sound(over.finished_at, teller.seen.at)
    teller.tell(
        "Exit",
        at,
        over.reason,
        subject=subject,
        reason=over.reason,
        message=over.message,
        restarts=restarts,
        exit_code=over.exit_code,
    )


def _resizes(teller: _Teller, was: dict[str, int], now: dict[str, int]) -> None:
    for resource in {**was, **now}:
        before, after = was.get(resource, 0), now.get(resource, 0)
        if before != after:
            teller.tell("Resized", None, str(after), str(before), resource)
