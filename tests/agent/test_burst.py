"""The agent's loop over control groups in memory, in virtual time; and the keeper on real ones."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from bayplan.agent.burst import BurstAgent, Happening, limited_groups
from bayplan.agent.burst_metrics import BurstCollector
from bayplan.agent.burst_modes import KoordinatorMode, Mode, ShortMode
from bayplan.agent.bursting import Bursting
from bayplan.agent.keeper import Keep, Let, obey
from bayplan.agent.keeping import Hear
from bayplan.agent.process import Enforcer
from bayplan.model.clock import MILLISECOND, SECOND, Instant, VirtualClock
from bayplan.node.burst.holds import Hold, Holds
from bayplan.node.burst.koordinator import BurstConfig, Policy
from bayplan.node.burst.short import ShortBurst
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.port import Bandwidth, Counters

WEB = "/kubepods/pod/web"
PERIOD = 100 * MILLISECOND


class HereKeeping:
    """Keeps in this very process, without timers of its own: for a tree that only this process has."""

    def __init__(self, holds: Holds, hear: Hear) -> None:
        self._holds, self._hear = holds, hear

    def hold(self, hold: Hold) -> None:
        for told in obey(self._holds, Keep(hold.path, hold.given, hold.until)):
            self._hear(told)

    def release(self, path: str) -> None:
        for told in obey(self._holds, Let(path)):
            self._hear(told)


class Scene:
    """A container limited to half a CPU in a pod limited to one, and an agent that watches it."""

    def __init__(self, mode: Mode, *, write: bool = True, version: int = 2) -> None:
        self.tree, self.clock = FakeTree(version), VirtualClock()
        self.tree.create("/kubepods/pod").set_bandwidth(Bandwidth(100_000))
        self.tree.create(WEB).set_bandwidth(Bandwidth(50_000))
        self.told: list[Happening] = []
        self.counters, self.due = Counters(), self.clock.now() + PERIOD
        self.agent = BurstAgent(self.tree, mode, self.clock, self.told.append, cpus=2)
        if write:
            self.agent.keeping = HereKeeping(Holds(self.tree), self.agent.hear)

    def passes(self, span: int, *, throttled: bool = False, busy: float = 0.0) -> None:
        """Periods pass one by one, and the agent wakes whenever it wants to."""
        end = self.clock.now() + span
        wake = self.agent.tick()
        while self.clock.now() < end:
            self.clock.advance_to(Instant(min(wake, self.due, end)))
            if self.clock.now() == self.due:
                self.due += PERIOD
                self._period(throttled, busy)
            if self.clock.now() >= wake:
                wake = self.agent.tick()

    def _period(self, throttled: bool, busy: float) -> None:
        was = self.counters
        used = was.usage_ns + int(busy * 2 * PERIOD * 1000)
        self.counters = Counters(was.periods + 1, was.throttled_periods + throttled, usage_ns=used)
        for path in ("/", WEB):
            self.tree.set_counters(path, self.counters)

    @property
    def quotas(self) -> tuple[int | None, int | None]:
        pod, web = (self.tree.group(path).bandwidth().quota_us for path in ("/kubepods/pod", WEB))
        return pod, web

    @property
    def news(self) -> list[tuple[str, float | None]]:
        return [(each.what, each.limit_cpus) for each in self.told]


@pytest.mark.parametrize("version", [1, 2])
def test_a_throttled_container_bursts_with_its_pod_and_both_come_back(version: int) -> None:
    scene = Scene(ShortMode(ShortBurst()), version=version)
    scene.passes(PERIOD + 60 * MILLISECOND, throttled=True)
    assert scene.quotas == (200_000, 150_000)
    scene.passes(200 * MILLISECOND)
    assert scene.quotas == (100_000, 50_000)
    assert scene.news == [("burst", 1.5), ("released", 0.5)]
    assert scene.told[0].why == "1 of 1 periods throttled (100%), quota x3.00 for 200 ms"


def test_a_container_that_is_always_throttled_rests_most_of_the_time() -> None:
    scene = Scene(ShortMode(ShortBurst()))
    raised = 0
    for _ in range(1000):
        scene.passes(10 * MILLISECOND, throttled=True)
        raised += scene.quotas != (100_000, 50_000)
    assert 0 < raised <= 1000 * 2 / 7 + 1  # 200 ms of burst, 500 ms of rest


def test_a_rehearsal_writes_nothing_and_tells_everything() -> None:
    scene = Scene(ShortMode(ShortBurst()), write=False)
    for _ in range(40):
        scene.passes(10 * MILLISECOND, throttled=True)
        assert scene.quotas == (100_000, 50_000)
    assert scene.news[:2] == [("would burst", 1.5), ("would end", 0.5)]


def test_koordinators_quota_climbs_while_throttled_and_stays_below_its_ceiling() -> None:
    scene = Scene(KoordinatorMode(BurstConfig(policy=Policy.CFS_QUOTA_BURST_ONLY)))
    scene.passes(2100 * MILLISECOND, throttled=True)
    assert scene.quotas[1] == 72_000  # the first look only begins to count
    scene.passes(10 * SECOND, throttled=True)
    assert scene.quotas == (200_000, 150_000)


def test_koordinators_quota_falls_on_a_busy_node() -> None:
    scene = Scene(KoordinatorMode(BurstConfig(policy=Policy.CFS_QUOTA_BURST_ONLY)))
    scene.passes(5 * SECOND, throttled=True)
    assert (scene.quotas[1] or 0) > 50_000
    scene.passes(10 * SECOND, throttled=True, busy=0.9)
    assert scene.quotas == (100_000, 50_000)


def test_koordinators_standing_burst_is_cut_to_the_quota() -> None:
    scene = Scene(KoordinatorMode(BurstConfig(policy=Policy.CPU_BURST_ONLY)))
    scene.passes(SECOND)
    assert scene.tree.group(WEB).bandwidth() == Bandwidth(50_000, burst_us=50_000)
    assert scene.told[0].why == "cfs_burst of 50 ms"


def test_a_limit_that_somebody_else_sets_is_kept_and_watched_from_then_on() -> None:
    scene = Scene(ShortMode(ShortBurst()))
    scene.passes(160 * MILLISECOND, throttled=True)
    scene.tree.group(WEB).set_bandwidth(Bandwidth(80_000))
    scene.passes(2 * SECOND)
    assert scene.quotas == (100_000, 80_000)
    assert scene.told[-1].why == "somebody else set it to 80000 of 100000 us"
    assert scene.agent.watched[WEB].own == Bandwidth(80_000)


def test_a_limit_that_is_changed_between_bursts_is_the_new_own_one() -> None:
    scene = Scene(ShortMode(ShortBurst()))
    scene.passes(SECOND)
    scene.tree.group(WEB).set_bandwidth(Bandwidth(80_000))
    scene.passes(SECOND)
    scene.passes(160 * MILLISECOND, throttled=True)
    assert scene.told[0].limit_cpus == 2.4  # three times the new one
    scene.passes(SECOND)
    assert scene.quotas == (100_000, 80_000)


def test_a_container_that_ends_is_forgotten() -> None:
    scene = Scene(ShortMode(ShortBurst()))
    scene.passes(160 * MILLISECOND, throttled=True)
    scene.tree.vanish(WEB)
    scene.clock.advance_to(Instant(scene.clock.now() + SECOND))
    scene.agent.tick()
    assert WEB not in scene.agent.watched
    assert scene.tree.group("/kubepods/pod").bandwidth() == Bandwidth(100_000)


def test_what_the_kernel_refuses_is_told() -> None:
    scene = Scene(ShortMode(ShortBurst()), version=1)
    scene.tree.fail(WEB, "cpu.cfs_quota_us", errno.EINVAL)
    scene.passes(160 * MILLISECOND, throttled=True)
    assert scene.told[-1].what == "refused"
    assert scene.told[-1].why.endswith('the kernel refuses "150000": EINVAL')
    assert scene.quotas == (100_000, 50_000)


def test_the_lowest_groups_with_a_limit_are_watched() -> None:
    tree = FakeTree(2)
    for path, quota in (("/pod", 100_000), ("/pod/a", 50_000), ("/pod/b", None), ("/solo", 10_000), ("/pod2", 5_000)):
        tree.create(path).set_bandwidth(Bandwidth(quota))
    assert [group.path for group, _ in limited_groups(tree, ["/"])] == ["/pod/a", "/pod2", "/solo"]


def test_groups_that_it_may_not_touch_are_only_counted() -> None:
    scene = Scene(ShortMode(ShortBurst()))
    agent = BurstAgent(scene.tree, ShortMode(ShortBurst()), scene.clock, scene.told.append, may_touch=lambda _: False)
    agent.tick()
    assert not agent.watched
    assert agent.left_out == 1


async def test_the_agents_part_without_writing_needs_no_keeper(tmp_path: Path) -> None:
    scene = Scene(ShortMode(ShortBurst()), write=False)
    part: Enforcer = Bursting(scene.agent, scene.clock, tmp_path / "journal", lasts=0)
    await part.run(write=False)
    assert not (tmp_path / "journal").exists()


def test_a_resize_between_two_scans_is_no_base_for_a_burst() -> None:
    scene = Scene(ShortMode(ShortBurst()))
    scene.passes(60 * MILLISECOND)
    scene.tree.group(WEB).set_bandwidth(Bandwidth(20_000))
    scene.passes(PERIOD, throttled=True)
    assert scene.quotas == (100_000, 20_000)
    scene.passes(2 * SECOND, throttled=True)
    assert ("burst", 0.6) in scene.news
    assert ("burst", 1.5) not in scene.news


def test_a_resize_during_a_standing_burst_gives_those_above_their_own_back() -> None:
    scene = Scene(KoordinatorMode(BurstConfig(policy=Policy.CFS_QUOTA_BURST_ONLY)))
    scene.passes(3 * SECOND, throttled=True)
    assert scene.quotas[0] != 100_000
    scene.tree.group(WEB).set_bandwidth(Bandwidth(80_000))
    scene.passes(2 * SECOND)
    assert scene.quotas == (100_000, 80_000)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda tree: tree.fail(WEB, "cpu.stat", errno.EACCES, reading=True), id="it may not be read"),
        pytest.param(lambda tree: tree.fail(WEB, "cpu.stat", errno.EOPNOTSUPP, reading=True), id="it is threaded"),
        pytest.param(lambda tree: tree.vanish(WEB), id="it is gone"),
    ],
)
def test_a_group_that_cannot_be_read_is_left_alone(spoil: Callable[[FakeTree], None]) -> None:
    scene = Scene(ShortMode(ShortBurst()))
    scene.passes(PERIOD + 60 * MILLISECOND, throttled=True)
    spoil(scene.tree)
    scene.agent.tick()
    scene.clock.advance_to(Instant(scene.clock.now() + SECOND))
    scene.agent.tick()
    assert WEB not in scene.agent.watched
    assert scene.tree.group("/kubepods/pod").bandwidth() == Bandwidth(100_000)


def test_a_group_whose_name_is_no_text_is_left_alone() -> None:
    tree = FakeTree()
    tree.create("/web\udcff").set_bandwidth(Bandwidth(50_000))
    tree.create("/web").set_bandwidth(Bandwidth(50_000))
    assert [group.path for group, _ in limited_groups(tree, ["/"])] == ["/web"]


def test_bursts_are_metrics() -> None:
    scene = Scene(ShortMode(ShortBurst()))
    registry = CollectorRegistry()
    registry.register(BurstCollector(scene.agent))
    scene.passes(3 * SECOND, throttled=True)
    watched = scene.agent.watched[WEB]
    text = generate_latest(registry).decode()
    assert watched.bursts >= 3
    assert f'bayplan_burst_activations_total{{id="{WEB}"}} {float(watched.bursts)}' in text
    assert f'bayplan_burst_periods_total{{id="{WEB}"}} {float(watched.counters.periods)}' in text
    assert f'bayplan_burst_throttled_periods_total{{id="{WEB}"}} {float(watched.counters.throttled_periods)}' in text
    assert f'bayplan_burst_throttled_seconds_bucket{{id="{WEB}",le="+Inf"}} ' in text


async def test_looks_that_take_longer_than_their_interval_leave_the_loop_its_turn() -> None:
    scene = Scene(ShortMode(ShortBurst()))
    ticks = 0

    def slow() -> Instant:
        nonlocal ticks
        ticks += 1
        assert ticks < 10, "it never rests"
        began = scene.clock.now()
        scene.clock.advance_to(Instant(began + 100 * MILLISECOND))
        return Instant(began + 50 * MILLISECOND)

    with mock.patch.object(scene.agent, "tick", slow):
        going = asyncio.create_task(scene.agent.run())
        for _ in range(5):
            await asyncio.sleep(0)
        assert ticks == 1
        scene.clock.advance_to(Instant(scene.clock.now() + 300 * MILLISECOND))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert ticks == 2
        going.cancel()
