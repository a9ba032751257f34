"""The agent as a process: it starts, answers, advises, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import msgspec
import pytest

from bayplan.agent.observe import Observer
from bayplan.agent.process import Adviser, LooksOverdueError, Mode, run_agent, undo_leftovers
from bayplan.agent.procfs import Proc
from bayplan.model.clock import SECOND, Instant, SystemClock, VirtualClock
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.journalled import JournalledTree
from bayplan.node.cgroup.port import Bandwidth
from bayplan.service.lifecycle import Service
from bayplan.service.settings import HealthSettings, Settings


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


async def test_nobody_throttled_nothing_to_advise(tmp_path: Path) -> None:
    observer = Observer(FakeTree(), SystemClock(), proc=Proc(tmp_path))
    observer.look()
    await Adviser(observer).advise()  # a close look would need /proc/stat
