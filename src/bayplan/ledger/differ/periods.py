"""What a pod holds, and since when: its GPUs, its running, its waiting. Open periods go in, and come out moved on.

    GPUs      from binding to release, a period for each resource; a resize in place closes one and opens the next
    running   while the phase is Running
    room      the CPU and memory that go with them, for as long
    pending   from creation to binding (or the end of a pod that never got a place), a period for each reason and text

Neighbouring periods touch, so their sum is the whole: of the GPU periods bind..release, of the pending ones the time
in the queue. A pod that is terminating, or whose node is lost, holds on until it is gone.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from bayplan.ledger.differ.facts import PodFacts
from bayplan.ledger.differ.life import End, Life, seen_end
from bayplan.ledger.differ.reading import TEXT, fit, sound
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.rows import GpuPeriod, PendingPeriod, Period, PodRoomPeriod, Rows, RunningPeriod
from bayplan.model.clock import Instant
from bayplan.model.meta import condition

P = TypeVar("P", bound=Period)


class Holdings(msgspec.Struct, frozen=True, gc=False):
    """The open periods of a pod."""

    gpus: dict[str, GpuPeriod] = {}
    running: RunningPeriod | None = None
    pending: PendingPeriod | None = None
    room: PodRoomPeriod | None = None


class Step(msgspec.Struct, frozen=True, gc=False):
    """From what was known of a pod to what a version says."""

    facts: PodFacts
    life: Life
    seen: Seen
    lived: Life | None
    """None: this is the first sight of it."""
    models: dict[str, str]
    late: frozenset[str] = frozenset()
    """Resources of which only now the right number is known: it has held from the beginning."""

    @property
    def end(self) -> End:
        """When that which ends with this version ended."""
        return self.life.end or seen_end(self.seen)


def closed(period: P, end: End, resource_version: int) -> P:
    """A period that is over. It never ends before it began."""
    at = end.at if end.at > period.start_at else period.start_at
    inferred = end.after is not None
    after = None if end.after is None else min(max(end.after, period.start_at), at)
    return msgspec.structs.replace(
        period, end_at=at, end_inferred=inferred, end_after=after, resource_version=resource_version
    )


def moved_on(holdings: Holdings, step: Step, rows: Rows) -> Holdings:
    """The open periods after a version; what was opened, closed or filled in goes to `rows`."""
    return Holdings(
        _gpus(holdings.gpus, step, rows),
        _running(holdings.running, step, rows),
        _pending(holdings.pending, step, rows),
        roomed(holdings.room, step, rows),
    )


def end_all(holdings: Holdings, end: End, resource_version: int, rows: Rows) -> None:
    """Close whatever is open."""
    for period in (*holdings.gpus.values(), holdings.running, holdings.pending, holdings.room):
        if period is not None:
            rows.add(closed(period, end, resource_version))


def followed(old: P | None, new: P, end: End, rows: Rows) -> P:
    """`new` follows `old`. One that would have no length is written over: both have the same key."""
    if old is not None:
        if end.at <= old.start_at:
            new = msgspec.structs.replace(new, start_at=old.start_at)
        else:
            rows.add(closed(old, end, new.resource_version))
    rows.add(new)
    return new


# --- GPUs


def _gpus(held: dict[str, GpuPeriod], step: Step, rows: Rows) -> dict[str, GpuPeriod]:
    facts, life = step.facts, step.life
    if life.bound_at is None:
        return held
    just_bound = step.lived is None or step.lived.bound_at is None
    over = life.end is not None
    wanted = facts.gpus if just_bound or not over else {name: facts.gpus[name] for name in step.late}
    still: dict[str, GpuPeriod] = {}
    for resource in {**held, **wanted} if held.keys() != wanted.keys() else held:
        period, gpus = held.get(resource), wanted.get(resource, 0)
        model = step.models.get(resource, "")
        if period is not None and period.gpus == gpus:
            if model and not period.gpu_model:
                period = msgspec.structs.replace(period, gpu_model=model, resource_version=facts.resource_version)
                rows.add(period)
        elif gpus:
            begin = _begin(step, resource, period)
            end = step.end if begin == step.seen.at else End(begin)
            period = followed(period, _gpu_period(step, resource, gpus, begin), end, rows)
        elif period is not None:
            rows.add(closed(period, step.end, facts.resource_version))
            continue
        if period is not None and period.end_at is None:
            still[resource] = period
    return still


def _begin(step: Step, resource: str, period: GpuPeriod | None) -> Instant:
    """When a pod came to have what it has: by its binding, by a resize, or as a claim that pods share passed to it."""
    facts, bound_at = step.facts, step.life.bound_at
    assert bound_at is not None
    earliest = period.start_at if period is not None else bound_at
    claimed = resource in facts.claimed
    told = step.seen.claimed(facts.uid) if claimed else None
    if told is not None and told.since is not None and resource in told.devices:
        return told.since if told.since > earliest else earliest
    just_bound = step.lived is None or step.lived.bound_at is None
    from_there = resource in step.late or just_bound or (claimed and period is None)
    return earliest if from_there else step.seen.at


def _gpu_period(step: Step, resource: str, gpus: int, start: Instant) -> GpuPeriod:
    facts, end = step.facts, step.life.end
    period = GpuPeriod(
        cluster=step.seen.cluster,
        pod_uid=facts.uid,
        resource=resource,
        start_at=start,
        resource_version=facts.resource_version,
        gpus=gpus,
        gpu_model=step.models.get(resource, ""),
        node_name=facts.node,
    )
    return period if end is None else closed(period, end, facts.resource_version)


# --- room


def roomed(held: PodRoomPeriod | None, step: Step, rows: Rows) -> PodRoomPeriod | None:
    """What a pod takes of its node's CPU and memory after a version, while it holds on to them."""
    facts, life, asked = step.facts, step.life, step.facts.counted
    just_bound = step.lived is None or step.lived.bound_at is None
    if life.bound_at is None or (held is None and not just_bound):
        return held
    if held is None or (life.end is None and (held.cpu, held.memory) != (asked.cpu, asked.memory)):
        begin = life.bound_at if held is None else step.seen.at
        held = followed(held, _room_period(step, begin), step.end, rows)
    if life.end is None:
        return held
    rows.add(closed(held, life.end, facts.resource_version))
    return None


