"""Those who wait: whom a change wakes, when they are tried again, and what waiting costs."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.kinds import REPLICA_SET
from bayplan.model.affinity import TopologySpreadConstraint
from bayplan.scheduling.arguments import PodTopologySpreadArgs
from bayplan.scheduling.configuration import SchedulerConfiguration
from bayplan.scheduling.profiles import default_profile
from tests.cluster.scheduler_bench import Bench


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
        bench.delete("first")
        bench.run()
    elif how == "node added":
        bench.node("c")
    else:
        bench.change_node("b", unschedulable=False)
    bench.world.settle()
    assert bench.where()["second"] != ""


def test_a_change_wakes_only_those_whom_it_may_help() -> None:
    bench = Bench()
    bench.node("a")
    bench.pod("large", cpu="6", gpus=1)
    bench.pod("elsewhere", nodeSelector={"pool": "gpu"})
    bench.to(20)
    said = bench.why("large")
    bench.pod("taker", gpus=2)
    bench.world.settle()
    bench.label_node("a", pool="gpu")
    bench.to(40)
    assert bench.where() == {"large": "", "elsewhere": "a", "taker": "a"}
    assert bench.why("large") == said  # it was not tried: now GPUs are lacking, too


def test_of_those_that_wait_in_vain_nobody_holds_up_the_next() -> None:
    bench = Bench()
    bench.priorities(high=1000)
    bench.node("a", labels={"pool": "small"})
    for number in range(300):
        bench.pod(f"large-{number:03}", cpu="6", priorityClassName="high")
    bench.to(1)
    bench.pod("small", nodeSelector={"pool": "small"})
    bench.node("b", cpu="6")
    bench.to(2)
    where = bench.where()
    assert where["small"] == "a"
    assert [name for name, node in where.items() if node == "b"] == ["large-000"]


def test_a_pod_that_no_node_could_even_refuse_is_tried_after_a_growing_back_off() -> None:
    bench = Bench()
    bench.pod("p")
    bench.to(1)
    looks = bench.scheduler.looks
    bench.to(1 + 60)  # after 1, 2, 4, 8 and then every 10 seconds, each rounded up to the next second
    assert 6 <= bench.scheduler.looks - looks <= 9


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


def test_what_kubelets_tell_of_their_pods_is_no_reason_to_look() -> None:
    bench = Bench()
    bench.node("a")
    for number in range(4):
        bench.pod(f"p{number}")
    bench.pod("waits")
    bench.to(1)
    looks = bench.scheduler.looks
    for phase in ("Running", "Pending", "Running"):
        for number in range(4):
            bench.status(f"p{number}", phase=phase)
    bench.to(2)
    assert bench.scheduler.looks == looks


def test_a_long_queue_is_worked_off_in_one_go_of_the_world() -> None:
    bench = Bench()
    for number in range(60):
        bench.node(f"n{number:02}")
    for number in range(500):
        bench.pod(f"p{number:03}", cpu="100m")
    bench.world.settle()
    assert all(bench.where().values())


def test_a_refusal_does_not_hold_for_the_pods_of_another_controller() -> None:
    hard = {"topologyKey": "disk", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spread = PodTopologySpreadArgs((msgspec.convert(hard, TopologySpreadConstraint),), "List")
    bench = Bench(SchedulerConfiguration((default_profile(arguments={"PodTopologySpread": spread}),)))
    bench.node("a", labels={"disk": "fast"})
    bench.node("b", labels={"disk": "slow"}, unschedulable=True)
    for name, app in (("web", "web"), ("stray", "other")):
        template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"app": app}}, "template": template}
        bench.world.server.create(REPLICA_SET, "default", {"metadata": {"name": name}, "spec": spec})
    for name, owner in (("first", "web"), ("second", "web"), ("third", "stray")):
        bench.pod(name, labels={"app": "web"}, owner=owner)
    bench.to(1)
    assert bench.where() == {"first": "a", "second": "", "third": "a"}


def test_a_refused_bind_is_undone_and_tried_again() -> None:
    bench = Bench()
    bench.node("a")
    bench.pod("p", cpu="3")
    bench.pod("q", cpu="3")
    (bind,) = bench.scheduler.reconcile(("", "queue"), bench.world.store, bench.world.now).writes
    assert getattr(bind, "node", "") == "a"  # and it is not done: as if it had been refused
    bench.to(0)
    assert bench.where() == {"p": "", "q": "a"}
    bench.finish("q")
    bench.to(5)
    assert bench.where() == {"p": "a", "q": "a"}


def test_a_pod_whose_bind_was_refused_still_waits_where_it_was_promised_a_place() -> None:
    bench = Bench()
    bench.priorities(high=1000)
    bench.node("a")
    bench.pod("low", cpu="3")
    bench.to(1)
    bench.pod("p", cpu="3", priorityClassName="high")
    bench.to(2)
    bench.run()
    (bind,) = bench.scheduler.reconcile(("", "queue"), bench.world.store, bench.world.now).writes
    assert getattr(bind, "node", "") == "a"  # as above
    bench.pod("q", cpu="3")
    bench.to(2)
    assert bench.where() == {"p": "", "q": ""}
    bench.to(10)
    assert bench.where() == {"p": "a", "q": ""}


def test_what_a_kubelet_still_gives_counts_even_if_it_is_told_in_the_same_breath() -> None:
    bench = Bench()
    bench.node("a")
    bench.pod("p", cpu="3")
    bench.to(1)
    bench.run()
    bench.resize("p", cpu="1")
    bench.status("p", containerStatuses=[{"name": "c", "resources": {"requests": {"cpu": "3"}}}])
    bench.pod("q", cpu="3")
    bench.to(10)
    assert bench.where() == {"p": "a", "q": ""}
    bench.status("p", containerStatuses=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}])
    bench.to(20)
    assert bench.where() == {"p": "a", "q": "a"}


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
