"""The agent as a process: it starts, answers, advises, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import httpx2
import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from bayplan.agent.metrics import ThrottlingCollector
from bayplan.agent.observe import Observer
from bayplan.agent.process import Adviser, LooksOverdueError, Mode, run_agent, undo_leftovers
from bayplan.agent.procfs import Proc
from bayplan.model.clock import SECOND, Instant, SystemClock, VirtualClock
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.journalled import JournalledTree
from bayplan.node.cgroup.port import Bandwidth, Counters, GroupGoneError
from bayplan.node.cgroup.v1 import V1Group
from bayplan.node.cgroup.v2 import V2Group
from bayplan.node.throttling.causes import explain
from bayplan.service.lifecycle import Service
from bayplan.service.settings import HealthSettings, Settings
from tests.node.throttling import bucket


class Recorder:
    """An enforcer that says how it was run."""

    name = "recorder"

    def __init__(self) -> None:
        self.log: list[str] = []

    async def run(self, *, write: bool) -> None:
        self.log.append("writes" if write else "says")
        try:
            await asyncio.Event().wait()
        finally:
            self.log.append("undone")


def _settings() -> Settings:
    return msgspec.structs.replace(Settings(), health=HealthSettings(port=0))


async def _run(tree: FakeTree, mode: Mode, recorder: Recorder) -> tuple[str, str]:
    async with Service("agent", _settings()) as service:
        body = asyncio.create_task(run_agent(service, tree, mode, enforcers=[recorder]))
        await asyncio.sleep(0.01)
        async with httpx2.AsyncClient() as client:
            metrics = (await client.get(f"{service.url}/metrics")).text
            ready = (await client.get(f"{service.url}/readyz?verbose")).text
        service.stop("enough")
        await body
    return metrics, ready


@pytest.mark.parametrize(
    ("mode", "log"),
    [
        pytest.param(Mode.OBSERVE, [], id="to observe is to start nothing else"),
        pytest.param(Mode.ADVISE, ["says", "undone"], id="to advise is to say"),
        pytest.param(Mode.ENFORCE, ["writes", "undone"], id="to enforce is to write, and to undo at the end"),
    ],
)
async def test_modes(mode: Mode, log: list[str]) -> None:
    tree, recorder = FakeTree(), Recorder()
    tree.create("/app").set_bandwidth(Bandwidth(50_000))

    metrics, ready = await _run(tree, mode, recorder)

    assert recorder.log == log
    assert 'container_spec_cpu_quota{container="",id="/app"' in metrics
    assert "[+]looks ok" in ready


async def test_observing_writes_nothing() -> None:
    tree = FakeTree()
    tree.create("/app").set_bandwidth(Bandwidth(50_000))

    def refuse(path: str, value: str) -> None:
        raise AssertionError(f"wrote {value} to {path}")

    tree.kernel.write = refuse  # type: ignore[method-assign]  # the one way to the kernel
    await _run(tree, Mode.OBSERVE, Recorder())


def test_what_a_killed_process_left_is_undone(tmp_path: Path) -> None:
    tree = FakeTree()
    tree.create("/app").set_bandwidth(Bandwidth(50_000))
    journal = tmp_path / "try.journal"
    killed = JournalledTree.open(tree, journal)
    killed.group("/app").set_bandwidth(Bandwidth(90_000))
    killed.journal.close()  # as the kernel does for a process that is killed

    undo_leftovers(tree, tmp_path)

    assert tree.group("/app").bandwidth().quota_us == 50_000


def test_a_journal_in_use_is_left_alone(tmp_path: Path) -> None:
    tree = FakeTree()
    tree.create("/app").set_bandwidth(Bandwidth(50_000))
    with JournalledTree.open(tree, tmp_path / "burst.journal") as other:
        other.group("/app").set_bandwidth(Bandwidth(90_000))
        undo_leftovers(tree, tmp_path)
        assert tree.group("/app").bandwidth().quota_us == 90_000


def test_without_journals_nothing_is_touched(tmp_path: Path) -> None:
    undo_leftovers(FakeTree(), tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


async def test_an_agent_that_does_not_look_is_not_ready() -> None:
    from bayplan.agent.process import _check

    clock = VirtualClock()
    observer = Observer(FakeTree(), clock)
    _check(observer, SECOND)
    clock.advance_to(Instant(clock.now() + 9 * SECOND))
    with pytest.raises(LooksOverdueError, match="9 s ago"):
        _check(observer, SECOND)


class ThrottledTree(FakeTree):
    """A group whose counters run: every look is a period further, and throttled."""

    def __init__(self) -> None:
        super().__init__()
        self.create("/app").set_bandwidth(Bandwidth(50_000))
        self.looks = 0
        self.gone_after: int | None = None

    def group(self, path: str) -> V1Group | V2Group:
        tree, found = self, super().group(path)

        class Running(type(found)):  # type: ignore[misc]  # a base that is known when it runs
            def counters(self) -> Counters:
                tree.looks += 1
                if tree.gone_after is not None and tree.looks > tree.gone_after:
                    raise GroupGoneError(f"group {path} is gone")
                number = tree.looks
                return Counters(number, number, number * 50_000_000, usage_ns=number * 50_000_000)

        found.__class__ = Running
        return found

    def walk(self, path: str = "/") -> Iterator[V1Group | V2Group]:
        return (self.group(each.path) for each in super().walk(path))


class Advised:
    """An adviser over that tree in a clock that runs by itself."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (place / "stat").write_text("cpu 0 0 0 0 0 0 0\n")
        self.tree, self.clock = ThrottledTree(), RunningClock()
        self.observer = Observer(self.tree, self.clock, proc=Proc(place))
        self.said: list[dict[str, object]] = []
        monkeypatch.setattr("bayplan.agent.process.log", self)
        self.adviser = Adviser(self.observer)
        self.observer.look()
        self.clock.advance_to(Instant(self.clock.now() + SECOND))
        self.observer.look()

    def info(self, what: str, **more: object) -> None:
        self.said.append(more)


