"""Who goes where, in which order, and what is said of those that find no place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.embedded.scheduler_file import parse_configuration
from bayplan.cluster.kinds import (
    EVENT,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SERVICE,
)
from tests.cluster.scheduler_bench import Bench, Doc

_CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def test_pods_are_spread_over_equal_nodes() -> None:
    bench = Bench()
    bench.node("b")
    bench.node("a")
    for number in range(4):
        bench.pod(f"p{number}")
    bench.to(0)
    assert bench.where() == {"p0": "b", "p1": "a", "p2": "b", "p3": "a"}
    assert ("Scheduled", "Successfully assigned default/p0 to b") in bench.events()


def test_the_more_important_pod_goes_first() -> None:
    bench = Bench()
    bench.priorities(high=1000)
    bench.node("a", unschedulable=True)
    bench.pod("early", cpu="3")
    bench.pod("late", cpu="3", priorityClassName="high")
    bench.to(1)
    bench.change_node("a", unschedulable=False)
    bench.to(20)
    assert bench.where() == {"early": "", "late": "a"}


def _affine(key: str, value: str) -> Doc:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        pytest.param({"nodeSelector": {"pool": "gpu"}}, "b", id="a node selector"),
        pytest.param({"affinity": _affine("pool", "gpu")}, "b", id="required node affinity"),
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


def test_pods_that_are_not_its_own_are_left_untouched() -> None:
    bench = Bench()
    bench.pod("p", schedulerName="another")
    bench.to(600)
    assert bench.view("p").status.conditions == ()
    assert bench.events() == []


def test_a_pod_goes_as_soon_as_its_last_gate_is_open() -> None:
    bench = Bench()
    bench.node("a")
    bench.pod("p", schedulingGates=[{"name": "example.com/one"}, {"name": "example.com/two"}])
    bench.to(1)
    bench.patch("p", spec={"schedulingGates": [{"name": "example.com/two"}]})
    bench.to(2)
    assert bench.where() == {"p": ""}
    bench.patch("p", spec={"schedulingGates": []})
    bench.world.settle()
    assert bench.where() == {"p": "a"}


def test_each_pod_goes_by_the_profile_that_it_names() -> None:
    configuration = parse_configuration(
        "scheduler.yaml",
        """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles:
          - schedulerName: default-scheduler
          - schedulerName: packing
            pluginConfig:
              - name: NodeResourcesFit
                args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
            plugins: {score: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
        """,
    )
    bench = Bench(configuration)
    for name in "ab":
        bench.node(name)
    bench.pod("first")
    for name in ("packed-1", "packed-2"):
        bench.pod(name, schedulerName="packing")
    bench.pod("spread")
    bench.pod("lost", schedulerName="unknown")
    bench.to(1)
    assert bench.where() == {"first": "a", "packed-1": "a", "packed-2": "a", "spread": "b", "lost": ""}
    said = {each.doc()["source"]["component"] for each in bench.world.store.objects(EVENT)}
    assert said == {"default-scheduler", "packing"}


# --- words


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


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param(
            {"priorityClassName": "polite"},
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to "
            "preemptionPolicy=Never.",
            id="one that evicts nobody",
        ),
        pytest.param(
            {"volumes": [_CLAIM]},
            '0/1 nodes are available: persistentvolumeclaim "data" not found. not found',
            id="one whose claim is missing, as upstream leaves it",
        ),
    ],
)
def test_what_is_said_of_a_pod(spec: Doc, words: str) -> None:
    bench = Bench()
    bench.priorities(polite=10, policy="Never")
    bench.node("a", cpu="1")
    bench.pod("p", cpu="2", **spec)
    bench.to(1)
    assert bench.why("p") == words


def test_without_nodes_it_is_said_so() -> None:
    bench = Bench()
    bench.pod("p")
    bench.to(1)
    assert bench.why("p") == "no nodes available to schedule pods"
    bench.node("a")
    bench.to(60)
    assert bench.where() == {"p": "a"}


def test_a_pod_may_be_the_one_too_many() -> None:
    bench = Bench()
    bench.node("a")
    for number in range(11):
        bench.pod(f"p{number:02}", cpu="100m")
    bench.to(1)
    assert bench.why("p10").startswith("0/1 nodes are available: 1 Too many pods. ")


def test_an_event_says_no_more_than_it_may() -> None:
    bench = Bench()
    bench.node("a")
    for number in range(80):
        bench.world.server.create(NODE, "", {"metadata": {"name": f"n{number}"}})
    extended = {f"example.com/a-rather-long-name-{number}": "1" for number in range(40)}
    resources = {"requests": extended, "limits": extended}
    bench.pod("p", containers=[{"name": "c", "image": "i", "resources": resources}])
    bench.to(1)
    (said,) = [message for reason, message in bench.events() if reason == "FailedScheduling"]
    assert len(said) == 1024
    assert said == f"{bench.why('p')[:1020]} ..."


def test_a_pod_that_goes_before_it_came_is_skipped() -> None:
    bench = Bench()
    bench.pod("p", finalizers=["example.com/hold"])
    bench.delete("p")
    bench.node("a")
    bench.to(60)
    assert bench.where() == {"p": ""}
    assert bench.events() == [("FailedScheduling", "skip schedule deleting pod: default/p")]


# --- waiting


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


# --- what else is around


def test_what_a_service_selects_is_spread_over_zones() -> None:
    bench = Bench()
    bench.world.server.create(
        SERVICE, "default", {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    )
    for name in ("a-1", "a-2", "b-1"):
        bench.node(name, labels={"topology.kubernetes.io/zone": name[0], "kubernetes.io/hostname": name})
    for number in range(2):
        bench.pod(f"p{number}", cpu="10m", labels={"app": "web"})
        bench.to(number + 1)
    assert {node[0] for node in bench.where().values()} == {"a", "b"}


def test_affinity_reads_the_labels_of_namespaces() -> None:
    bench = Bench()
    bench.world.server.create(NAMESPACE, "", {"metadata": {"name": "other", "labels": {"team": "vision"}}})
    for name in "ab":
        bench.node(name, labels={"kubernetes.io/hostname": name})
    bench.pod("bound", nodeName="b")
    bench.world.server.create(
        POD,
        "other",
        {
            "metadata": {"name": "friend", "labels": {"app": "db"}},
            "spec": {"nodeName": "b", "containers": [{"name": "c", "image": "i"}]},
        },
    )
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "db"}},
        "namespaceSelector": {"matchLabels": {"team": "vision"}},
    }
    bench.pod("p", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    bench.to(1)
    assert bench.where()["p"] == "b"


def test_a_pod_waits_for_its_claim_to_be_bound() -> None:
    bench = Bench()
    bench.node("a")
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    claim = {"metadata": {"name": "data"}, "spec": wanted}
    bench.world.server.create(PERSISTENT_VOLUME_CLAIM, "default", claim)
    bench.pod("p", volumes=[_CLAIM])
    bench.to(1)
    assert bench.why("p").startswith("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    bench.world.server.create(PERSISTENT_VOLUME, "", {"metadata": {"name": "v"}, "spec": volume})
    doc = bench.world.server.get(PERSISTENT_VOLUME_CLAIM, "default", "data").doc()
    doc["spec"]["volumeName"] = "v"
    doc["metadata"].setdefault("annotations", {})["pv.kubernetes.io/bind-completed"] = "yes"
    bench.world.server.update(PERSISTENT_VOLUME_CLAIM, "default", "data", doc)
    bench.to(20)
    assert bench.where() == {"p": "a"}


def test_a_pod_that_is_resized_gives_back_what_it_no_longer_takes() -> None:
    bench = Bench()
    bench.node("a")
    bench.pod("p", cpu="3")
    bench.to(1)
    bench.run()
    bench.pod("q", cpu="2")
    bench.to(2)
    assert bench.where()["q"] == ""
    smaller = b'{"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}'
    strategic = "application/strategic-merge-patch+json"
    bench.world.server.patch(POD, "default", "p", strategic, smaller, subresource="resize")
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
