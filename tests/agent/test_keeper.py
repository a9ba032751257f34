"""The keeper on real control groups: limits come back in time, and whoever is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks.cpu_work import are_groups_writable

from bayplan.agent.keeper import Told, recover
from bayplan.agent.keeping import Keeper, KeeperLostError
from bayplan.model.clock import MILLISECOND, Instant, SystemClock
from bayplan.node.burst.holds import Hold
from bayplan.node.cgroup.detect import find_tree
from bayplan.node.cgroup.journal import BusyJournalError, Journal
from bayplan.node.cgroup.port import Bandwidth, Group

OWN, RAISED = Bandwidth(50_000), Bandwidth(150_000)
ROOT = "/sys/fs/cgroup"

# Holds for a minute, says so, and waits to be killed.
HOLDER = """
import asyncio, sys
from pathlib import Path
from bayplan.agent.keeping import Keeper
from bayplan.model.clock import Instant, SystemClock
from bayplan.node.burst.holds import Hold
from bayplan.node.cgroup.port import Bandwidth

async def main(path, journal, lasts):
    clock = SystemClock()
    async with Keeper(Path(journal), clock, lambda told: print(told.what, flush=True)) as keeper:
        print(keeper.pid, flush=True)
        keeper.hold(Hold(path, Bandwidth(150_000), Instant(clock.now() + int(lasts) * 1_000_000)))
        await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""

# Raises and gives back without end.
RESTLESS = """
import asyncio, sys
from pathlib import Path
from bayplan.agent.keeping import Keeper
from bayplan.model.clock import SystemClock
from bayplan.node.burst.holds import Hold
from bayplan.node.cgroup.port import Bandwidth

async def main(path, journal):
    async with Keeper(Path(journal), SystemClock(), lambda told: None) as keeper:
        while True:
            keeper.hold(Hold(path, Bandwidth(150_000)))
            await asyncio.sleep(0.001)
            keeper.release(path)
            await asyncio.sleep(0.001)

asyncio.run(main(*sys.argv[1:]))
"""


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not are_groups_writable(), reason="control groups are not writable here"),
]


@pytest.fixture
def group() -> Iterator[Group]:
    tree = find_tree()
    path = f"/bayplan-test-keeper-{os.getpid()}"
    pod = tree.create(path)
    pod.set_bandwidth(Bandwidth(60_000))
    group = tree.create(f"{path}/web")
    group.set_bandwidth(OWN)
    yield group
    assert pod.bandwidth() == Bandwidth(60_000)  # the limit above came back as well
    tree.remove(group.path)
    tree.remove(path)


def wait_for(ready: Callable[[], bool]) -> None:
    """Poll; a machine that is busy may take its time."""
    for _ in range(3000):
        if ready():
            return
        time.sleep(0.01)
    raise AssertionError("it never came to be")


def is_busy(journal: Path) -> bool:
    """Whether a keeper still holds it."""
    try:
        Journal(journal).close()
    except BusyJournalError:
        return True
    return False


class Holder:
    """A process with a keeper that holds the group's limit up."""

    def __init__(self, group: Group, journal: Path, lasts: int = 60) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, group.path, str(journal), str(lasts)], stdout=subprocess.PIPE, text=True
        )
        self.words = iter(self.process.stdout or ())
        assert next(self.words) == "ready\n"
        self.keeper = int(next(self.words))
        assert next(self.words) == "held\n"
        assert group.bandwidth() == RAISED

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


async def test_limits_come_back_by_themselves(group: Group, tmp_path: Path) -> None:
    clock, told = SystemClock(), asyncio.Queue[Told]()
    async with Keeper(tmp_path / "journal", clock, told.put_nowait) as keeper:
        assert (await told.get()).what == "ready"
        for _ in range(5):
            keeper.hold(Hold(group.path, RAISED, Instant(clock.now() + 100 * MILLISECOND)))
            assert (await told.get()).what == "held"
            released = await told.get()
            assert (released.what, released.why) == ("released", "")
            assert released.late_us is not None
            assert group.bandwidth() == OWN


async def test_leaving_gives_everything_back(group: Group, tmp_path: Path) -> None:
    clock, told = SystemClock(), asyncio.Queue[Told]()
    async with Keeper(tmp_path / "journal", clock, told.put_nowait) as keeper:
        keeper.hold(Hold(group.path, RAISED))
        while (await told.get()).what != "held":
            pass
        assert group.bandwidth() == RAISED
    assert group.bandwidth() == OWN


def test_the_agent_is_killed_and_the_keeper_gives_everything_back(group: Group, tmp_path: Path) -> None:
    holder = Holder(group, tmp_path / "journal")
    holder.kill()
    wait_for(lambda: group.bandwidth() == OWN)


