"""The queue in virtual time: whose turn it is, who holds back, who is woken by what."""

from __future__ import annotations

import copy

import pytest

from bayplan.model.clock import SECOND, Instant
from bayplan.scheduling.framework import Plugin, Refusal
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.queue.events import ASSIGNED_POD_DELETE, Action, ClusterEvent
from bayplan.scheduling.queue.hints import Hints, Interest, default_interests
from bayplan.scheduling.queue.queue import Lane, Pool, QueueSettings, SchedulingQueue
from bayplan.testing.nodes import node
from bayplan.testing.pods import pod
from tests.scheduling.queueing import AFFINITY, FIT, at, fail, info, names, pool_of, queue_of

ERROR: frozenset[str] = frozenset()
NODE_ADDED = ClusterEvent("Node", Action.ADD)


# --- order


def test_the_most_important_pod_comes_first_then_the_one_that_came_first() -> None:
    queue = queue_of(info("early"), info("low", -1), info("high", 10), info("late"))
    assert names(queue, at(0)) == ["high", "early", "late", "low"]


def test_a_pod_that_came_back_stands_behind_those_that_came_meanwhile() -> None:
    queue = queue_of(info("first"), settings=QueueSettings(max_backoff=0))
    fail(queue, ERROR, 1)
    queue.add(info("second"), at(0.5))
    assert names(queue, at(1)) == ["second", "first"]


def test_an_update_of_the_priority_moves_a_pod_forward() -> None:
    first, second = info("first"), info("second")
    queue = queue_of(first, second)
    queue.update(second, info("second", 5), at(1))
    assert names(queue, at(1)) == ["second", "first"]


# --- back-off


@pytest.mark.parametrize(
    ("refusals", "failed_at", "free_at"),
    [
        pytest.param(1, 0.0, 2, id="a second, and the window that it ends in is waited out"),
        pytest.param(1, 0.3, 2, id="windows begin at whole seconds, whenever the pod was refused"),
        pytest.param(2, 0.0, 3, id="the second time two seconds"),
        pytest.param(4, 0.5, 9, id="the fourth time eight"),
        pytest.param(5, 0.5, 11, id="then no more than ten"),
        pytest.param(60, 0.5, 11, id="for ever"),
    ],
)
@pytest.mark.parametrize("plugins", [FIT, ERROR], ids=["refused", "by an error"])
def test_backoff_doubles_up_to_ten_seconds(
    plugins: frozenset[str], refusals: int, failed_at: float, free_at: int
) -> None:
    queue = queue_of(info("a"))
    last = 1000 * (refusals - 1)
    fail(queue, plugins, *range(0, last, 1000), last + failed_at)
    queue.on_event(ASSIGNED_POD_DELETE, info(pod("gone").on("n")), None, at(last + failed_at))
    found = queue.why(("default", "a"), at(last + failed_at))
    assert found is not None
    assert (found.pool, found.due) == (Pool.BACKOFF, at(last + free_at))
    assert pool_of(queue, "a", Instant(at(last + free_at) - 1)) is Pool.BACKOFF
    assert pool_of(queue, "a", at(last + free_at)) is Pool.ACTIVE


def test_a_refusal_ends_the_count_of_errors_but_errors_do_not_end_that_of_refusals() -> None:
    queue = queue_of(info("a"), settings=QueueSettings(max_backoff=1000 * SECOND))
    for now, plugins in enumerate((ERROR, ERROR, FIT, ERROR)):
        popped = queue.pop(at(100 * now))
        assert popped is not None
        queue.on_event(ASSIGNED_POD_DELETE, info(pod("gone").on("n")), None, at(100 * now))
        queue.failed(popped, plugins, at(100 * now))
        waits = queue.why(popped.key, at(100 * now))
        assert waits is not None
        assert waits.due == at(100 * now + (2, 3, 2, 2)[now])
        assert waits.attempts == now + 1


