"""Who goes where, in which order, and what is said of those that find no place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.embedded.controllers.contract import Outcome, View
from bayplan.cluster.embedded.placement import FirstFit, SchedulerController
from bayplan.cluster.embedded.store import Key
from bayplan.cluster.embedded.world import World
from bayplan.cluster.kinds import EVENT, NODE, POD, PRIORITY_CLASS
from bayplan.model.clock import SECOND, Instant
from bayplan.model.meta import condition
from bayplan.model.pods import Pod

START = Instant(1_767_225_600 * SECOND)
Doc = dict[str, Any]


class Watched(SchedulerController):
    """The scheduler, with its looks counted."""

    looks = 0

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        self.looks += 1
        return super().reconcile(key, view, now)


class Bench:
    """A world with nothing but a scheduler."""

    def __init__(self) -> None:
        self.scheduler = Watched()
        self.world = World([self.scheduler], seed=1, start=START)

    def node(self, name: str, cpu: str = "4", labels: Doc | None = None, **spec: Any) -> None:
        capacity = {"cpu": cpu, "memory": "8Gi", "pods": "10", "nvidia.com/gpu": "2"}
        doc = {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"capacity": capacity}}
        self.world.server.create(NODE, "", doc)
        self.change_node(name, taints=spec.get("taints", []))  # without the taint that new nodes get

    def change_node(self, name: str, **spec: Any) -> None:
        doc = self.world.server.get(NODE, "", name).doc()
        doc["spec"] |= spec
        self.world.server.update(NODE, "", name, doc)

    def pod(self, name: str, cpu: str = "1", gpus: int = 0, **spec: Any) -> None:
        resources: Doc = {"requests": {"cpu": cpu}}
        if gpus:
            resources["limits"] = {"nvidia.com/gpu": str(gpus)}
        spec = {"containers": [{"name": "c", "image": "i", "resources": resources}], **spec}
        self.world.server.create(POD, "default", {"metadata": {"name": name}, "spec": spec})

    def to(self, second: float) -> None:
        self.world.advance(Instant(START + round(second * SECOND)))

    def where(self) -> dict[str, str]:
        return {each.name: each.view(Pod).spec.node_name for each in self.world.store.objects(POD)}

    def finish(self, name: str) -> None:
        item = self.world.server.get(POD, "default", name)
        self.world.server.write_status(item, {**item.sections["status"].plain(), "phase": "Succeeded"})

    def events(self) -> list[tuple[str, str]]:
        docs = [each.doc() for each in self.world.store.objects(EVENT)]
        return [(each["reason"], each["message"]) for each in docs]

    def why(self, name: str) -> str:
        scheduled = condition(self.world.server.get(POD, "default", name).view(Pod).status.conditions, "PodScheduled")
        assert scheduled is not None
        assert (scheduled.status, scheduled.reason) == ("False", "Unschedulable")
        return scheduled.message


def test_pods_fill_the_nodes_by_name() -> None:
    bench = Bench()
    bench.node("b")
    bench.node("a")
    for number in range(6):
        bench.pod(f"p{number}")
    bench.to(0)
    assert bench.where() == {"p0": "a", "p1": "a", "p2": "a", "p3": "a", "p4": "b", "p5": "b"}
    assert ("Scheduled", "Successfully assigned default/p0 to a") in bench.events()


def test_the_more_important_pod_goes_first() -> None:
    bench = Bench()
    bench.world.server.create(
        PRIORITY_CLASS, "", {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}
    )
    bench.pod("early", cpu="3")
    bench.pod("late", cpu="3", priorityClassName="high")
    bench.to(1)
    bench.node("a")
    bench.to(20)
    assert bench.where() == {"early": "", "late": "a"}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        pytest.param({"nodeSelector": {"pool": "gpu"}}, "b", id="a node selector"),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["gpu"]}]}
                            ]
                        }
                    }
                }
            },
            "b",
            id="required node affinity",
        ),
        pytest.param({}, "a", id="no wish"),
        pytest.param({"nodeSelector": {"pool": "tainted"}}, "", id="a taint that is not tolerated"),
        pytest.param(
            {
                "nodeSelector": {"pool": "tainted"},
                "tolerations": [{"key": "team", "operator": "Exists", "effect": "NoSchedule"}],
            },
            "c",
            id="a taint that is tolerated",
        ),
        pytest.param({"nodeSelector": {"pool": "cordoned"}}, "", id="a cordoned node"),
        pytest.param({"schedulerName": "another"}, "", id="another scheduler's pod"),
        pytest.param({"schedulingGates": [{"name": "example.com/wait"}]}, "", id="a gated pod"),
    ],
)
def test_who_may_go_where(spec: Doc, fits: str) -> None:
    bench = Bench()
    bench.node("a")
    bench.node("b", labels={"pool": "gpu"})
    bench.node("c", labels={"pool": "tainted"}, taints=[{"key": "team", "effect": "NoSchedule"}])
    bench.node("d", labels={"pool": "cordoned"}, unschedulable=True)
    bench.pod("p", **spec)
    bench.to(1)
    assert bench.where() == {"p": fits}


def test_the_reasons_are_counted_as_kube_scheduler_words_them() -> None:
    bench = Bench()
    bench.node("a", cpu="1")
    bench.node("b")
    bench.node("c", taints=[{"key": "team", "effect": "NoSchedule"}])
    bench.node("d", unschedulable=True)
    bench.pod("first", cpu="3")
    bench.pod("big", cpu="2", gpus=1)
    bench.to(1)
    assert bench.why("big") == (
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient "
        "cpu. no new claims to deallocate, preemption: 0/4 nodes are available: 1 No preemption victims found for "
        "incoming pod, 3 Preemption is not helpful for scheduling."
    )
    assert ("FailedScheduling", bench.why("big")) in bench.events()


def test_without_nodes_it_is_said_so() -> None:
    bench = Bench()
    bench.pod("p")
    bench.to(1)
    assert bench.why("p") == "no nodes available to schedule pods"


def test_a_pod_may_be_the_one_too_many() -> None:
    bench = Bench()
    bench.node("a")
    for number in range(11):
        bench.pod(f"p{number:02}", cpu="100m", preemptionPolicy="PreemptLowerPriority")
    bench.to(1)
    assert bench.why("p10").startswith("0/1 nodes are available: 1 Too many pods. ")


@pytest.mark.parametrize("how", ["finished", "deleted", "node added", "node uncordoned"])
def test_a_waiting_pod_is_tried_again_when_something_helps(how: str) -> None:
    bench = Bench()
    bench.node("a")
    bench.node("b", unschedulable=True)
    bench.pod("first", cpu="3")
    bench.pod("second", cpu="3")
    bench.to(30)
    assert bench.where()["second"] == ""
    if how == "finished":
        bench.finish("first")
    elif how == "deleted":
        bench.world.server.delete(POD, "default", "first")
        bench.world.store.remove(POD, "default", "first")  # the kubelet's part
    elif how == "node added":
        bench.node("c")
    else:
        bench.change_node("b", unschedulable=False)
    bench.to(31)
    assert bench.where()["second"] != ""


def test_waiting_costs_nothing() -> None:
    bench = Bench()
    bench.node("a", cpu="1")
    for number in range(20):
        bench.pod(f"p{number}", cpu="3")
    bench.to(1)
    looks, revision = bench.scheduler.looks, bench.world.store.revision
    bench.to(1 + 3600)
    assert bench.scheduler.looks - looks <= 13  # one every five minutes
    assert bench.world.store.revision == revision  # and nothing new to say


def test_a_long_queue_is_worked_off_in_one_go_of_the_world() -> None:
    bench = Bench()
    for number in range(60):
        bench.node(f"n{number:02}")
    for number in range(500):
        bench.pod(f"p{number:03}", cpu="100m")
    bench.world.settle()
    assert all(bench.where().values())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["add", "finish"]), st.integers(0, 30), st.integers(1, 4)), max_size=60))
def test_nothing_is_ever_overbooked_and_no_room_is_overlooked(steps: list[tuple[str, int, int]]) -> None:
    bench = Bench()
    for name in "abc":
        bench.node(name)
    asked: dict[str, int] = {}
    for second, (what, which, cpu) in enumerate(steps):
        if what == "add":
            name = f"p{second:02}"
            asked[name] = cpu
            bench.pod(name, cpu=str(cpu))
        elif asked:
            name = sorted(asked)[which % len(asked)]
            if bench.where()[name]:
                bench.finish(name)
                del asked[name]
        bench.to(20 * (second + 1))
        where = bench.where()
        free = {node: 4 - sum(asked[name] for name in asked if where[name] == node) for node in "abc"}
        assert min(free.values()) >= 0
        waiting = [asked[name] for name in asked if not where[name]]
        assert not waiting or min(waiting) > max(free.values())


def test_a_refused_bind_holds_up_nobody_for_long() -> None:
    bench = Bench()
    bench.node("a")
    for name in ("p", "q"):
        bench.pod(name)
    spec = bench.world.server.get(POD, "default", "p").sections["spec"]
    outcome = bench.scheduler.reconcile(("", "queue"), bench.world.store, bench.world.now)
    assert len(outcome.writes) == 2  # and neither is done: as if the first had been refused
    assert not spec.plain().get("nodeName")
    bench.to(2)
    assert bench.where() == {"p": "a", "q": "a"}


def test_a_placer_counts_its_own_answer_at_once() -> None:
    bench = Bench()
    bench.node("a")
    placer = FirstFit()
    for node in bench.world.store.log(NODE).read(0, 10):
        placer.observe(node)
    bench.pod("p", cpu="3", schedulerName="another")
    bench.pod("q", cpu="3", schedulerName="another")
    p, q = bench.world.store.objects(POD)
    assert placer.place(p).node == "a"
    assert placer.place(p).node == "a"  # the same pod again is no second one
    assert placer.place(q).reasons == {"Insufficient cpu": 1}
