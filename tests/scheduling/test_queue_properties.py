"""Whatever happens to it, the queue loses nobody, keeps the order, and wakes those whom a plain search would wake."""

from __future__ import annotations

import itertools
from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bayplan.model.clock import SECOND, Instant
from bayplan.model.nodes import Node
from bayplan.scheduling.plugins.scheduling_gates import SchedulingGates
from bayplan.scheduling.pods import PodInfo, PodKey
from bayplan.scheduling.queue.events import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, Action, ClusterEvent
from bayplan.scheduling.queue.heap import LazyHeap
from bayplan.scheduling.queue.hints import Hints, ask, default_interests
from bayplan.scheduling.queue.queue import Lane, Pool, SchedulingQueue, Waiting
from bayplan.testing.nodes import node
from bayplan.testing.pods import PodManifest, pod

Happening = tuple[ClusterEvent, PodInfo | Node | None, PodInfo | Node | None]

HINTS = Hints(default_interests())
SHAPES = (
    pod().requests(cpu=1),
    pod().requests(cpu=8),
    pod().selecting(zone="a"),
    pod().spread("zone", app="web"),
    pod().apart_from(within="zone", app="web"),
    pod().tolerates("t"),
)
BOUND = PodInfo(pod("bound").on("n").pod_labelled(app="web").requests(cpu=1).view())
NODE, ZONED, TAINTED, LARGE = (
    each.view() for each in (node(), node().labelled(zone="a"), node().tainted("t"), node().offers(cpu=16))
)
EVENTS: tuple[Happening, ...] = (
    (ASSIGNED_POD_ADD, None, BOUND),
    (ASSIGNED_POD_DELETE, BOUND, None),
    (ClusterEvent("Node", Action.ADD), None, NODE),
    (ClusterEvent("Node", Action.ADD), None, LARGE),
    (ClusterEvent("Node", Action.NODE_LABEL), NODE, ZONED),
    (ClusterEvent("Node", Action.NODE_TAINT), TAINTED, NODE),
    (ClusterEvent("Node", Action.NODE_ALLOCATABLE), NODE, LARGE),
    (ClusterEvent("Node", Action.NODE_CONDITION), NODE, NODE),
)
PLUGINS = ("NodeResourcesFit", "NodeAffinity", "PodTopologySpread", "InterPodAffinity", "TaintToleration", "HouseRules")
ALL = tuple(f"pod-{i}" for i in range(5))
NAMES = st.sampled_from(ALL)
NUMBERS = st.integers(0, len(ALL) - 1)
REFUSALS = st.frozensets(st.sampled_from(PLUGINS), max_size=2)


class Seen(msgspec.Struct):
    """What the plain list knows of a pod."""

    pod: PodInfo
    since: Instant
    order: int
    refusals: int = 0
    errors: int = 0
    free_at: int = 0
    happened: list[Happening] | None = None
    """Since it was popped; None while it is not in flight."""

    @property
    def rank(self) -> tuple[int, int, int]:
        return -self.pod.priority, self.since, self.order


def plainly_helped(pod: PodInfo, plugins: frozenset[str], event: Happening) -> bool:
    return any(ask(HINTS.judge(plugin, *event), pod) for plugin in plugins)


