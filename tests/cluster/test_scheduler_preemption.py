"""The more important pod makes the less important one go: who, in which order, and what becomes of all of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.kinds import EVENT, POD
from bayplan.model.meta import condition
from bayplan.model.pods import Pod
from tests.cluster.scheduler_bench import Bench, Doc


def _full(*cpus: str) -> Bench:
    """One node of 4 CPUs, full of pods of priority 0: low-0, low-1 and so on."""
    bench = Bench()
    bench.priorities(some=10, high=1000, higher=2000)
    bench.priorities(polite=3000, policy="Never")
    bench.node("a")
    for number, cpu in enumerate(cpus):
        bench.pod(f"low-{number}", cpu=cpu, labels={"app": f"low-{number}"})
        bench.to(number + 1)
        bench.run()
    bench.to(10)
    return bench


def test_victims_are_marked_and_deleted_and_the_pod_waits_for_them() -> None:
    bench = _full("2", "2")
    bench.pod("p", cpu="3", priorityClassName="high")
    bench.to(11)
    assert bench.going() == ["low-0", "low-1"]
    victim, pod = bench.view("low-0"), bench.view("p")
    target = condition(victim.status.conditions, "DisruptionTarget")
    assert target is not None
    assert (target.status, target.reason, target.observed_generation, target.message) == (
        "True",
        "PreemptionByScheduler",
        1,
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    assert condition(victim.status.conditions, "PodScheduled") is not None
    assert ("Preempted", f"Preempted by pod {pod.metadata.uid} on node a") in bench.events()
    assert pod.status.nominated_node_name == "a"
    assert bench.why("p") == "0/1 nodes are available: 1 Insufficient cpu."
    bench.run()
    bench.to(20)
    assert bench.where() == {"p": "a"}
    assert bench.view("p").status.nominated_node_name == ""


def test_a_victim_is_marked_as_what_it_has_become() -> None:
    bench = _full("2")
    bench.resize("low-0", cpu="3")
    bench.pod("p", cpu="3", priorityClassName="high")
    bench.to(11)
    target = condition(bench.view("low-0").status.conditions, "DisruptionTarget")
    assert target is not None
    assert target.observed_generation == bench.view("low-0").metadata.generation - 1 == 2  # deletion is another one


def test_only_those_who_must_go_go_and_the_latest_first() -> None:
    bench = _full("1", "1", "1", "1")
    bench.pod("p", priorityClassName="high")
    bench.to(11)
    assert bench.going() == ["low-3"]


def test_what_is_said_while_victims_take_their_time() -> None:
    bench = _full("4")
    bench.pod("p", priorityClassName="high")
    bench.to(11)
    bench.change_node("a", taints=[{"key": "x", "effect": "PreferNoSchedule"}])  # it is tried again
    bench.to(20)
    assert bench.why("p") == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to a "
        "terminating pod on the nominated node."
    )
    assert bench.view("p").status.nominated_node_name == "a"
    assert bench.going() == ["low-0"]


def test_the_place_is_kept_for_the_one_who_made_it() -> None:
    bench = _full("4")
    bench.pod("p", cpu="3", priorityClassName="high")
    bench.to(11)
    bench.pod("sneaky", cpu="2")
    bench.run()
    bench.to(30)
    assert bench.where() == {"p": "a", "sneaky": ""}


@pytest.mark.parametrize(
    ("spec", "going"),
    [
        pytest.param({"priorityClassName": "polite"}, [], id="one that is too polite evicts nobody"),
        pytest.param({}, [], id="one of the same priority evicts nobody"),
        pytest.param({"priorityClassName": "high", "cpu": "5"}, [], id="one that would not even fit evicts nobody"),
        pytest.param(
            {"priorityClassName": "high", "nodeSelector": {"no": "where"}}, [], id="nor one that is elsewhere"
        ),
        pytest.param({"priorityClassName": "some"}, ["low-0"], id="a little more is enough"),
    ],
)
def test_who_may_evict(spec: Doc, going: list[str]) -> None:
    bench = _full("4")
    bench.pod("p", **spec)
    bench.to(11)
    assert bench.going() == going


def test_a_budget_is_spared_where_another_node_will_do() -> None:
    bench = Bench()
    bench.priorities(high=1000)
    bench.budget("precious", 0, app="precious")
    bench.node("a")
    bench.node("b")
    bench.pod("precious", cpu="4", labels={"app": "precious"}, nodeName="a")
    bench.pod("cheap", cpu="4", nodeName="b")
    bench.run()
    bench.pod("p", priorityClassName="high")
    bench.to(1)
    assert bench.going() == ["cheap"]
    assert bench.view("p").status.nominated_node_name == "b"


def test_a_budget_is_broken_where_nothing_else_will_do() -> None:
    bench = _full("4")
    bench.budget("precious", 0, app="low-0")
    bench.pod("p", priorityClassName="high")
    bench.to(11)
    assert bench.going() == ["low-0"]


def test_when_the_preemptor_is_killed_its_place_is_free() -> None:
    bench = _full("4")
    bench.pod("p", cpu="3", priorityClassName="high")
    bench.to(11)
    bench.pod("other", cpu="2")
    bench.run()
    bench.delete("p")
    bench.to(30)
    assert bench.where() == {"other": "a"}


def test_a_still_more_important_pod_takes_the_promised_place() -> None:
    bench = Bench()
    bench.priorities(some=10, high=1000, higher=2000)
    bench.node("a")
    bench.pod("low", cpu="4")
    bench.pod("some", cpu="4", priorityClassName="some")
    bench.to(1)
    assert bench.where() == {"low": "", "some": "a"}
    bench.run()
    bench.pod("p", cpu="2", priorityClassName="high")
    bench.to(2)
    assert bench.view("p").status.nominated_node_name == "a"
    bench.status("some", conditions=[])  # as if another had deleted it: it is no longer the scheduler's victim
    bench.pod("q", cpu="3", priorityClassName="higher")
    bench.to(3)
    bench.run()
    bench.to(30)
    assert bench.where() == {"low": "", "p": "", "q": "a"}


def test_a_nomination_is_withdrawn_from_the_less_important() -> None:
    bench = _full("2", "2")
    bench.pod("p", cpu="2", priorityClassName="high")
    bench.to(11)
    assert bench.going() == ["low-1"]
    assert bench.view("p").status.nominated_node_name == "a"
    bench.pod("q", cpu="4", priorityClassName="higher")
    bench.to(12)
    assert bench.going() == ["low-0", "low-1"]
    assert bench.view("q").status.nominated_node_name == "a"
    assert bench.view("p").status.nominated_node_name == ""


def test_events_of_a_preempted_pod_come_from_its_scheduler() -> None:
    bench = _full("4")
    bench.pod("p", priorityClassName="high")
    bench.to(11)
    (told,) = [each.doc() for each in bench.world.store.objects(EVENT) if each.doc()["reason"] == "Preempted"]
    assert (told["type"], told["source"], told["involvedObject"]["name"]) == (
        "Normal",
        {"component": "default-scheduler"},
        "low-0",
    )


_PRIORITIES = {"low": 0, "mid": 10, "high": 1000}
_STEPS = st.tuples(
    st.sampled_from(["add", "add", "finish", "kill"]), st.sampled_from([*_PRIORITIES]), st.integers(1, 4)
)


@settings(max_examples=40, deadline=None)
@given(st.lists(_STEPS, max_size=40))
def test_when_all_has_settled_no_node_holds_too_much_and_nobody_waits_for_the_less_important(
    steps: list[tuple[str, str, int]],
) -> None:
    bench = Bench()
    bench.priorities(low=0, mid=10, high=1000)
    for name in "ab":
        bench.node(name)
    for number, (what, priority, cpu) in enumerate(steps):
        names = sorted(bench.where())
        if what == "add":
            bench.pod(f"p{number:02}", cpu=str(cpu), priorityClassName=priority)
        elif names and what == "kill":
            bench.delete(names[cpu % len(names)])
        elif names and bench.where()[names[cpu % len(names)]]:
            bench.finish(names[cpu % len(names)])
        bench.to(number)
        if number % 3 == 0:
            bench.run()
    for second in range(40, 160, 10):
        bench.to(second)
        bench.run()
    bench.to(600)
    pods = [each.view(Pod) for each in bench.world.store.objects(POD)]
    pods = [pod for pod in pods if not pod.is_terminal]
    asked = {pod.metadata.name: int(pod.spec.containers[0].resources.requests["cpu"]) for pod in pods}
    for node in "ab":
        here = [pod for pod in pods if pod.spec.node_name == node]
        assert sum(asked[pod.metadata.name] for pod in here) <= 4
        for waiting in (pod for pod in pods if not pod.spec.node_name):
            staying = sum(asked[pod.metadata.name] for pod in here if pod.spec.priority >= waiting.spec.priority)
            assert staying + asked[waiting.metadata.name] > 4
    assert bench.going() == []
