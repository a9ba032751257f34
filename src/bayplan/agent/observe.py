"""The agent's eyes: every group below a root, looked at over and over, with its rates and alerts.

Looking costs some file reads a group and one a thread. Both are bounded: of more groups than `most_groups` those
without a limit are left out first, and once `most_threads` are asked how long they waited, further groups keep their
last answer; what was left out is counted. A group that is gone is forgotten at once: nothing stale is ever shown.
A look holds a lock and not the event loop: it may be taken in a thread, and `watched` is of one look, never of two.

Threads count for their group and for all groups above it, as CPU time does.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from bayplan.agent.names import LOGS, ContainerName, container_names
from bayplan.agent.procfs import Proc
from bayplan.agent.reading import UNREADABLE, is_text
from bayplan.model.clock import SECOND, Clock, Instant, monotonic
from bayplan.node.cgroup.naming import GroupName, parse
from bayplan.node.cgroup.port import Bandwidth, Counters, Group, GroupGoneError, Pressure, Tree, UnsupportedError
from bayplan.node.throttling.alerts import Alert, Rule, State, step
from bayplan.node.throttling.run_queue import RunQueue
from bayplan.node.throttling.samples import History, Rates, Totals

THROTTLED = "ContainerThrottled"
WAITING = "ContainerWaitsForCpu"
BURSTING = "ContainerBurstsOften"


_SEARCH_EVERY = 10 * SECOND


class Thresholds(msgspec.Struct, frozen=True):
    """When to alert: shares, bursts an hour, and how long a value must stay."""

    throttled: float = 0.05
    waiting: float = 0.5
    bursts_per_hour: float = 3600.0
    hold_us: int = 60_000_000

    def rules(self) -> tuple[Rule, ...]:
        """One rule an alert."""
        return (
            Rule(THROTTLED, self.throttled, self.hold_us),
            Rule(WAITING, self.waiting, self.hold_us),
            Rule(BURSTING, self.bursts_per_hour, self.hold_us),
        )


USUAL = Thresholds()


class Reading(msgspec.Struct, frozen=True):
    """What the kernel's files said at one look."""

    at: Instant
    bandwidth: Bandwidth
    counters: Counters
    run_queue_ns: int
    pressure: Pressure | None
    processes: int
    """In it and below it."""


class _Members:
    """The processes in a group and below it, and how long their threads have waited."""

    def __init__(self) -> None:
        self.processes = 0
        self.waited: dict[int, int] = {}
        self.complete = True

    def add(self, other: _Members) -> None:
        self.processes += other.processes
        self.waited |= other.waited
        self.complete &= other.complete


class Watched:
    """One group: its latest reading, its past, its alerts."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.kubelets: GroupName | None = parse(path)
        """Whose group it is, where it is one of the kubelet's."""
        self.name = ContainerName()
        self.history = History()
        self.alerts: dict[str, Alert] = {}
        self.reading: Reading | None = None
        self._run_queue = RunQueue()

    def take(self, at: Instant, group: Group, members: _Members) -> None:
        """Read the group. Raises GroupGoneError."""
        counters, pressure = group.counters(), _pressure(group)
        run_queue = self._run_queue.add(members.waited if members.complete else None)
        self.reading = Reading(at, group.bandwidth(), counters, run_queue, pressure, members.processes)
        self.history.add(at, Totals.of(counters, run_queue, pressure.some_total_us if pressure else 0))

    @property
    def pod_uid(self) -> str:
        """The pod's uid; "" for a group that is no pod's."""
        return self.kubelets.pod_uid if self.kubelets else ""

    @property
    def container_id(self) -> str:
        """The runtime's id; "" for a group that is no container's."""
        return self.kubelets.container_id if self.kubelets else ""

    def judge(self, rules: Iterable[Rule], now: Instant) -> None:
        """Bring the alerts up to date."""
        minute = self.history.rates("1m")
        values = {
            THROTTLED: minute.throttle_rate,
            WAITING: waiting_share(minute),
            BURSTING: self.history.rates("1h").bursts_per_hour,
        }
        self.alerts = {
            rule.name: step(self.alerts.get(rule.name, Alert()), rule, values[rule.name], now) for rule in rules
        }

    def active(self) -> dict[str, State]:
        """Alerts that are pending or firing."""
        return {name: alert.state for name, alert in self.alerts.items() if alert.state is not State.INACTIVE}


def waiting_share(rates: Rates) -> float:
    """Of the time that threads ran or wanted to run, the share in which they waited."""
    wanted = rates.delta.run_queue_ns + rates.delta.usage_ns
    return rates.delta.run_queue_ns / wanted if wanted else 0.0