class QueueMachine(RuleBasedStateMachine):
    """A queue beside a plain list of who is in it."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = SchedulingQueue({"default-scheduler": Lane((SchedulingGates(),))})
        self.now = Instant(0)
        self.orders = itertools.count()
        self.seen: dict[PodKey, Seen] = {}

    def why(self, key: PodKey) -> Waiting:
        found = self.queue.why(key, self.now)
        assert found is not None, f"{key} is lost"
        return found

    def within(self, *pools: Pool) -> dict[PodKey, Waiting]:
        every = {key: self.why(key) for key in self.seen}
        return {key: waiting for key, waiting in every.items() if waiting.pool in pools}

    @initialize(shapes=st.lists(st.sampled_from(SHAPES), min_size=len(ALL), max_size=len(ALL)))
    def begin(self, shapes: list[PodManifest]) -> None:
        for name, shape in zip(ALL, shapes, strict=True):
            self.add(name, shape, priority=0, gated=False)

    @rule(name=NAMES, shape=st.sampled_from(SHAPES), priority=st.integers(0, 2), gated=st.booleans())
    def add(self, name: str, shape: PodManifest, priority: int, gated: bool) -> None:
        manifest = shape.having("metadata.name", name).pod_having("priority", priority)
        pod = PodInfo((manifest.gated("g") if gated else manifest).view())
        if pod.key not in self.seen:
            self.queue.add(pod, self.now)
            self.seen[pod.key] = Seen(pod, self.now, next(self.orders))
            assert self.why(pod.key).pool is (Pool.GATED if gated else Pool.ACTIVE)

    @rule(name=NAMES)
    def open_gates(self, name: str) -> None:
        seen = self.seen.get(("default", name))
        if seen is not None and seen.pod.pod.spec.scheduling_gates:
            spec = msgspec.structs.replace(seen.pod.pod.spec, scheduling_gates=())
            pod = PodInfo(msgspec.structs.replace(seen.pod.pod, spec=spec))
            self.queue.update(seen.pod, pod, self.now)
            seen.pod = pod
            assert self.why(pod.key).pool is Pool.ACTIVE

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.queue.delete(("default", name))
        self.seen.pop(("default", name), None)
        assert self.queue.why(("default", name), self.now) is None

    @rule(seconds=st.sampled_from((0.3, 1, 4, 31, 400)))
    def wait(self, seconds: float) -> None:
        self.now = Instant(self.now + round(seconds * SECOND))

    @rule()
    def pop(self) -> None:
        active = self.within(Pool.ACTIVE)
        backing_off = {key: each for key, each in self.within(Pool.BACKOFF).items() if each.plugins}
        popped = self.queue.pop(self.now)
        if active:
            expected = min(active, key=lambda key: self.seen[key].rank)
            assert self.seen[expected].free_at <= self.now
        elif backing_off:
            expected = min(backing_off, key=lambda key: (backing_off[key].due, self.seen[key].rank))
        else:
            assert popped is None
            return
        assert popped is self.seen[expected].pod
        assert not popped.pod.spec.scheduling_gates
        self.seen[expected].happened = []

    def in_flight(self, number: int) -> Seen | None:
        flying = [each for each in self.seen.values() if each.happened is not None]
        return flying[number % len(flying)] if flying else None

    @rule(number=NUMBERS, plugins=REFUSALS)
    def fail(self, number: int, plugins: frozenset[str]) -> None:
        seen = self.in_flight(number)
        if seen is None or seen.happened is None:
            return
        seen.refusals, seen.errors = (seen.refusals + 1, 0) if plugins else (seen.refusals, seen.errors + 1)
        span = min(2 ** ((seen.errors or seen.refusals) - 1), 10)
        seen.since, seen.order = self.now, next(self.orders)
        seen.free_at = (self.now // SECOND + span + 1) * SECOND
        self.queue.failed(seen.pod, plugins, self.now)
        again = not plugins or any(plainly_helped(seen.pod, plugins, each) for each in seen.happened)
        seen.happened = None
        waiting = self.why(seen.pod.key)
        assert waiting.pool is (Pool.BACKOFF if again else Pool.UNSCHEDULABLE)
        assert not again or waiting.due == seen.free_at

    @rule(number=NUMBERS)
    def done(self, number: int) -> None:
        seen = self.in_flight(number)
        if seen is not None:
            self.queue.done(seen.pod.key)
            del self.seen[seen.pod.key]

    @rule(event=st.sampled_from(EVENTS))
    def change(self, event: Happening) -> None:
        before = self.within(Pool.UNSCHEDULABLE)
        elsewhere = self.within(Pool.ACTIVE, Pool.BACKOFF, Pool.GATED, Pool.IN_FLIGHT)
        helped = {key for key, each in before.items() if plainly_helped(self.seen[key].pod, each.plugins, event)}
        self.queue.on_event(*event, self.now)
        for key in before:
            wanted = Pool.BACKOFF if self.seen[key].free_at > self.now else Pool.ACTIVE
            assert self.why(key).pool is (wanted if key in helped else Pool.UNSCHEDULABLE)
        assert {key: self.why(key) for key in elsewhere} == elsewhere
        for seen in self.seen.values():
            if seen.happened is not None:
                seen.happened.append(event)

    @invariant()
    def everybody_is_in_one_pool(self) -> None:
        pools = Counter(self.why(key).pool for key in self.seen)
        assert {pool: number for pool, number in self.queue.pending(self.now).items() if number} == pools

    @invariant()
    def who_is_in_flight_is_known(self) -> None:
        assert {*self.within(Pool.IN_FLIGHT)} == {key for key, each in self.seen.items() if each.happened is not None}

    @invariant()
    def the_next_wakeup_is_exact(self) -> None:
        waiting = [self.why(key) for key in self.seen]
        if any(each.pool is Pool.ACTIVE or (each.pool is Pool.BACKOFF and each.plugins) for each in waiting):
            assert self.queue.next_wakeup(self.now) == self.now
        else:
            due = min((each.due for each in waiting if each.due is not None), default=None)
            assert self.queue.next_wakeup(self.now) == due
            assert due is None or due > self.now


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)


@given(
    st.lists(st.tuples(st.sampled_from(SHAPES), st.frozensets(st.sampled_from(PLUGINS), min_size=1)), max_size=30),
    st.sampled_from(EVENTS),
)
def test_an_event_wakes_those_whom_a_plain_search_would_wake(
    refused: list[tuple[PodManifest, frozenset[str]]], event: Happening
) -> None:
    queue = SchedulingQueue({"default-scheduler": Lane()})
    pods = [PodInfo(shape.having("metadata.name", f"pod-{i}").view()) for i, (shape, _) in enumerate(refused)]
    for each, (_, plugins) in zip(pods, refused, strict=True):
        queue.add(each, Instant(0))
        assert queue.pop(Instant(0)) is each
        queue.failed(each, plugins, Instant(0))
    later = Instant(100 * SECOND)
    queue.on_event(*event, later)
    helped = {
        each.key for each, (_, plugins) in zip(pods, refused, strict=True) if plainly_helped(each, plugins, event)
    }
    woken = set()
    while (popped := queue.pop(later)) is not None:
        woken.add(popped.key)
    assert woken == helped


@given(st.lists(st.tuples(st.sampled_from(("push", "discard", "pop")), st.integers(0, 9), st.integers(0, 5))))
def test_a_lazy_heap_is_a_sorted_list(steps: list[tuple[str, int, int]]) -> None:
    heap: LazyHeap[int, str] = LazyHeap()
    plain: dict[int, tuple[int, int]] = {}
    for number, (step, key, rank) in enumerate(steps * 20):  # often enough for stale items to be cleared away
        if step == "push":
            heap.push(key, (rank,), str(key))
            plain[key] = (rank, number)
        elif step == "discard":
            heap.discard(key)
            plain.pop(key, None)
        else:
            first = min(plain, key=lambda each: plain[each], default=None)
            assert heap.peek() == heap.pop() == (None if first is None else str(first))
            if first is not None:
                del plain[first]
        assert len(heap) == len(plain)
