"""Who goes where, in which order, and what is said of those that find no place."""

from __future__ import annotations

import pytest

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


def test_pods_alike_are_told_the_same_and_others_their_own() -> None:
    bench = Bench()
    bench.priorities(polite=10, policy="Never")
    bench.node("a", labels={"kubernetes.io/hostname": "a"})
    bench.pod("there", labels={"app": "web"}, nodeName="a")
    away = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    lonely = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [away]}}
    bench.pod("one", cpu="6")
    bench.pod("two", cpu="6")
    bench.pod("polite", cpu="6", priorityClassName="polite")
    bench.pod("with-gpu", cpu="6", gpus=4)
    bench.pod("lonely", affinity=lonely)
    bench.to(1)
    whys = {name: bench.why(name).split(". ")[0] for name in ("one", "two", "polite", "with-gpu", "lonely")}
    lacks = "0/1 nodes are available: 1 Insufficient cpu"
    assert whys == {
        "one": lacks,
        "two": lacks,
        "polite": lacks,
        "with-gpu": f"{lacks}, 1 Insufficient nvidia.com/gpu",
        "lonely": "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules",
    }
    assert bench.why("one") == bench.why("two") != bench.why("polite")
    bench.finish("there")
    bench.to(20)
    assert [name for name, node in bench.where().items() if node] == ["lonely", "there"]


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