def _pressure(group: Group) -> Pressure | None:
    try:
        return group.pressure()
    except UnsupportedError:
        return None


class Observer:
    """Looks at groups, and remembers."""

    def __init__(
        self,
        tree: Tree,
        clock: Clock,
        *,
        root: str = "/",
        proc: Proc | None = None,
        logs: Path = LOGS,
        thresholds: Thresholds = USUAL,
        most_groups: int = 1000,
        most_threads: int = 5000,
    ) -> None:
        self.tree, self.clock, self.root = tree, clock, root
        self.proc = Proc() if proc is None else proc
        self.watched: dict[str, Watched] = {}
        self.skipped_groups = 0
        self.unasked_groups = 0
        self.unreadable_groups = 0
        self.unmeasured: list[str] = []
        """Groups that have a limit and no counters: of version 1, and in the hierarchy of cpu alone."""
        self.last_look = clock.now()
        self.last_look_seconds = 0.0
        self._logs = logs
        self._groups: list[Group] = []
        self._members: dict[str, _Members] = {}
        self._searched = Instant(0)
        self._misnamed = 0
        self.thresholds = thresholds
        self._rules = thresholds.rules()
        self._most_groups, self._most_threads = most_groups, most_threads
        self.looking = threading.RLock()
        """Held while the groups change; hold it to read `watched` and its histories in another thread."""

    def look(self, *, thorough: bool = True) -> list[Watched]:
        """Read every group once, forget those that are gone, and return those that were read.

        Without `thorough` the groups and their threads are those of the last thorough look, which is two thirds of
        the cost, unless that is long ago.
        """
        with self.looking:
            return self._look(thorough)

    def _look(self, thorough: bool) -> list[Watched]:
        began = monotonic()
        if thorough or self.clock.now() - self._searched >= _SEARCH_EVERY:
            self._groups = self._chosen()
            self._members = self._members_of(self._groups)
            self._searched = self.clock.now()
        seen: dict[str, Watched] = {}
        self.unmeasured = []
        unreadable = 0
        for group in self._groups:
            watched = self.watched.get(group.path) or Watched(group.path)
            now = self.clock.now()
            try:
                watched.take(now, group, self._members[group.path])
            except UNREADABLE as fault:
                # what is gone, or of version 1 and not in the hierarchy of cpu, is no group of ours
                if isinstance(fault, UnsupportedError) and not _importance(group)[0]:
                    self.unmeasured.append(group.path)
                unreadable += not isinstance(fault, GroupGoneError | UnsupportedError)
                continue
            watched.judge(self._rules, now)
            seen[group.path] = watched
        _name(seen.values(), self._logs)
        self.watched = seen
        self.unreadable_groups = unreadable + self._misnamed + len(self.unmeasured)
        self.last_look = self.clock.now()
        self.last_look_seconds = monotonic() - began
        return list(seen.values())

    def _members_of(self, groups: Sequence[Group]) -> dict[str, _Members]:
        """By path. Parents come first in `groups`: backwards, whatever is below a group is known before it."""
        found = {group.path: _Members() for group in groups}
        left = self._most_threads
        self.unasked_groups = 0
        for group in reversed(groups):
            own = _Members()
            with contextlib.suppress(*UNREADABLE):
                processes = group.processes()
                waited = self.proc.waited(processes, left)
                own.processes, own.waited, own.complete = len(processes), waited or {}, waited is not None
            left -= len(own.waited)
            self.unasked_groups += not own.complete
            found[group.path].add(own)
            above = found.get(group.path.rpartition("/")[0])
            if above is not None:
                above.add(found[group.path])
        return found

    def _chosen(self) -> list[Group]:
        found = [group for group in self.tree.walk(self.root) if group.path != "/"]
        groups = [group for group in found if is_text(group.path)]
        self._misnamed = len(found) - len(groups)
        self.skipped_groups = max(0, len(groups) - self._most_groups)
        if self.skipped_groups:
            groups.sort(key=_importance)
            groups = sorted(groups[: self._most_groups], key=lambda group: group.path)
        return groups


def _name(seen: Iterable[Watched], logs: Path) -> None:
    unnamed = {each.container_id: each for each in seen if each.container_id and not each.name.pod}
    if unnamed:
        names = container_names(logs)
        for identity in unnamed.keys() & names.keys():
            unnamed[identity].name = names[identity]


def _importance(group: Group) -> tuple[bool, str]:
    try:
        return group.bandwidth().quota_us is None, group.path
    except UNREADABLE:
        return True, group.path
