"""Plugins that look at what a node is (cordons, names, taints, labels, ports, features), or only at the pod."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.model.affinity import NodeAffinity as Affinity
from bayplan.scheduling.arguments import NodeAffinityArgs
from bayplan.scheduling.framework import NodeFilter, Plugin, Refusal
from bayplan.scheduling.plugins.dynamic_resources import DynamicResources
from bayplan.scheduling.plugins.node_affinity import NodeAffinity
from bayplan.scheduling.plugins.node_declared_features import NodeDeclaredFeatures
from bayplan.scheduling.plugins.node_name import NodeName
from bayplan.scheduling.plugins.node_ports import NodePorts
from bayplan.scheduling.plugins.node_unschedulable import NodeUnschedulable
from bayplan.scheduling.plugins.scheduling_gates import SchedulingGates
from bayplan.scheduling.plugins.taint_toleration import TaintToleration
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.state import ClusterState
from bayplan.testing import node, pod
from bayplan.testing.nodes import NodeManifest
from bayplan.testing.pods import PodManifest

FITS = None
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def reasons(plugin: Plugin, manifest: PodManifest, *cluster: NodeManifest | PodManifest) -> tuple[str, ...] | None:
    """Why the first node will not do; None if it will."""
    state = ClusterState(each.view() for each in cluster)
    found = plugin.filter(PodInfo(manifest.view()), state)
    refusal = found.check(state.nodes[0]) if isinstance(found, NodeFilter) else found
    assert refusal is None or refusal.plugin == plugin.name
    return None if refusal is None else refusal.reasons


def points(plugin: Plugin, manifest: PodManifest, *cluster: NodeManifest) -> list[int] | None:
    """What the nodes get; None if the plugin has nothing to say."""
    state = ClusterState(each.view() for each in cluster)
    found = plugin.score(PodInfo(manifest.view()), state, state.nodes)
    return None if found is None else found.normalise(state.nodes, [found.score(each) for each in state.nodes])


# --- cordons and names

CORDONED = ("node(s) were unschedulable",)
CORDON = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("asker", "there", "expected"),
    [
        pytest.param(pod(), node(), FITS, id="an open node takes everybody"),
        pytest.param(pod(), node().cordoned(), CORDONED, id="a cordoned node takes nobody"),
        pytest.param(pod().tolerates(CORDON), node().cordoned(), FITS, id="a pod may tolerate a cordon"),
        pytest.param(pod().tolerates(), node().cordoned(), FITS, id="who tolerates everything tolerates a cordon"),
        pytest.param(
            pod().tolerates(CORDON, effect="NoExecute"), node().cordoned(), CORDONED, id="the effect must be right"
        ),
        pytest.param(pod().tolerates(CORDON, "x"), node().cordoned(), CORDONED, id="a cordon has no value"),
    ],
)
def test_cordons(asker: PodManifest, there: NodeManifest, expected: tuple[str, ...] | None) -> None:
    assert reasons(NodeUnschedulable(), asker, there) == expected


def test_a_pod_that_names_its_node_goes_there_or_nowhere() -> None:
    assert reasons(NodeName(), pod(), node("a")) is FITS
    assert reasons(NodeName(), pod().on("a"), node("a")) is FITS
    assert reasons(NodeName(), pod().on("b"), node("a")) == ("node(s) didn't match the requested node name",)


# --- taints

REPELLED = ("node(s) had untolerated taint(s)",)


@pytest.mark.parametrize(
    ("asker", "there", "expected"),
    [
        pytest.param(pod(), node().tainted("gpu"), REPELLED, id="NoSchedule repels"),
        pytest.param(pod(), node().tainted("gpu", effect="NoExecute"), REPELLED, id="so does NoExecute"),
        pytest.param(pod(), node().tainted("gpu", effect="PreferNoSchedule"), FITS, id="PreferNoSchedule does not"),
        pytest.param(
            pod().tolerates("gpu"),
            node().tainted("gpu", "a").tainted("gpu", "b", effect="NoExecute"),
            FITS,
            id="a pod that tolerates every effect of the key goes anywhere",
        ),
        pytest.param(
            pod().tolerates("gpu", "a"), node().tainted("gpu", "b"), REPELLED, id="another value does not help"
        ),
        pytest.param(
            pod().tolerates("gpu"), node().tainted("gpu").tainted("disk"), REPELLED, id="one taint is enough to repel"
        ),
    ],
)
def test_taints(asker: PodManifest, there: NodeManifest, expected: tuple[str, ...] | None) -> None:
    assert reasons(TaintToleration(), asker, there) == expected


def test_the_fewer_soft_taints_a_node_has_the_better() -> None:
    soft = {"effect": "PreferNoSchedule"}
    one = node("b").tainted("x", **soft)
    three = node("c").tainted("x", **soft).tainted("y", **soft).tainted("z", **soft).tainted("hard")
    assert points(TaintToleration(), pod(), node("a"), one, three) == [100, 67, 0]
    assert points(TaintToleration(), pod().tolerates("x"), node("a"), one, three) == [100, 100, 0]
    assert points(TaintToleration(), pod(), node("a"), node("b")) == [100, 100]


# --- labels

MISMATCH = ("node(s) didn't match Pod's node affinity/selector",)


def term(*expressions: tuple[str, str, list[str]], fields: list[tuple[str, str, list[str]]] | None = None) -> Any:
    def plain(given: Any) -> list[dict[str, Any]]:
        return [{"key": key, "operator": operator, "values": values} for key, operator, values in given]

    return {"matchExpressions": plain(expressions), "matchFields": plain(fields or [])}


def requiring(*terms: Any) -> PodManifest:
    return pod().pod_having(f"affinity.nodeAffinity.{REQUIRED}", {"nodeSelectorTerms": [*terms]})


SSD = node("a").labelled(disk="ssd", size="7")


@pytest.mark.parametrize(
    ("asker", "expected"),
    [
        pytest.param(pod(), FITS, id="a pod without demands"),
        pytest.param(pod().selecting(disk="ssd"), FITS, id="a selector that matches"),
        pytest.param(pod().selecting(disk="hdd"), MISMATCH, id="a selector that does not"),
        pytest.param(requiring(term(("disk", "In", ["ssd"]))), FITS, id="a term that matches"),
        pytest.param(
            requiring(term(("disk", "In", ["hdd"])), term(("size", "Gt", ["5"]))), FITS, id="one of several terms"
        ),
        pytest.param(
            requiring(term(("disk", "In", ["ssd"]), ("size", "Gt", ["9"]))), MISMATCH, id="half a term is not enough"
        ),
        pytest.param(
            requiring(term(("disk", "Exists", []))).selecting(disk="hdd"), MISMATCH, id="selector and affinity"
        ),
        pytest.param(requiring(term()), MISMATCH, id="an empty term matches nothing"),
        pytest.param(
            requiring(term(("size", "Gt", ["many"]))), MISMATCH, id="a term that makes no sense matches nothing"
        ),
        pytest.param(requiring(term(fields=[("metadata.name", "NotIn", ["a"])])), MISMATCH, id="a name left out"),
    ],
)
def test_labels(asker: PodManifest, expected: tuple[str, ...] | None) -> None:
    assert reasons(NodeAffinity(), asker, SSD) == expected


def named(*values: str) -> tuple[str, str, list[str]]:
    return ("metadata.name", "In", [*values])


@pytest.mark.parametrize(
    ("asker", "only"),
    [
        pytest.param(requiring(term(fields=[named("a")]), term(fields=[named("b")])), {"a", "b"}, id="each term names"),
        pytest.param(requiring(term(fields=[named("a")]), term(("disk", "Exists", []))), None, id="one does not"),
        pytest.param(requiring(term(("disk", "Exists", []), fields=[named("a")])), {"a"}, id="names and labels"),
        pytest.param(
            requiring(term(fields=[named("a"), named("b")]), term(fields=[named("c")])),
            {"c"},
            id="one contradicts itself",
        ),
        pytest.param(pod().selecting(disk="ssd"), None, id="no affinity"),
    ],
)
def test_which_nodes_are_asked_at_all(asker: PodManifest, only: set[str] | None) -> None:
    found = NodeAffinity().filter(PodInfo(asker.view()), ClusterState())
    assert isinstance(found, NodeFilter)
    assert found.only == only


def preferring(*wishes: tuple[int, Any]) -> PodManifest:
    terms = [{"weight": weight, "preference": preference} for weight, preference in wishes]
    return pod().pod_having(f"affinity.nodeAffinity.{PREFERRED}", terms)


def test_wishes_add_up_and_the_most_is_a_hundred() -> None:
    asker = preferring((20, term(("disk", "In", ["ssd"]))), (10, term(("size", "Gt", ["5"]))), (99, term()))
    assert points(NodeAffinity(), asker, SSD, node("b").labelled(disk="ssd"), node("c")) == [100, 66, 0]
    assert points(NodeAffinity(), asker, node("c")) == [0]
    assert points(NodeAffinity(), pod(), SSD) is None


def test_a_profile_may_add_an_affinity_for_everybody() -> None:
    added = {
        REQUIRED: {"nodeSelectorTerms": [term(("disk", "Exists", []))]},
        PREFERRED: [{"weight": 5, "preference": term(("size", "Exists", []))}],
    }
    plugin = NodeAffinity(NodeAffinityArgs(msgspec.convert(added, Affinity)))
    assert reasons(plugin, pod(), SSD) is FITS
    assert reasons(plugin, pod(), node()) == ("node(s) didn't match scheduler-enforced node affinity",)
    assert reasons(plugin, pod().selecting(disk="hdd"), SSD) == MISMATCH
    assert points(plugin, pod(), SSD, node("b")) == [100, 0]


# --- ports

TAKEN = ("node(s) didn't have free ports for the requested pod ports",)


def listening(name: str, port: int, ip: str = "", protocol: str = "TCP") -> PodManifest:
    made = pod(name).document()["spec"]["containers"]
    made[0]["ports"] = [{"containerPort": 80, "hostPort": port, "hostIP": ip, "protocol": protocol}]
    return pod(name).pod_having("containers", made)


@pytest.mark.parametrize(
    ("asker", "expected"),
    [
        pytest.param(pod("p"), FITS, id="a pod without host ports"),
        pytest.param(listening("p", 8080), TAKEN, id="the same port"),
        pytest.param(listening("p", 8081), FITS, id="another port"),
        pytest.param(listening("p", 8080, protocol="UDP"), FITS, id="another protocol"),
        pytest.param(listening("p", 8080, "10.0.0.1"), TAKEN, id="the same address"),
        pytest.param(listening("p", 8080, "10.0.0.2"), FITS, id="another address"),
        pytest.param(listening("p", 8080, "0.0.0.0"), TAKEN, id="every address"),
        pytest.param(listening("p", 9090, "10.0.0.2"), TAKEN, id="an address where the other has every address"),
    ],
)
def test_ports(asker: PodManifest, expected: tuple[str, ...] | None) -> None:
    there = listening("q", 8080, "10.0.0.1").on("a"), listening("r", 9090).on("a")
    assert reasons(NodePorts(), asker, node("a"), *there) == expected


# --- features, gates, claims


@pytest.mark.parametrize(
    ("asker", "feature"),
    [
        pytest.param(
            pod().container("x", restartPolicyRules=[{"action": "RestartAllContainers"}]),
            "RestartAllContainersOnContainerExits",
            id="a container whose end restarts all",
        ),
        pytest.param(
            pod().pod_having("hostNetwork", True).pod_having("hostUsers", False),
            "UserNamespacesHostNetworkSupport",
            id="the host's network, but not its users",
        ),
    ],
)
def test_features(asker: PodManifest, feature: str) -> None:
    declaring = node().having("status.declaredFeatures", ["Other", feature])
    assert reasons(NodeDeclaredFeatures(), pod(), node()) is FITS
    assert reasons(NodeDeclaredFeatures(), asker, declaring) is FITS
    assert reasons(NodeDeclaredFeatures(), asker, node()) == ("node(s) didn't match Pod's required features",)


def test_gates_hold_a_pod_back() -> None:
    assert SchedulingGates().enqueue(PodInfo(pod().view())) is None
    held = SchedulingGates().enqueue(PodInfo(pod().gated("a").gated("b").view()))
    assert held == Refusal("SchedulingGates", ("waiting for scheduling gates: [a b]",), hopeless=True)


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        pytest.param({"resourceClaimName": "c"}, 'could not find ResourceClaim "default/c"', id="by name"),
        pytest.param(
            {"resourceClaimTemplateName": "t"}, 'pod "default/pod": ResourceClaim not created yet', id="by template"
        ),
        pytest.param(
            {}, 'pod "default/pod", spec.resourceClaim "gpu": none of the supported fields are set', id="by neither"
        ),
    ],
)
def test_a_pod_waits_for_its_claims(claim: dict[str, str], told: str) -> None:
    asker = PodInfo(pod().pod_having("resourceClaims", [{"name": "gpu", **claim}]).view())
    refusal = Refusal("DynamicResources", (told,), hopeless=True)
    assert DynamicResources().enqueue(asker) == refusal
    assert DynamicResources().filter(asker, ClusterState()) == refusal


def test_to_pods_without_claims_all_nodes_are_equal() -> None:
    assert DynamicResources().enqueue(PodInfo(pod().view())) is None
    assert points(DynamicResources(), pod(), node("a"), node("b")) == [0, 0]
