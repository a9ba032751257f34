"""Random lives of a pod, observed whole, in parts, twice, and across restarts of the ledger.

A life is made step by step, one second or more apart, and knows what really happened at each step. The object that an
observer sees after a step says when things happened, to the second, as Kubernetes does.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.cluster.objects import Object
from bayplan.ledger.rows import GpuPeriod, GpuPodsEvent, PendingPeriod, PodResource, Row
from bayplan.model.clock import SECOND
from tests.ledger.differ.lives import Watcher, at, condition, container, over, pod, running

Happened = set[tuple[str, str, str]]
"""Type, subject, value."""


class Life:
    """A pod as it really was: its versions, and what led to each."""

    def __init__(self) -> None:
        self.second = 0
        self.phase, self.node, self.gpus = "Pending", "", 1
        self.conditions: dict[str, dict[str, Any]] = {}
        self.main: dict[str, Any] | None = None
        self.started = 0
        self.meta: dict[str, Any] = {}
        self.versions: list[tuple[int, Object]] = []
        self.happened: list[Happened] = []
        self.bound: int | None = None
        self.ended: int | None = None
        self.gpu_seconds = 0

    def step(self, seconds: int, actions: list[str]) -> None:
        if self.bound is not None and self.ended is None:
            self.gpu_seconds += seconds * self.gpus
        self.second += seconds
        before = copy.deepcopy((self.phase, self.conditions, self.node, self.gpus, self.main, bool(self.meta)))
        for action in dict.fromkeys(actions):
            getattr(self, action.partition(" ")[0])(*action.split(" ")[1:])
        self.happened.append(self.compared(*before) if self.versions else self.there())
        containers = () if self.main is None else (copy.deepcopy(self.main),)
        version = pod(
            10 + len(self.versions),
            self.phase,
            *self.conditions.values(),
            node=self.node,
            gpus=self.gpus,
            containers=containers,
            meta=self.meta,
        )
        self.versions.append((self.second, version))

    def there(self) -> Happened:
        return {("Phase", "", self.phase)} | {("Condition", name, c["status"]) for name, c in self.conditions.items()}

    def compared(
        self, phase: str, conditions: dict[str, Any], node: str, gpus: int, main: dict[str, Any] | None, deleting: bool
    ) -> Happened:
        found: Happened = set()
        if phase != self.phase:
            found.add(("Phase", "", self.phase))
        for name in conditions.keys() | self.conditions.keys():
            was, now = (each.get(name, {}).get("status", "") for each in (conditions, self.conditions))
            if was != now:
                found.add(("Condition", name, now))
        if node != self.node:
            found.add(("Bound", "", self.node))
        if gpus != self.gpus:
            found.add(("Resized", "nvidia.com/gpu", str(self.gpus * 1000)))
        if self.meta and not deleting:
            found.add(("Deleting", "", ""))
        return found | self.of_container(main)

    def of_container(self, was: dict[str, Any] | None) -> Happened:
        if self.main is None:
            return set()
        was = was or container({})
        found: Happened = set()
        if self.main["restartCount"] > was["restartCount"]:
            found.add(("Restart", "main", str(self.main["restartCount"])))
        told = [was["state"].get("terminated"), was["lastState"].get("terminated")]
        for state in ("state", "lastState"):
            run = self.main[state].get("terminated")
            if run is not None and run not in told:
                found.add(("Exit", "main", run["reason"]))
        return found

    # --- what may happen

    def bind(self) -> None:
        if not self.node and self.phase == "Pending":
            self.node, self.bound = "a", self.second
            self.conditions["PodScheduled"] = condition("PodScheduled", "True", self.second)

    def refuse(self, reason: str) -> None:
        if not self.node and self.phase == "Pending":
            since = self.conditions.get("PodScheduled", {}).get("lastTransitionTime")
            found = condition("PodScheduled", "False", self.second, reason)
            self.conditions["PodScheduled"] = {**found, "lastTransitionTime": since or found["lastTransitionTime"]}

    def start(self) -> None:
        if self.node and self.phase == "Pending":
            self.phase, self.started = "Running", self.second
            self.main = container(running(self.second))

    def turn(self, name: str, status: str) -> None:
        if self.conditions.get(name, {}).get("status") != status:
            self.conditions[name] = condition(name, status, self.second)

    def drop(self, name: str) -> None:
        self.conditions.pop(name, None)

    def exit(self, reason: str) -> None:
        if self.phase == "Running" and self.main is not None and "running" in self.main["state"]:
            run = f"r://{self.main['restartCount']}"
            self.main = {**self.main, "state": over(self.started, self.second, 1, reason, run)}

    def again(self) -> None:
        if self.phase == "Running" and self.main is not None and "terminated" in self.main["state"]:
            self.started = self.second
            self.main = container(running(self.second), self.main["restartCount"] + 1, self.main["state"])

    def resize(self, gpus: str) -> None:
        if self.phase == "Running":
            self.gpus = int(gpus)

    def delete(self) -> None:
        self.meta = {"deletionTimestamp": "2026-01-01T06:00:00Z"}

    def finish(self, phase: str) -> None:
        if self.phase == "Running" and self.main is not None and "running" in self.main["state"]:
            self.exit("Completed")
            self.phase, self.ended = phase, self.second


ACTIONS = (
    "bind",
    "bind",
    "start",
    "start",
    "refuse Unschedulable",
    "refuse SchedulingGated",
    "turn Ready True",
    "turn Ready False",
    "turn example.com/Custom True",
    "turn example.com/Custom Unknown",
    "drop example.com/Custom",
    "exit OOMKilled",
    "again",
    "resize 2",
    "resize 4",
    "delete",
    "finish Succeeded",
    "finish Failed",
)


@st.composite
def lives(draw: st.DrawFn) -> Life:
    life = Life()
    steps = st.tuples(st.integers(1, 50), st.lists(st.sampled_from(ACTIONS), max_size=3))
    life.step(0, [])
    for seconds, actions in draw(st.lists(steps, min_size=1, max_size=14)):
        life.step(seconds, actions)
    return life


def events(watcher: Watcher) -> dict[int, Happened]:
    found: dict[int, Happened] = {}
    for row in watcher.all(GpuPodsEvent):
        subject = row.subject.partition(" (")[0]
        found.setdefault(row.resource_version, set()).add((row.event_type, subject, row.value))
    return found


@given(lives())
def test_every_version_seen_gives_every_transition_once(life: Life) -> None:
    watcher = Watcher()
    for second, version in life.versions:
        watcher.see(second, version)
    assert events(watcher) == {10 + i: happened for i, happened in enumerate(life.happened) if happened}
    assert len(watcher.all(GpuPodsEvent)) == sum(map(len, life.happened))


@given(lives(), st.data())
def test_some_versions_seen_give_no_event_that_did_not_happen(life: Life, data: st.DataObject) -> None:
    chosen = sorted(data.draw(st.sets(st.integers(0, len(life.versions) - 1), min_size=1)))
    watcher = Watcher()
    for index in chosen:
        watcher.see(*life.versions[index])
    seen = events(watcher)
    before = -1
    for index in chosen:
        meanwhile = set().union(*life.happened[before + 1 : index + 1])
        assert seen.get(10 + index, set()) <= meanwhile
        before = index


@given(lives(), st.data())
def test_versions_that_come_again_add_nothing(life: Life, data: st.DataObject) -> None:
    watcher = Watcher()
    for index, (second, version) in enumerate(life.versions):
        watcher.see(second, version)
        earlier = life.versions[data.draw(st.integers(0, index))][1]
        known = watcher.pod
        assert not len(watcher.see(second + 1, earlier))
        assert watcher.pod is known


@given(lives(), st.data())
def test_gpu_seconds_are_exact(life: Life, data: st.DataObject) -> None:
    """Of a life seen whole, to the resize; of one seen in parts, from bind to release."""
    gone = life.second + 7
    whole, parts = Watcher(), Watcher()
    chosen = data.draw(st.sets(st.integers(0, len(life.versions) - 1), min_size=1))
    for index, (second, version) in enumerate(life.versions):
        whole.see(second, version)
        if index in chosen:
            parts.see(second, version)
    last = life.versions[-1][1]
    whole.lose(gone, last)
    parts.lose(gone, last)
    held = life.gpu_seconds + (7 * life.gpus if life.bound is not None and life.ended is None else 0)
    assert sum((row.end_at - row.start_at) * row.gpus for row in whole.all(GpuPeriod)) == held * 1000 * SECOND
    until = gone if life.ended is None else life.ended
    span = 0 if life.bound is None else until - life.bound
    assert sum(row.end_at - row.start_at for row in parts.all(GpuPeriod)) == span * SECOND
    waited = gone if life.bound is None else life.bound
    for watcher in (whole, parts):
        assert sum(row.end_at - row.start_at for row in watcher.all(PendingPeriod)) == waited * SECOND
        ordered = sorted(watcher.all(GpuPeriod), key=lambda row: row.start_at)
        assert all(one.end_at == two.start_at for one, two in itertools.pairwise(ordered))


@given(lives(), st.data())
def test_restarts_of_the_ledger_change_nothing(life: Life, data: st.DataObject) -> None:
    steady, restless = Watcher(model_of=lambda *_: "H100"), Watcher(model_of=lambda *_: "H100")
    for second, version in life.versions:
        steady.see(second, version)
        restless.see(second, version)
        if data.draw(st.booleans()):
            restless.restart()
    for watcher in (steady, restless):
        watcher.lose(life.second + 7, inferred_after=at(life.second + 1))
    assert said(restless) == said(steady)


def said(watcher: Watcher) -> set[Row]:
    """All rows; of a resource a restarted ledger may say the same again under a later version."""
    rows = {row for table in watcher.ledger.tables.values() for row in table.values()}
    return {replace(row, resource_version=0) if isinstance(row, PodResource) else row for row in rows}
