"""The course of one run of a container: when it counts as started, when it is ready, when and how it ends.

A run is a function of its start, its probes and its behaviour, so nothing has to be remembered while it lasts: whoever
asks, and whenever, gets the same answer. A probe asks at fixed instants, so the moment at which its answer has been the
same often enough is found by arithmetic and no probe is ever played out.

Source of truth: pkg/kubelet/prober/worker.go; back-off: client-go util/flowcontrol/backoff.go as the kubelet uses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bayplan.cluster.embedded.kubelet.behaviour import Behaviour
from bayplan.model.clock import SECOND, Instant
from bayplan.model.pods import Container, Probe

_BACKOFF_FIRST = 10 * SECOND
_BACKOFF_MOST = 300 * SECOND
_BACKOFF_FORGOTTEN = 2 * _BACKOFF_MOST  # a run longer than this starts the count anew
_LEAST_GRACE = 2  # seconds; always given, as upstream, to avoid needless SIGKILLs
SIGTERM = 143
SIGKILL = 137

Interval = tuple[int, int | None]


class End(NamedTuple):
    """How a run ends. `probe` is the one that ended it, if one did."""

    at: Instant
    code: int
    reason: str
    probe: str = ""


class Course(NamedTuple):
    """One run, from start to end. `readiness` are the instants at which it becomes ready (True) and unready (False)."""

    started: Instant | None
    readiness: tuple[tuple[Instant, bool], ...]
    end: End | None

    def ready(self, now: Instant) -> bool:
        """Whether it is ready."""
        state = False
        for at, ready in self.readiness:
            if at <= now:
                state = ready
        return state

    def next_after(self, now: Instant) -> Instant | None:
        """When something is different next."""
        moments = [at for at, _ in self.readiness]
        if self.started is not None:
            moments.append(self.started)
        if self.end is not None:
            moments.append(self.end.at)
        return min((at for at in moments if at > now), default=None)


def ended(at: int, code: int) -> End:
    """The end of a container that exits by itself."""
    return End(Instant(at), code, "Error" if code else "Completed")


def course(spec: Container, behaviour: Behaviour, since: Instant, attempt: int, grace: int) -> Course:
    """The run of a container that started at `since`, the `attempt`-th after the first. `grace` is the pod's."""
    ends = []
    if behaviour.run_for is not None:
        ends.append(ended(since + behaviour.run_for, behaviour.exit_code(attempt)))
    if behaviour.oom_after is not None:
        ends.append(End(Instant(since + behaviour.oom_after), SIGKILL, "OOMKilled"))
    started, failed = _startup(spec.startup_probe, behaviour)
    if failed is not None:
        ends.append(_killed(since + failed, spec.startup_probe, behaviour, grace, "startup"))
    readiness: tuple[tuple[Instant, bool], ...] = ()
    if started is not None:
        readiness = tuple((Instant(since + at), ready) for at, ready in _readiness(spec, behaviour, started))
        dead = _liveness(spec.liveness_probe, behaviour, started)
        if dead is not None:
            ends.append(_killed(since + dead, spec.liveness_probe, behaviour, grace, "liveness"))
    end = min(ends, key=lambda each: each.at, default=None)
    return Course(None if started is None else Instant(since + started), readiness, end)


def _startup(probe: Probe | None, behaviour: Behaviour) -> tuple[int | None, int | None]:
    """When the start-up probe succeeds, and when it has failed; the earlier of the two is what happens."""
    if probe is None:
        return 0, None
    for at, ok in _flips(_down(behaviour, "startup"), probe, 0):
        return (at, None) if ok else (None, at)
    return None, None


def _readiness(spec: Container, behaviour: Behaviour, started: int) -> Iterator[tuple[int, bool]]:
    probe = spec.readiness_probe
    failing = _down(behaviour, "readiness")
    if probe is not None:
        return _flips(failing, probe, started)
    if failing:  # asked for without a probe: then it is as if somebody looked all the time
        return _flips(failing, Probe(period_seconds=1, failure_threshold=1), started)
    return iter(((started, True),))


def _liveness(probe: Probe | None, behaviour: Behaviour, started: int) -> int | None:
    failing = _windows(behaviour, "liveness")
    if probe is None or not failing:
        return None
    return next((at for at, ok in _flips(failing, probe, started) if not ok), None)