def _room_period(step: Step, start: Instant) -> PodRoomPeriod:
    facts = step.facts
    return PodRoomPeriod(
        cluster=step.seen.cluster,
        pod_uid=facts.uid,
        start_at=start,
        resource_version=facts.resource_version,
        namespace=facts.namespace,
        name=facts.name,
        node_name=facts.node,
        cpu=facts.counted.cpu,
        memory=facts.counted.memory,
    )


# --- running


def _running(open_: RunningPeriod | None, step: Step, rows: Rows) -> RunningPeriod | None:
    facts, life = step.facts, step.life
    runs = facts.phase == "Running"
    if open_ is not None:
        if runs and open_.gpus == sum(facts.gpus.values()):
            return open_
        if not runs:
            rows.add(closed(open_, step.end, facts.resource_version))
            return None
        if step.late:
            rows.add(_running_period(step, open_.start_at))
            return _running_period(step, open_.start_at)
        return followed(open_, _running_period(step, step.seen.at), step.end, rows)
    just_started = life.started_at is not None and (step.lived is None or step.lived.started_at is None)
    if not runs and not (just_started and life.end is not None):
        return None
    start = life.started_at if just_started and life.started_at is not None else step.seen.at
    period = _running_period(step, start)
    if life.end is not None:
        rows.add(closed(period, life.end, facts.resource_version))
        return None
    rows.add(period)
    return period


def _running_period(step: Step, start: Instant) -> RunningPeriod:
    facts = step.facts
    return RunningPeriod(
        cluster=step.seen.cluster,
        pod_uid=facts.uid,
        start_at=start,
        resource_version=facts.resource_version,
        gpus=sum(facts.gpus.values()),
    )


# --- pending


def _pending(open_: PendingPeriod | None, step: Step, rows: Rows) -> PendingPeriod | None:
    facts, life, seen = step.facts, step.life, step.seen
    first = step.lived is None
    if not first and open_ is None and (facts.node or facts.terminal):
        return None
    start = life.created_at if first else seen.at
    if facts.node or facts.terminal:
        end = life.end if life.bound_at is None else End(life.bound_at)
        period = open_ or _pending_period(step, start)
        if end is not None and (open_ is not None or end.at > start):
            rows.add(closed(period, end, facts.resource_version))
        return None
    refusal = condition(facts.conditions, "PodScheduled")
    refused = refusal is not None and refusal.status == "False"
    reason = fit(refusal.reason) if refusal and refused else ""
    message = fit(refusal.message, TEXT) if refusal and refused else ""
    if open_ is not None and open_.reason == reason and open_.message == message:
        return open_
    since = sound(refusal.last_transition_time, seen.at) if refusal and refused else None
    if first:
        open_ = _pending_period(step, start)
        if since is None or since <= start:
            since = start
    elif since is None or open_ is None or open_.reason or since < open_.start_at:
        since = seen.at  # the text changed, and nothing says when
    return followed(open_, _pending_period(step, since, reason, message), End(since), rows)


def _pending_period(step: Step, start: Instant, reason: str = "", message: str = "") -> PendingPeriod:
    return PendingPeriod(
        cluster=step.seen.cluster,
        pod_uid=step.facts.uid,
        start_at=start,
        resource_version=step.facts.resource_version,
        reason=reason,
        message=message,
    )
