"""TierManager over control groups in memory: weights first, quota last, bursts that end, everything as it was found."""

from __future__ import annotations

import errno

import pytest

from bayplan.model.clock import MILLISECOND, SECOND, Instant, VirtualClock
from bayplan.node.burst.holds import Holds
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.port import Bandwidth, Counters, WriteRefusedError
from bayplan.node.tiers.manager import TIERS, TierError, TierManager
from bayplan.node.tiers.task import Task

WEB = "/kubepods/web"


class Node:
    """A tree with one container limited to half a CPU."""

    def __init__(self, version: int) -> None:
        self.tree, self.clock = FakeTree(version), VirtualClock()
        self.group = self.tree.create(WEB)
        self.group.set_bandwidth(Bandwidth(50_000))
        self.manager = TierManager(self.tree, self.clock, Holds(self.tree))
        self.periods = self.throttled = 0

    def passes(self, milliseconds: int, periods: int = 0, throttled: int = 0) -> None:
        self.periods, self.throttled = self.periods + periods, self.throttled + throttled
        self.tree.set_counters(WEB, Counters(self.periods, self.throttled, self.throttled * 50_000_000))
        self.clock.advance_to(Instant(self.clock.now() + milliseconds * MILLISECOND))

    @property
    def quota(self) -> int | None:
        return self.group.bandwidth().quota_us


@pytest.fixture(params=[1, 2], ids=["version 1", "version 2"])
def node(request: pytest.FixtureRequest) -> Node:
    node = Node(request.param)
    node.manager.add(Task.container("web", WEB))
    return node


@pytest.mark.parametrize(
    ("tier", "weight", "quota"),
    [
        pytest.param(0, 100, 50_000, id="tier 0 leaves a task alone"),
        pytest.param(1, 50, 50_000, id="tier 1 lowers the weight"),
        pytest.param(2, 10, 50_000, id="tier 2 lowers it further"),
        pytest.param(3, 10, 25_000, id="tier 3 adds the hard quota"),
    ],
)
def test_what_a_tier_writes(node: Node, tier: int, weight: int, quota: int) -> None:
    node.manager.set_tier("web", tier)
    assert (node.group.weight(), node.quota) == (weight, quota)
    node.manager.set_tier("web", 0)
    assert (node.group.weight(), node.quota) == (100, 50_000)


def test_weights_never_rise_and_the_quota_comes_last() -> None:
    shares = [tier.share for tier in TIERS]
    assert shares == sorted(shares, reverse=True)
    assert [tier.quota_cpus is not None for tier in TIERS] == [False, False, False, True]


def test_a_throttled_task_gets_a_burst_that_ends(node: Node) -> None:
    node.passes(300, periods=10, throttled=10)
    at = node.manager.handle_burst("web")
    assert at == node.manager.next_reset == node.clock.now() + 200 * MILLISECOND
    assert node.quota == 80_000  # one look at full throttling learns 1.6 of the 3 it may have
    node.passes(199)
    assert node.manager.reset_due() == []
    node.passes(1)
    assert node.manager.reset_due() == ["web"]
    assert node.quota == 50_000
    assert node.manager.metrics("web").burst_activations == 1


def test_a_task_rests_between_bursts(node: Node) -> None:
    node.passes(300, periods=10, throttled=10)
    assert node.manager.handle_burst("web")
    node.passes(200)
    node.manager.reset_due()
    node.passes(400, periods=4, throttled=4)
    assert node.manager.handle_burst("web") is None
    node.passes(100, periods=1, throttled=1)
    assert node.manager.handle_burst("web")
    assert node.quota == 115_700  # and the budget has learnt meanwhile


@pytest.mark.parametrize(
    ("tier", "throttled"),
    [
        pytest.param(0, 1, id="one of ten periods is at the threshold"),
        pytest.param(3, 10, id="tier 3's quota is meant"),
    ],
)
def test_no_burst(node: Node, tier: int, throttled: int) -> None:
    node.manager.set_tier("web", tier)
    node.passes(300, periods=10, throttled=throttled)
    assert node.manager.handle_burst("web") is None


def test_a_task_without_a_limit_needs_no_burst(node: Node) -> None:
    node.tree.create("/free")
    node.manager.add(Task.container("free", "/free"))
    node.tree.set_counters("/free", Counters(10, 10))
    assert node.manager.handle_burst("free") is None
    with pytest.raises(TierError, match="task free has no burst: it has no limit"):
        node.manager.apply_burst_budget("free")


def test_a_tier_grants_its_own_most(node: Node) -> None:
    node.manager.set_tier("web", 2)
    for _ in range(10):
        node.passes(1000, periods=10, throttled=10)
        node.manager.handle_burst("web")
        node.manager.reset_due()
    assert node.manager.apply_burst_budget("web") == Bandwidth(75_000)