def test_nobody_waits_where_there_is_no_backoff() -> None:
    queue = queue_of(info("a"), settings=QueueSettings(max_backoff=0))
    fail(queue, ERROR, 0, 0, 0)
    assert pool_of(queue, "a", at(0)) is Pool.ACTIVE


def test_an_idle_scheduler_tries_those_who_are_backing_off_by_window_then_priority() -> None:
    queue = queue_of(info("a"), info("b"), info("c", 5))
    popped = [queue.pop(at(0)) for _ in range(3)]
    queue.on_event(ASSIGNED_POD_DELETE, info(pod("gone").on("n")), None, at(0))
    for each, now in zip(popped, (2.5, 0.1, 0.2), strict=True):  # c, a, b
        assert each is not None
        queue.failed(each, FIT, at(now))
    assert queue.next_wakeup(at(0.3)) == at(0.3)
    assert names(queue, at(0.3)) == ["a", "b", "c"]


def test_an_idle_scheduler_does_not_try_those_whom_an_error_brought_there() -> None:
    queue = queue_of(info("a"))
    fail(queue, ERROR, 0)
    assert queue.pop(at(1.9)) is None
    assert queue.next_wakeup(at(1.9)) == at(2)
    assert names(queue, at(2)) == ["a"]


# --- the pool of the refused


def test_a_refused_pod_stays_until_a_change_may_help_it() -> None:
    queue = queue_of(info(pod("a").requests(cpu=8)))
    fail(queue, FIT, 0)
    small, large = node("small").view(), node("large").offers(cpu=16).view()
    queue.on_event(NODE_ADDED, None, small, at(20))
    assert pool_of(queue, "a", at(20)) is Pool.UNSCHEDULABLE
    queue.on_event(NODE_ADDED, None, large, at(21))
    assert pool_of(queue, "a", at(21)) is Pool.ACTIVE


def test_a_change_that_may_help_does_not_end_the_backoff() -> None:
    queue = queue_of(info("a"))
    fail(queue, FIT, 0)
    queue.on_event(NODE_ADDED, None, node().view(), at(1.9))
    assert pool_of(queue, "a", at(1.9)) is Pool.BACKOFF


def test_one_of_several_plugins_that_refused_it_is_enough() -> None:
    queue = queue_of(info(pod("a").selecting(disk="ssd")))
    fail(queue, AFFINITY | FIT, 0)
    queue.on_event(ASSIGNED_POD_DELETE, info(pod("gone").on("n")), None, at(20))
    assert pool_of(queue, "a", at(20)) is Pool.ACTIVE


def test_a_plugin_of_which_nothing_is_known_is_helped_by_any_change() -> None:
    queue = queue_of(info("a"))
    fail(queue, frozenset({"HouseRules"}), 0)
    queue.on_event(ClusterEvent("Node", Action.NODE_ANNOTATION), node().view(), node().view(), at(20))
    assert pool_of(queue, "a", at(20)) is Pool.ACTIVE


def test_pods_more_important_than_the_one_that_gave_up_its_room_need_not_be_told() -> None:
    queue = queue_of(info("high", 10), info("low", 1))
    fail(queue, FIT, 0, 0)
    queue.on_event(ASSIGNED_POD_DELETE, info(pod("gone").on("n")), None, at(20), at_most=1)
    assert (pool_of(queue, "high", at(20)), pool_of(queue, "low", at(20))) == (Pool.UNSCHEDULABLE, Pool.ACTIVE)


def test_what_happened_during_an_attempt_counts_when_it_fails() -> None:
    queue = queue_of(info("a"), info("b"))
    first, second = queue.pop(at(0)), queue.pop(at(0))
    assert first is not None
    assert second is not None
    queue.failed(first, FIT, at(1))
    queue.on_event(ASSIGNED_POD_DELETE, info(pod("gone").on("n")), None, at(2))
    queue.failed(second, FIT, at(3))
    assert (pool_of(queue, "a", at(3)), pool_of(queue, "b", at(3))) == (Pool.ACTIVE, Pool.BACKOFF)
    fail(queue, FIT, 4, 6)
    assert queue.pending(at(6))[Pool.UNSCHEDULABLE] == 2  # the event was before these attempts