def test_both_are_killed_and_the_next_start_gives_everything_back(group: Group, tmp_path: Path) -> None:
    holder = Holder(group, tmp_path / "journal")
    holder.process.send_signal(signal.SIGSTOP)  # so that it does not see its keeper die, and undo it
    os.kill(holder.keeper, signal.SIGKILL)
    holder.kill()
    assert group.bandwidth() == RAISED
    undone = recover(ROOT, "/", tmp_path / "journal")
    assert group.bandwidth() == OWN
    assert len(undone.restored) == 2
    assert recover(ROOT, "/", tmp_path / "journal").restored == ()


async def test_the_keeper_is_killed_and_the_agent_gives_everything_back(group: Group, tmp_path: Path) -> None:
    told: asyncio.Queue[Told] = asyncio.Queue()
    async with Keeper(tmp_path / "journal", SystemClock(), told.put_nowait) as keeper:
        keeper.hold(Hold(group.path, RAISED))
        while (await told.get()).what != "held":
            pass
        os.kill(keeper.pid, signal.SIGKILL)
        with pytest.raises(KeeperLostError, match="ended with -9: gave 2 limits back"):
            await keeper.lost()
    assert group.bandwidth() == OWN


async def test_a_second_keeper_of_the_same_journal_is_refused(group: Group, tmp_path: Path) -> None:
    async with Keeper(tmp_path / "journal", SystemClock(), lambda _: None):
        with pytest.raises(KeeperLostError, match=r"journal .* is in use"):
            await Keeper(tmp_path / "journal", SystemClock(), lambda _: None).__aenter__()
    assert group.bandwidth() == OWN


async def test_what_the_kernel_refuses_is_told(group: Group, tmp_path: Path) -> None:
    told: asyncio.Queue[Told] = asyncio.Queue()
    async with Keeper(tmp_path / "journal", SystemClock(), told.put_nowait) as keeper:
        keeper.hold(Hold(group.path, Bandwidth(1)))
        assert (await told.get()).what == "ready"
        refused = await told.get()
    assert refused.what == "refused"
    assert "EINVAL" in refused.why


def test_an_agent_that_is_stopped_delays_no_limit(group: Group, tmp_path: Path) -> None:
    """As `kill -STOP` leaves it: it neither reads news nor ends."""
    holder = Holder(group, tmp_path / "journal", lasts=2)
    holder.process.send_signal(signal.SIGSTOP)
    try:
        wait_for(lambda: group.bandwidth() == OWN)
    finally:
        holder.process.send_signal(signal.SIGCONT)
        holder.kill()


@pytest.mark.parametrize("place", ["/proc/no/journal", "/sys/no/journal"])
async def test_a_journal_that_cannot_be_made_is_said(place: str) -> None:
    with pytest.raises(KeeperLostError, match=r"cannot start: .*(No such file|not permitted|denied|[Rr]ead-only)"):
        async with Keeper(Path(place), SystemClock(), lambda _: None):
            pass


async def test_what_is_given_back_at_the_end_is_heard(group: Group, tmp_path: Path) -> None:
    told: list[str] = []
    async with Keeper(tmp_path / "journal", SystemClock(), lambda each: told.append(each.what)) as keeper:
        lost = asyncio.create_task(keeper.lost())
        keeper.hold(Hold(group.path, RAISED))
        await asyncio.sleep(0)
        lost.cancel()
        await asyncio.wait([lost])
    assert told == ["ready", "held", "released"]


async def test_who_cannot_hear_is_told_and_everything_is_back(group: Group, tmp_path: Path) -> None:
    """As a closed pipe does it: `bayplan cpu burst | head`."""

    def hear(told: Told) -> None:
        if told.what == "held":
            raise BrokenPipeError

    async def held() -> None:
        async with Keeper(tmp_path / "journal", SystemClock(), hear) as keeper:
            keeper.hold(Hold(group.path, RAISED))
            await keeper.lost()

    with pytest.raises(BrokenPipeError):
        await held()
    assert group.bandwidth() == OWN


@pytest.mark.parametrize("moment", range(8))
def test_whenever_the_agent_is_killed_everything_is_back(group: Group, tmp_path: Path, moment: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", RESTLESS, group.path, str(tmp_path / "journal")])
    wait_for((tmp_path / "journal").exists)
    time.sleep(moment * 0.037)
    process.kill()
    process.wait()
    wait_for(lambda: group.bandwidth() == OWN and not is_busy(tmp_path / "journal"))
    assert group.bandwidth() == OWN


@pytest.mark.parametrize("moment", range(8))
def test_whenever_both_are_killed_the_next_start_gives_everything_back(
    group: Group, tmp_path: Path, moment: int
) -> None:
    journal = tmp_path / "journal"
    process = subprocess.Popen([sys.executable, "-c", RESTLESS, group.path, str(journal)])
    wait_for(journal.exists)
    time.sleep(moment * 0.037)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in (*map(int, children), process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: not is_busy(journal))
    recover(ROOT, "/", journal)
    assert group.bandwidth() == OWN