def _killed(at: int, probe: Probe | None, behaviour: Behaviour, grace: int, name: str) -> End:
    own = probe.termination_grace_period_seconds if probe is not None else None
    end = stopped(at, behaviour, grace if own is None else own)
    return end._replace(probe=name)


def stopped(at: int, behaviour: Behaviour, grace: int, before: int = 0) -> End:
    """How a container ends that is told to stop at an instant: by itself, or killed when its grace is over.

    `before` is what of the grace was already spent waiting for others.
    """
    limit = max(grace, _LEAST_GRACE) * SECOND - before
    if behaviour.shutdown < limit:
        return ended(at + behaviour.shutdown, SIGTERM)
    return ended(at + max(limit, 0), SIGKILL)


# --- probes


def _windows(behaviour: Behaviour, probe: str) -> list[Interval]:
    return [(each.after, each.until) for each in behaviour.failing if each.probe == probe]


def _down(behaviour: Behaviour, probe: str) -> list[Interval]:
    """When a probe fails: until the container is up, and whenever it was told to."""
    found = _windows(behaviour, probe)
    if behaviour.ready_after:
        found.append((0, behaviour.ready_after))
    return found


def _segments(failing: Sequence[Interval]) -> Iterator[tuple[int, int | None, bool]]:
    """The run cut into stretches in which the probe succeeds (True) or fails."""
    at = 0
    for begin, end in _merged(failing):
        if begin > at:
            yield at, begin, True
        yield begin, end, False
        if end is None:
            return
        at = end
    yield at, None, True


def _merged(failing: Sequence[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for begin, end in sorted(failing, key=lambda each: each[0]):
        last = merged[-1][1] if merged else -1
        if last is None:
            break
        if begin <= last:
            merged[-1] = (merged[-1][0], None if end is None else max(last, end))
        else:
            merged.append((begin, end))
    return merged


def _flips(failing: Sequence[Interval], probe: Probe, started: int) -> Iterator[tuple[int, bool]]:
    """When the verdict of a probe changes. It asks every period, from the start and its initial delay on."""
    first = max(started, probe.initial_delay_seconds * SECOND)
    period = probe.period_seconds * SECOND
    verdict: bool | None = None
    answer: bool | None = None
    since = 0  # the first time it was answered like that
    for begin, end, ok in _segments(failing):
        asked = max(0, -(-(begin - first) // period))
        if end is not None and first + asked * period >= end:
            continue  # nobody asked in that time
        if ok is not answer:
            answer, since = ok, asked
        needed = probe.success_threshold if ok else probe.failure_threshold
        at = first + (since + needed - 1) * period
        if ok is not verdict and (end is None or at < end):
            verdict = ok
            yield at, ok


# --- back-off


def restart_delay(ran: Sequence[int]) -> int:
    """How long to wait before the next run, given how long the runs so far took (the most recent last; the very first
    run is not among them). The first restart is at once, then 10 s doubling to 300 s, forgotten after a long run."""
    short = 0
    for span in reversed(ran):
        if span > _BACKOFF_FORGOTTEN:
            break
        short += 1
    return min(_BACKOFF_FIRST << (short - 1), _BACKOFF_MOST) if short else 0


class Pull(NamedTuple):
    """Where a pull that cannot succeed stands: `failures` so far, waiting (`backing_off`) or just failed, and when that
    changes."""

    failures: int
    backing_off: bool
    until: Instant


def failing_pull(begin: Instant, pull: int, now: Instant, told: int = 2 * SECOND) -> Pull:
    """The pull of a missing image, tried since `begin`. A failure stands for the time `told` before the wait shows."""
    failed = begin + pull
    if now < failed:
        return Pull(0, False, Instant(failed))
    failures, wait = 1, _BACKOFF_FIRST
    while now >= failed + wait + pull:
        if wait == _BACKOFF_MOST:  # from here on all rounds are alike
            rounds = (now - failed) // (wait + pull)
            failures += rounds
            failed += rounds * (wait + pull)
            break
        failures += 1
        failed += wait + pull
        wait = min(wait * 2, _BACKOFF_MOST)
    if now < failed + told:
        return Pull(failures, False, Instant(failed + told))
    return Pull(failures, True, Instant(failed + wait + pull))