def test_the_end_of_one_attempt_does_not_make_another_forget() -> None:
    queue = queue_of(*(info(name) for name in "abc"))
    first, second, third = (queue.pop(at(0)) for _ in range(3))
    assert first is not None
    assert second is not None
    assert third is not None
    queue.failed(first, FIT, at(0))
    queue.on_event(ASSIGNED_POD_DELETE, info(pod("gone").on("n")), None, at(1))
    queue.failed(second, AFFINITY, at(1))
    queue.failed(third, FIT, at(1))
    assert [pool_of(queue, name, at(1)) for name in "abc"] == [Pool.BACKOFF, Pool.UNSCHEDULABLE, Pool.BACKOFF]


def test_an_update_during_an_attempt_counts_when_it_fails_and_the_pod_is_the_new_one() -> None:
    before = info("a")
    after = info(pod("a").tolerates("gpu"))
    queue = queue_of(before)
    popped = queue.pop(at(0))
    assert popped is before
    queue.update(before, after, at(1))
    queue.failed(before, frozenset({"TaintToleration"}), at(2))
    assert pool_of(queue, "a", at(2)) is Pool.BACKOFF
    assert queue.pop(at(2)) is after


@pytest.mark.parametrize(
    ("start", "refused_at", "due"),
    [
        pytest.param(0, 0, 330, id="overdue is what waited longer than five minutes, so not at 300"),
        pytest.param(0, 0.001, 330, id="looked for every thirty seconds"),
        pytest.param(0, 29.999, 330, id="the last moment before a look"),
        pytest.param(7, 10, 337, id="the looks begin with the scheduler"),
    ],
)
def test_five_minutes_without_a_change_are_long_enough(start: float, refused_at: float, due: float) -> None:
    queue = queue_of(info("a"), start=start)
    fail(queue, FIT, refused_at)
    assert queue.next_wakeup(at(200)) == at(due)
    assert queue.pop(Instant(at(due) - 1)) is None
    assert queue.next_wakeup(at(due)) == at(due)
    assert names(queue, at(due)) == ["a"]


def test_nothing_is_due_where_nobody_waits() -> None:
    queue = queue_of(info(pod("a").gated("quota")))
    assert queue.next_wakeup(at(0)) is None


# --- gates


def test_a_gated_pod_stays_out_until_its_last_gate_is_gone() -> None:
    both = info(pod("a").gated("one").gated("two"))
    one, none = info(pod("a").gated("one")), info("a")
    queue = queue_of(both)
    assert queue.pop(at(0)) is None
    waits = queue.why(both.key, at(0))
    assert waits is not None
    assert (waits.pool, waits.due, waits.plugins) == (Pool.GATED, None, frozenset({"SchedulingGates"}))
    queue.update(both, one, at(1))
    assert pool_of(queue, "a", at(1000)) is Pool.GATED
    queue.update(one, none, at(1001))
    assert queue.pop(at(1001)) is none


class Closed(Plugin):
    """Keeps everybody out, while it is closed."""

    name = "Closed"
    closed = True

    def enqueue(self, pod: PodInfo) -> Refusal | None:
        return Refusal(self.name, ("closed",)) if self.closed else None


def test_a_gate_of_which_nothing_is_known_is_tried_at_any_change() -> None:
    gate = Closed()
    queue = SchedulingQueue({"default-scheduler": Lane((gate,))})
    queue.add(info("a"), at(0))
    queue.on_event(NODE_ADDED, None, node().view(), at(1))
    assert pool_of(queue, "a", at(1)) is Pool.GATED
    gate.closed = False
    queue.on_event(NODE_ADDED, None, node().view(), at(2))
    assert pool_of(queue, "a", at(2)) is Pool.ACTIVE


