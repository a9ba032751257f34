"""A run again, beside its log: the same scenario, seed and policy write the same bytes, and here that is tried.

A log's first line says what was run, and by its digest with which scenario; the scenario itself it does not hold. A log
that was cut short is compared as far as it goes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from bayplan.model.clock import SECOND, Instant
from bayplan.scheduling.configuration import SchedulerConfiguration
from bayplan.simulate import eventlog
from bayplan.simulate.eventlog import Began, Ended, EventLogError, Sample
from bayplan.simulate.run import Order, Rehearsal, digest
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.twin.snapshot import Snapshot

_BEGINNING = b'{"what":"began"'


class RunLog(msgspec.Struct, frozen=True):
    """The log of a run, to be held against another."""

    path: Path
    began: Began
    lines: int
    """That the same run writes again. How one that was cut short ended is chance."""
    whole: bool


class Difference(msgspec.Struct, frozen=True):
    """The first line that is not the same. None: there is no such line."""

    line: int
    logged: str | None
    again: str | None


class Beside(eventlog.Writer):
    """Takes what a run writes, and holds it against a log up to the first line that differs."""

    def __init__(self, log: RunLog) -> None:
        super().__init__()
        self._log = log
        self._old = log.path.open("rb")
        self.same = 0
        """Lines."""
        self.difference: Difference | None = None
        self.stopped = False
        """Somebody asked for the end: what is written from now on is of that."""

    @property
    def decided(self) -> bool:
        """Whether what is still to come changes nothing."""
        as_far_as_it_goes = self.same == self._log.lines and not self._log.whole
        return self.stopped or self.difference is not None or as_far_as_it_goes

    def write(self, line: eventlog.Line) -> None:
        """See Writer."""
        if not self.decided:
            self._compare(msgspec.json.encode(line) + b"\n")

    def end(self) -> None:
        """The run has written all that it writes."""
        if not self.decided and self.same < self._log.lines:
            self._compare(b"")

    def close(self) -> None:
        """See Writer."""
        self._old.close()

    def _compare(self, new: bytes) -> None:
        old = self._old.readline()
        if new == old:
            self.same += 1
        else:
            told = [each.decode(errors="replace").rstrip("\n") or None for each in (old, new)]
            self.difference = Difference(self.same + 1, *told)


def is_log(path: Path) -> bool:
    """Whether a file is the log of a run, by its first bytes. Raises OSError."""
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING


def read_log(path: Path) -> RunLog:
    """What a log says of its run. Raises EventLogError, OSError."""
    first = next(eventlog.read(path), None)
    if not isinstance(first, Began):
        raise EventLogError(f"{path}: not the log of a run", hint="bayplan simulate run FILE --out DIR writes one")
    lines, last = 0, deque[bytes](maxlen=2)
    with path.open("rb") as file:
        for text in file:
            if text.endswith(b"\n"):
                lines += 1
                last.append(text)
    tail = [_known(text) for text in last]
    ended = tail[-1] if isinstance(tail[-1], Ended) else None
    if ended is not None and not ended.complete:
        lines -= 2 if isinstance(tail[0], Sample) and tail[0].t == ended.t else 1
    return RunLog(path, first, lines, whole=ended is not None and ended.complete)


def _known(text: bytes) -> Ended | Sample | None:
    try:
        return msgspec.json.decode(text, type=Ended | Sample)
    except msgspec.DecodeError:
        return None


def order_of(log: RunLog, scenario: Scenario, twin: Snapshot | None = None) -> Order:
    """The run of a log. Raises EventLogError where that was of another scenario, or on a lab."""
    began = log.began
    if began.engine != "embedded":
        raise EventLogError(
            f"{log.path}: a run on the {began.engine}, in real time, which does not happen the same way twice",
            hint="bayplan simulate run FILE --engine embedded writes the same bytes each time",
        )
    found = digest(scenario, twin)
    if found != began.digest:
        raise EventLogError(
            f'{log.path}: the run was of another scenario "{began.scenario}" than this: '
            f"its digest is {began.digest}, not {found}",
            hint="give the scenario as it was then, --scenario FILE, and its twin if it was put to one, --twin TWIN",
        )
    return Order(
        scenario=scenario,
        name=began.scenario,
        seed=began.seed,
        policy=began.policy,
        duration=round(began.duration * SECOND),
        twin=twin,
    )


async def beside(
    log: RunLog,
    order: Order,
    scheduler: SchedulerConfiguration,
    *,
    stopping: Callable[[], bool] = lambda: False,
    reached: Callable[[Instant], None] = lambda _: None,
) -> Beside:
    """Run it again, as far as its log goes, up to the first line that differs or until stopped."""
    with Beside(log) as found:

        def enough() -> bool:
            found.stopped = found.stopped or (not found.decided and stopping())
            return found.decided

        await Rehearsal(order, found, scheduler).rehearse(stopping=enough, reached=reached)
        found.end()
    return found