class RunningClock(VirtualClock):
    """Whoever sleeps wakes at once, later."""

    async def sleep_until(self, at: Instant) -> None:
        self.advance_to(max(at, self.now()))


async def test_a_throttled_group_is_advised_on_once_a_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Advised(tmp_path, monkeypatch)
    await scene.adviser.advise()
    await scene.adviser.advise()
    (said,) = scene.said
    assert (said["group"], said["cause"]) == ("/app", "LimitTooLow")
    assert said["would_set"]


async def test_a_group_that_ends_under_the_advisers_eyes_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Advised(tmp_path, monkeypatch)
    scene.tree.gone_after = scene.tree.looks + 3
    await scene.adviser.advise()
    assert scene.said == []
    scene.observer.look()
    await scene.adviser.advise()  # nothing left to look at
    assert scene.said == []


async def test_a_scrape_does_not_hold_the_loop() -> None:
    """The collector waits for what only the loop can do; were it in the loop, neither would ever end."""
    heard = threading.Event()

    class Slow(Collector):
        def describe(self) -> Iterable[Metric]:
            return ()

        def collect(self) -> Iterable[Metric]:
            yield GaugeMetricFamily("heard", "Whether the loop went on.", float(heard.wait(timeout=30)))

    async with Service("agent", _settings()) as service, httpx2.AsyncClient() as client:
        service.health.registry.register(Slow())
        scrape = asyncio.create_task(client.get(f"{service.url}/metrics"))
        assert (await client.get(f"{service.url}/livez")).text == "ok"
        heard.set()
        assert "heard 1.0" in (await scrape).text


def test_looks_and_scrapes_in_many_threads_do_not_mix(tmp_path: Path) -> None:
    tree = FakeTree()
    for number in range(20):
        tree.create(f"/app/{number}").set_bandwidth(Bandwidth(50_000))
    observer = Observer(tree, SystemClock(), proc=Proc(tmp_path))
    registry = CollectorRegistry()
    registry.register(ThrottlingCollector(observer))
    with ThreadPoolExecutor(4) as threads:
        texts = [*threads.map(lambda _: generate_latest(registry).decode(), range(12))]
    assert all(text.count("container_processes{") == 21 for text in texts)


def test_a_journal_that_may_not_be_opened_does_not_keep_the_agent_from_observing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(tree: object, path: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / "burst.journal").touch()
    monkeypatch.setattr(JournalledTree, "open", refuse)
    undo_leftovers(FakeTree(), tmp_path)


async def test_nobody_throttled_nothing_to_advise(tmp_path: Path) -> None:
    observer = Observer(FakeTree(), SystemClock(), proc=Proc(tmp_path))
    observer.look()
    await Adviser(observer).advise()  # a close look would need /proc/stat


async def test_a_group_that_rests_under_the_advisers_eyes_is_no_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Advised(tmp_path, monkeypatch)
    found = explain(bucket.watched(Bandwidth(50_000), []))
    monkeypatch.setattr("bayplan.agent.process.explain", lambda _: found)
    await scene.adviser.advise()
    assert scene.said == []