def test_the_rate_is_that_of_the_last_second(node: Node) -> None:
    node.passes(500, periods=10, throttled=10)
    assert node.manager.get_throttle_rate("web") == 1
    node.passes(2000, periods=10)
    assert node.manager.get_throttle_rate("web") == 0
    assert node.manager.metrics("web").throttle_rate() == 0.5


def test_closing_leaves_everything_as_it_was_found(node: Node) -> None:
    node.manager.set_tier("web", 3)
    node.manager.close()
    assert (node.group.weight(), node.group.bandwidth()) == (100, Bandwidth(50_000))


def test_shares_that_are_no_whole_weight_come_back_exactly() -> None:
    node = Node(1)
    node.group.set_shares(340)  # a request of 333m
    node.manager.add(Task.container("web", WEB), tier=2)
    node.manager.close()
    assert node.tree.kernel.read(f"/cpu{WEB}/cpu.shares") == "340"


def test_a_container_that_ended_is_no_error(node: Node) -> None:
    node.manager.set_tier("web", 3)
    node.tree.vanish(WEB)
    node.manager.close()


def test_a_process_group_has_a_group_as_long_as_it_is_a_task(node: Node) -> None:
    node.tree.create("/home")
    one, two = node.tree.spawn("/home"), node.tree.spawn()
    node.manager.add(Task.process_group("job", "/tasks/job", (one, two)), tier=2)
    group = node.tree.group("/tasks/job")
    assert (group.processes(), group.weight()) == ((one, two), 10)
    node.manager.remove("job")
    assert node.tree.group("/home").processes() == (one,)
    assert two in node.tree.group("/").processes()
    assert "/tasks/job" not in [each.path for each in node.tree.walk()]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        pytest.param(lambda m: m.set_tier("web", 4), "task web: no tier 4", id="a tier that is not there"),
        pytest.param(lambda m: m.handle_burst("x"), "no task x", id="a task that is not there"),
        pytest.param(lambda m: m.add(Task.container("web", WEB)), "task web is there already", id="a task twice"),
    ],
)
def test_mistakes_are_told(node: Node, call: object, told: str) -> None:
    assert callable(call)
    with pytest.raises(TierError, match=told):
        call(node.manager)


def test_a_window_without_looks_starts_at_the_last_one(node: Node) -> None:
    node.passes(10 * SECOND // MILLISECOND, periods=100, throttled=50)
    assert node.manager.get_throttle_rate("web") == 0.5


def test_a_task_that_cannot_be_taken_on_leaves_nothing_behind(node: Node) -> None:
    pid = node.tree.spawn()
    for tier, error in ((7, TierError), (3, WriteRefusedError)):
        if tier == 3:
            node.tree.fail("/batch", "cpu.shares" if node.tree.version == 1 else "cpu.weight", errno.EINVAL)
        with pytest.raises(error):
            node.manager.add(Task.process_group("batch", "/batch", (pid,)), tier)
        assert pid in node.tree.group("/").processes()
        assert not any(group.path == "/batch" for group in node.tree.walk())
        with pytest.raises(TierError, match="no task batch"):
            node.manager.tier("batch")


def test_a_process_that_is_gone_cannot_be_taken_on(node: Node) -> None:
    pid = node.tree.spawn()
    with pytest.raises(WriteRefusedError):
        node.manager.add(Task.process_group("batch", "/batch", (pid, 999_999)))
    assert pid in node.tree.group("/").processes()


def test_closing_goes_on_past_a_refusal(node: Node) -> None:
    file = "cpu.shares" if node.tree.version == 1 else "cpu.weight"
    pid = node.tree.spawn()
    node.manager.set_tier("web", 2)
    node.manager.add(Task.process_group("batch", "/batch", (pid,)), 3)
    node.tree.fail(WEB, file, errno.EINVAL)
    with pytest.raises(WriteRefusedError):
        node.manager.close()
    assert pid in node.tree.group("/").processes()


def test_a_process_whose_home_is_gone_goes_to_the_root(node: Node) -> None:
    node.tree.create("/home")
    pid = node.tree.spawn("/home")
    node.manager.add(Task.process_group("batch", "/batch", (pid,)))
    node.tree.vanish("/home")
    node.manager.remove("batch")
    assert pid in node.tree.group("/").processes()


def test_a_limit_that_somebody_else_set_is_said_and_not_overwritten(node: Node) -> None:
    node.manager.apply_burst_budget("web")
    node.group.set_bandwidth(Bandwidth(70_000))
    with pytest.raises(TierError, match="somebody else set it to 70000"):
        node.manager.apply_burst_budget("web")
    assert (node.quota, node.manager.metrics("web").burst_activations) == (70_000, 1)


def test_the_quota_of_the_last_tier_has_no_end(node: Node) -> None:
    node.manager.set_tier("web", 3)
    with pytest.raises(TierError, match="no burst to end"):
        node.manager.schedule_budget_reset("web", MILLISECOND)
    node.passes(SECOND)
    assert node.manager.reset_due() == []
    assert node.quota == 25_000
