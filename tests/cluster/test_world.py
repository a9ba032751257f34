"""The world: whom a change concerns, in which order, when next, and what a refused write leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Create,
    Delete,
    Emit,
    Outcome,
    Patch,
    SetStatus,
    View,
    Write,
    itself,
    owner_of,
)
from bayplan.cluster.embedded.requests import WriteOptions
from bayplan.cluster.embedded.store import Change, Key
from bayplan.cluster.embedded.world import World
from bayplan.cluster.kinds import CONFIG_MAP, DEPLOYMENT, EVENT, NODE, POD, SECRET, Kind
from bayplan.cluster.objects import Object, Section
from bayplan.model.clock import MILLISECOND, SECOND, Instant
from bayplan.model.meta import ObjectMeta, OwnerReference

START = Instant(1_767_225_600 * SECOND)
Look = Callable[[Key, View, Instant], Outcome]


def does_nothing(_key: Key, _view: View, _now: Instant) -> Outcome:
    return NOTHING


class Scripted:
    """A controller that does as told and remembers when it was asked about what."""

    def __init__(self, look: Look = does_nothing, kind: Kind = CONFIG_MAP, name: str = "scripted") -> None:
        self.name = name
        self.watches: Mapping[Kind, Concern] = {kind: itself}
        self._look = look
        self.looks: list[tuple[str, int]] = []

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        self.looks.append((key[1], now - START))
        return self._look(key, view, now)


def world(*controllers: Scripted) -> World:
    made = World(controllers, seed=0, start=START)
    made.settle()
    for controller in controllers:
        controller.looks.clear()
    return made


def put(made: World, name: str, **data: str) -> Object:
    return made.server.create(CONFIG_MAP, "default", {"metadata": {"name": name}, "data": data}).object


def secret(name: str) -> Create:
    return Create(SECRET, ObjectMeta(name=name, namespace="default"), {"type": Section(b'"Opaque"')})


def due(made: World) -> Instant | None:
    return made.next_timer


def names(looks: Iterable[tuple[str, int]]) -> list[str]:
    return [name for name, _ in looks]


def test_what_was_marked_first_is_looked_at_first_and_once() -> None:
    controller = Scripted()
    made = world(controller)
    for name in ("b", "a", "b", "c", "a"):
        if made.store.get(CONFIG_MAP, "default", name) is None:
            put(made, name)
        else:
            made.server.update(CONFIG_MAP, "default", name, {"metadata": {"name": name}, "data": {"again": "1"}})
    assert made.busy
    assert made.settle() == 3
    assert names(controller.looks) == ["b", "a", "c"]
    assert not made.busy


def test_looks_can_be_rationed() -> None:
    controller = Scripted()
    made = world(controller)
    for name in "abcde":
        put(made, name)
    assert [made.settle(2), made.settle(2), made.settle(2), made.settle(2)] == [2, 2, 1, 0]
    assert names(controller.looks) == [*"abcde"]
    assert made.reconciles >= 5


def test_what_is_written_marks_others_in_turn() -> None:
    made = world(
        maker := Scripted(lambda key, view, _: NOTHING if view.get(SECRET, *key) else Outcome([secret(key[1])])),
        keeper := Scripted(kind=SECRET),
    )
    put(made, "a")
    put(made, "b")
    made.settle()
    assert (names(maker.looks), names(keeper.looks)) == (["a", "b"], ["a", "b"])
    assert [item.name for item in made.store.objects(SECRET, "default")] == ["a", "b"]


def test_a_timer_fires_at_its_instant_and_once() -> None:
    controller = Scripted(
        lambda _key, _view, now: Outcome(again=Instant(START + 10 * SECOND)) if now == START else NOTHING
    )
    made = world(controller)
    put(made, "a")
    made.advance(Instant(START + 9 * SECOND))
    assert controller.looks == [("a", 0)]
    assert due(made) == START + 10 * SECOND
    made.advance(Instant(START + 3600 * SECOND))
    assert controller.looks == [("a", 0), ("a", 10 * SECOND)]
    assert due(made) is None
    assert made.now == START + 3600 * SECOND


def test_everything_that_falls_due_happens_in_order_at_its_own_time() -> None:
    spans = {"a": 7, "b": 3, "c": 5}
    controller = Scripted(lambda key, _view, now: Outcome(again=Instant(now + spans[key[1]] * SECOND)))
    made = world(controller)
    for name in spans:
        put(made, name)
    made.advance(Instant(START + 10 * SECOND))
    assert controller.looks[3:] == [
        (name, at * SECOND) for name, at in [("b", 3), ("c", 5), ("b", 6), ("a", 7), ("b", 9), ("c", 10)]
    ]


def test_of_two_wishes_of_one_object_the_later_said_counts() -> None:
    wishes = iter([20, 5, 30])
    controller = Scripted(
        lambda _key, _view, now: Outcome(again=Instant(START + next(wishes) * SECOND)) if now == START else NOTHING
    )
    made = world(controller)
    for turn in "123":
        if turn == "1":
            put(made, "a")
        else:
            made.server.update(CONFIG_MAP, "default", "a", {"metadata": {"name": "a"}, "data": {"turn": turn}})
        made.settle()
    assert due(made) == START + 30 * SECOND
    made.advance(Instant(START + 60 * SECOND))
    assert controller.looks == [("a", 0)] * 3 + [("a", 30 * SECOND)]


def test_one_large_step_and_many_small_ones_are_the_same_history() -> None:
    def history(step: float) -> list[tuple[str, int]]:
        controller = Scripted(lambda key, _view, now: Outcome(again=Instant(now + int(key[1]) * SECOND)))
        made = world(controller)
        for name in ("3", "5", "7"):
            put(made, name)
        at = 0.0
        while at < 60:
            at += step
            made.advance(Instant(START + round(at * SECOND)))
        return controller.looks

    assert history(60) == history(1) == history(0.5)


def test_catching_up_marks_what_is_due_and_leaves_the_work() -> None:
    controller = Scripted(lambda _key, _view, now: Outcome(again=Instant(START + SECOND)) if now == START else NOTHING)
    made = world(controller)
    put(made, "a")
    made.settle()
    made.catch_up(Instant(START + 5 * SECOND))
    assert made.busy
    assert made.settle() == 1
    assert controller.looks[-1] == ("a", 5 * SECOND)
    made.catch_up(START)
    assert made.now == START + 5 * SECOND


def test_a_refused_write_is_tried_again_ever_later() -> None:
    controller = Scripted(lambda _key, _view, _now: Outcome([secret("Bad Name")]))
    made = world(controller)
    put(made, "a")
    made.advance(Instant(START + 200 * MILLISECOND))
    at = [now // MILLISECOND for _, now in controller.looks]
    assert at == [0, 5, 15, 35, 75, 155]
    made.advance(Instant(START + 7 * 24 * 3600 * SECOND))
    gaps = [later - sooner for (_, sooner), (_, later) in zip(controller.looks, controller.looks[1:], strict=False)]
    assert max(gaps) == gaps[-1] == 1000 * SECOND


def test_success_makes_up_for_earlier_refusals() -> None:
    allowed = False

    def look(_key: Key, _view: View, _now: Instant) -> Outcome:
        return NOTHING if allowed else Outcome([secret("Bad Name")])

    controller = Scripted(look)
    made = world(controller)
    put(made, "a")
    made.advance(Instant(START + 100 * MILLISECOND))
    allowed = True
    made.advance(Instant(START + SECOND))
    allowed = False
    controller.looks.clear()
    made.server.update(CONFIG_MAP, "default", "a", {"metadata": {"name": "a"}, "data": {"x": "1"}})
    made.advance(Instant(START + SECOND + 5 * MILLISECOND))
    assert [now - SECOND for _, now in controller.looks] == [0, 5 * MILLISECOND]


def test_what_comes_after_a_refused_write_is_not_done() -> None:
    def look(key: Key, _view: View, now: Instant) -> Outcome:
        return Outcome([secret(f"{key[1]}-1"), secret("Bad Name"), secret(f"{key[1]}-2")]) if now == START else NOTHING

    made = world(Scripted(look))
    put(made, "a")
    made.advance(Instant(START + SECOND))
    assert [item.name for item in made.store.objects(SECRET, "default")] == ["a-1"]


def test_a_refusal_is_told_in_an_event_where_the_controller_wished_so() -> None:
    def look(key: Key, view: View, now: Instant) -> Outcome:
        about = view.get(CONFIG_MAP, *key)
        if about is None or now != START:
            return NOTHING
        refused = Emit(about, "Warning", "FailedCreate", "Error creating: {error}", "tester")
        made = Emit(about, "Normal", "SuccessfulCreate", "Created {name}", "tester")
        meta = ObjectMeta(name="good", namespace="default")
        good = Create(SECRET, meta, {}, then=made)
        return Outcome([good, Create(SECRET, ObjectMeta(name="{braces}", namespace="default"), {}, refused=refused)])

    made = world(Scripted(look))
    put(made, "a")
    made.settle()
    told = {item.doc()["reason"]: item.doc() for item in made.store.objects(EVENT, "default")}
    assert told["SuccessfulCreate"]["message"] == "Created good"
    assert told["FailedCreate"]["message"].startswith('Error creating: Secret "{braces}" is invalid: metadata.name')
    assert told["FailedCreate"]["involvedObject"]["name"] == "a"


def test_deleting_what_is_gone_or_made_anew_is_no_refusal() -> None:
    stale: list[Object] = []

    def look(_key: Key, _view: View, _now: Instant) -> Outcome:
        return Outcome([Delete(item) for item in stale])

    controller = Scripted(look)
    made = world(controller)
    gone = made.server.create(SECRET, "default", {"metadata": {"name": "gone"}}).object
    anew = made.server.create(SECRET, "default", {"metadata": {"name": "anew"}}).object
    for item in (gone, anew):
        made.server.delete(SECRET, "default", item.name)
    kept = made.server.create(SECRET, "default", {"metadata": {"name": "anew"}}).object
    stale += [gone, anew]
    put(made, "a")
    made.advance(Instant(START + SECOND))
    assert len(controller.looks) == 1
    assert made.store.get(SECRET, "default", "anew") is kept


def run_writes(made: World, *writes: Write) -> None:
    done: list[Write] = [*writes]
    made._controllers = [Scripted(lambda _key, _view, _now: Outcome([done.pop(0)] if done else []))]
    for _ in writes:
        put(made, f"trigger-{made.store.revision}")
    made.settle()


def test_metadata_of_an_applied_object_can_be_written() -> None:
    made = world(Scripted())
    body = {"metadata": {"name": "a", "labels": {"keep": "1"}}, "data": {"k": "v"}}
    item = made.server.create(CONFIG_MAP, "default", body, WriteOptions(field_manager="kubectl")).object
    run_writes(made, Patch(item, {"metadata": {"labels": {"new": "2"}, "finalizers": ["example.com/hold"]}}))
    after = made.server.get(CONFIG_MAP, "default", "a")
    assert (after.meta.labels, after.meta.finalizers) == ({"keep": "1", "new": "2"}, ("example.com/hold",))
    assert after.meta.managed_fields == item.meta.managed_fields
    assert after.sections == item.sections


def test_a_status_that_says_the_same_is_no_write() -> None:
    made = world(Scripted())
    node = made.server.create(NODE, "", {"metadata": {"name": "n"}}).object
    status = {"phase": "Running"}
    run_writes(made, SetStatus(node, status))
    written = made.server.get(NODE, "", "n")
    assert written.doc()["status"] == status
    run_writes(made, SetStatus(node, status))
    assert made.server.get(NODE, "", "n") is written


@pytest.mark.parametrize(
    ("reference", "concerned"),
    [
        pytest.param(OwnerReference("apps/v1", "Deployment", "web", "u", True), ["web"], id="its controlling owner"),
        pytest.param(OwnerReference("apps/v1", "Deployment", "web", "u"), [], id="an owner that does not control it"),
        pytest.param(OwnerReference("batch/v1", "Job", "web", "u", True), [], id="an owner of another kind"),
    ],
)
def test_a_dependent_concerns(reference: OwnerReference, concerned: list[str]) -> None:
    made = world()
    meta = ObjectMeta(name="p", namespace="default", owner_references=(reference,))
    changes: list[Change] = []
    made.store.listeners.append(changes.append)
    made.store.put(POD, meta, {"spec": Section(b"{}")})
    assert [name for _, name in owner_of(DEPLOYMENT)(changes[0], made.store)] == concerned


def whole_cluster(seed: int, step: float) -> list[bytes]:
    """Everything that a small but complete cluster holds after five minutes."""
    made = embedded_cluster(seed=seed).world
    labels = {"app": "web"}
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    for name in ("n1", "n2"):
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "20"}
        made.server.create(
            NODE, "", {"metadata": {"name": name}, "status": {"capacity": capacity, "allocatable": capacity}}
        )
    spec = {"replicas": 5, "selector": {"matchLabels": labels}, "template": template}
    made.server.create(DEPLOYMENT, "default", {"metadata": {"name": "web"}, "spec": spec})
    at = 0.0
    while at < 300:
        at += step
        made.advance(Instant(START + round(at * SECOND)))
    return [item.raw() for kind in sorted(made.store.kinds(), key=str) for item in made.store.objects(kind)]


def test_the_same_seed_gives_the_same_bytes_at_any_speed() -> None:
    first = whole_cluster(7, 300)
    assert len(first) > 20
    assert whole_cluster(7, 300) == first
    assert whole_cluster(7, 20) == first
    assert whole_cluster(8, 300) != first