def test_a_gate_that_closes_after_a_refusal_opens_only_for_what_it_cares_about() -> None:
    gate = Closed()
    gate.closed = False
    hints = Hints({**default_interests(), "Closed": (Interest("ConfigMap", Action.UPDATE),)})
    queue = SchedulingQueue({"default-scheduler": Lane((gate,), hints)})
    queue.add(info("a"), at(0))
    fail(queue, FIT, 0)
    gone = info(pod("gone").on("n"))
    gate.closed = True
    queue.on_event(ASSIGNED_POD_DELETE, gone, None, at(20))
    waits = queue.why(("default", "a"), at(20))
    assert waits is not None
    assert (waits.pool, waits.plugins) == (Pool.GATED, FIT | {"Closed"})
    gate.closed = False
    queue.on_event(ASSIGNED_POD_DELETE, gone, None, at(21))
    assert pool_of(queue, "a", at(21)) is Pool.GATED
    queue.on_event(ClusterEvent("ConfigMap", Action.UPDATE), node().view(), node().view(), at(22))
    assert pool_of(queue, "a", at(22)) is Pool.ACTIVE


# --- coming and going


@pytest.mark.parametrize("pool", [Pool.ACTIVE, Pool.BACKOFF, Pool.UNSCHEDULABLE, Pool.GATED, Pool.IN_FLIGHT])
def test_a_deleted_pod_is_gone_wherever_it_was(pool: Pool) -> None:
    what = info(pod("a").gated("one") if pool is Pool.GATED else pod("a"))
    queue = queue_of(what)
    if pool is Pool.IN_FLIGHT:
        queue.pop(at(0))
    if pool in (Pool.BACKOFF, Pool.UNSCHEDULABLE):
        fail(queue, ERROR if pool is Pool.BACKOFF else FIT, 0)
    assert queue.pending(at(0))[pool] == 1
    queue.delete(what.key)
    assert not any(queue.pending(at(0)).values())
    assert queue.why(what.key, at(0)) is None
    assert queue.next_wakeup(at(0)) is None


def test_the_failure_of_a_pod_that_was_made_anew_is_no_news_of_the_new_one() -> None:
    old, new = (info(pod("a").having("metadata.uid", uid)) for uid in ("1", "2"))
    queue = queue_of(old)
    queue.pop(at(0))
    queue.update(old, new, at(1))
    queue.failed(old, FIT, at(2))
    assert queue.pop(at(2)) is new
    queue.failed(old, FIT, at(3))
    assert pool_of(queue, "a", at(3)) is Pool.IN_FLIGHT


def test_done_is_for_pods_in_flight() -> None:
    queue = queue_of(info("a"))
    queue.done(("default", "a"))
    assert pool_of(queue, "a", at(0)) is Pool.ACTIVE
    queue.pop(at(0))
    queue.done(("default", "a"))
    assert queue.why(("default", "a"), at(0)) is None


def test_an_update_of_a_pod_that_is_not_here_brings_it_here() -> None:
    queue = queue_of()
    queue.update(info("a"), info("a"), at(1))
    assert names(queue, at(1)) == ["a"]


def test_many_pods_come_and_go_in_order() -> None:
    queue = queue_of()
    base = info("a")
    for i in range(20_000):
        each = copy.copy(base)
        each.key, each.priority = ("default", str(i)), i * 7919 % 100
        queue.add(each, at(0))
    for i in range(0, 20_000, 2):
        queue.delete(("default", str(i)))
    popped = [queue.pop(at(0)) for _ in range(10_000)]
    assert queue.pop(at(0)) is None
    ranks = [(-each.priority, int(each.key[1])) for each in popped if each]
    assert ranks == sorted(ranks)
    assert len(ranks) == 10_000
