"""Hints: for each plugin, which changes may help a pod that it refused."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.model.meta import ObjectMeta
from bayplan.model.nodes import Node
from bayplan.model.policies import PersistentVolume, PersistentVolumeClaim
from bayplan.model.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    StorageClass,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeNodeResources,
)
from bayplan.node.annotations.equipment import MACHINE
from bayplan.node.annotations.holdings import HOLDINGS
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.queue.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    Action,
    ClusterEvent,
    object_events,
    pod_events,
)
from bayplan.scheduling.queue.hints import Hints, ask, default_interests
from bayplan.testing.nodes import NodeManifest, node
from bayplan.testing.pods import PodManifest, pod

HINTS = Hints(default_interests())
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
WAITING = pod("waiting")
NAMED = WAITING.pod_having("volumes", [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
EPHEMERAL = WAITING.pod_having("volumes", [{"name": "v", "ephemeral": {}}])
DISK = [{"name": "v", "gcePersistentDisk": {"pdName": "disk"}}]
SPREAD = WAITING.spread("zone", app="web")
NEAR = WAITING.pod_having(
    "affinity.podAffinity", {REQUIRED: [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}]}
)
AWAY = WAITING.apart_from(within="zone", app="db")


def info(what: PodManifest) -> PodInfo:
    return PodInfo(what.view())


def helped(plugin: str, waiting: PodManifest, old: Any, new: Any) -> bool:
    """Whether a plugin that refused a pod says that a change may help it, as the queue would ask."""
    if isinstance(old, PodManifest) or isinstance(new, PodManifest):
        before, after = info(old) if old else None, info(new) if new else None
        if before and after:
            events = pod_events(before, after)
        else:
            events = (ASSIGNED_POD_ADD if before is None else ASSIGNED_POD_DELETE,)
        return any(ask(HINTS.judge(plugin, event, before, after), info(waiting)) for event in events)
    before_, after_ = (each.view() if isinstance(each, NodeManifest) else each for each in (old, new))
    return any(ask(HINTS.judge(plugin, e, before_, after_), info(waiting)) for e in object_events(before_, after_))


def port(number: int, ip: str = "", protocol: str = "TCP") -> PodManifest:
    ports = [{"containerPort": 1, "hostPort": number, "protocol": protocol, "hostIP": ip}]
    return pod("other").container("server", ports=ports)


def claim(name: str, namespace: str = "default") -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace=namespace))


def drivers(count: int | None, name: str = "d") -> CSINode:
    return CSINode(spec=CSINodeSpec(drivers=(CSINodeDriver(name, VolumeNodeResources(count)),)))


def case(sentence: str, *values: object) -> Any:
    return pytest.param(*values, id=sentence)


YES, NO = True, False
BOUND = pod("other").on("n")
WEB, DB = BOUND.pod_labelled(app="web"), BOUND.pod_labelled(app="db")
ZONED = node().labelled(zone="a")


@pytest.mark.parametrize(
    ("plugin", "waiting", "old", "new", "expected"),
    [
        # one node at a time
        case("a new node may bear the name", "NodeName", WAITING, None, node(), YES),
        case("labels do not change a name", "NodeName", WAITING, node(), ZONED, NO),
        case("taints wake those that wait for new nodes", "NodeName", WAITING, node(), node().tainted("t"), YES),
        case("a new node takes pods", "NodeUnschedulable", WAITING, None, node(), YES),
        case("a new node that is cordoned does not", "NodeUnschedulable", WAITING, None, node().cordoned(), NO),
        case("a cordon ends", "NodeUnschedulable", WAITING, node().cordoned(), node(), YES),
        case("other taints are not its matter", "NodeUnschedulable", WAITING, node(), node().tainted("t"), NO),
        case(
            "the pod tolerates cordons now",
            "NodeUnschedulable", WAITING, WAITING, WAITING.tolerates("node.kubernetes.io/unschedulable"), YES,
        ),
        case("it tolerates something else", "NodeUnschedulable", WAITING, WAITING, WAITING.tolerates("gpu"), NO),
        case("a new node without taints", "TaintToleration", WAITING, None, node(), YES),
        case("a new node with one", "TaintToleration", WAITING, None, node().tainted("t"), NO),
        case("a tolerated one", "TaintToleration", WAITING.tolerates("t"), None, node().tainted("t"), YES),
        case("the taint is gone", "TaintToleration", WAITING, node().tainted("t"), node(), YES),
        case(
            "of two taints one is gone",
            "TaintToleration", WAITING, node().tainted("t").tainted("u"), node().tainted("u"), NO,
        ),
        case(
            "it was tolerated before",
            "TaintToleration", WAITING.tolerates("t"), node().tainted("t"), node(), NO,
        ),
        case("the pod tolerates more", "TaintToleration", WAITING, WAITING, WAITING.tolerates("t"), YES),
        case("another pod does", "TaintToleration", WAITING, BOUND, BOUND.tolerates("t"), NO),
        case("a new node with the label", "NodeAffinity", WAITING.selecting(zone="a"), None, ZONED, YES),
        case("a new node without it", "NodeAffinity", WAITING.selecting(zone="b"), None, ZONED, NO),
        case("the label came", "NodeAffinity", WAITING.selecting(zone="a"), node(), ZONED, YES),
        case("another came", "NodeAffinity", WAITING.selecting(zone="a"), ZONED, ZONED.labelled(x="y"), NO),
        case("a selector that makes no sense is let try", "NodeAffinity", WAITING.pod_having(
            "affinity.nodeAffinity",
            {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Near"}]}]}},
        ), None, node(), YES),
        case("the port is free", "NodePorts", port(80), port(80).on("n"), None, YES),
        case("another port is", "NodePorts", port(80), port(81).on("n"), None, NO),
        case("the same port of another protocol", "NodePorts", port(80), port(80, "", "UDP").on("n"), None, NO),
        case("of another address", "NodePorts", port(80, "10.0.0.1"), port(80, "10.0.0.2").on("n"), None, NO),
        case("of all addresses", "NodePorts", port(80, "10.0.0.1"), port(80).on("n"), None, YES),
        case("of a pod that was nowhere", "NodePorts", port(80), port(80), None, NO),
        case("a new node has all ports", "NodePorts", port(80), None, node(), YES),
        case("features declared", "NodeDeclaredFeatures", WAITING,
             node(), node().having("status.declaredFeatures", ["f"]), YES),
        case("features as they were", "NodeDeclaredFeatures", WAITING, node(), ZONED, NO),
        case("the pod needs nothing else", "NodeDeclaredFeatures", WAITING, WAITING, WAITING.pod_labelled(a="b"), NO),
        # resources
        case("a pod went", "NodeResourcesFit", WAITING, BOUND, None, YES),
        case("one that was nowhere", "NodeResourcesFit", WAITING, pod("other"), None, NO),
        case("one takes less of what the pod wants", "NodeResourcesFit", WAITING.requests(cpu=1),
             BOUND.requests(cpu=2), BOUND.requests(cpu=1), YES),
        case("of what it does not want", "NodeResourcesFit", WAITING.requests(cpu=1),
             BOUND.requests(memory="2Gi"), BOUND.requests(memory="1Gi"), NO),
        case("one that waits takes less", "NodeResourcesFit", WAITING.requests(cpu=1),
             pod("other").requests(cpu=2), pod("other").requests(cpu=1), NO),
        case("the pod itself takes less", "NodeResourcesFit", WAITING,
             WAITING.requests(cpu=2), WAITING.requests(cpu=1), YES),
        case("a new node has room", "NodeResourcesFit", WAITING.requests(cpu=4), None, node(), YES),
        case("a new node is too small", "NodeResourcesFit", WAITING.requests(cpu=5), None, node(), NO),
        case("a new node takes no pods", "NodeResourcesFit", WAITING, None, node().offers({"pods": "0"}), NO),
        case("a node has more of it", "NodeResourcesFit", WAITING.requests(gpu=1), node(), node().offers(gpu=2), YES),
        case("more, and not enough", "NodeResourcesFit", WAITING.requests(gpu=4), node(), node().offers(gpu=2), NO),
        case("more of something else", "NodeResourcesFit", WAITING.requests(cpu=1), node(), node().offers(gpu=2), NO),
        case("room for more pods", "NodeResourcesFit", WAITING, node(), node().offers({"pods": "200"}), YES),
        case("less of it", "NodeResourcesFit", WAITING.requests(cpu=1), node(), node().offers(cpu=2), NO),
        # what kubelets would refuse
        case("a pod gave its CPUs back", "NodeTopology", WAITING, BOUND, None, YES),
        case("one that was nowhere went", "NodeTopology", WAITING, pod("other"), None, NO),
        case("a pod says what it holds", "NodeTopology", WAITING, BOUND, BOUND.annotated({HOLDINGS: "{}"}), YES),
        case("it says something else", "NodeTopology", WAITING, BOUND, BOUND.annotated(note="x"), NO),
        case("the pod itself changed", "NodeTopology", WAITING, WAITING, WAITING.pod_labelled(a="b"), YES),
        case("a new node", "NodeTopology", WAITING, None, node(), YES),
        case("another machine", "NodeTopology", WAITING, node(), node().annotated({MACHINE: "vm-8"}), YES),
        case("another annotation", "NodeTopology", WAITING, node(), node().annotated(note="x"), NO),
        # topology spread
        case("one that counts came", "PodTopologySpread", SPREAD, None, WEB, YES),
        case("one that does not count came", "PodTopologySpread", SPREAD, None, DB, NO),
        case("one that counts went", "PodTopologySpread", SPREAD, WEB, None, YES),
        case("one counts no more", "PodTopologySpread", SPREAD, WEB, DB, YES),
        case("one still counts", "PodTopologySpread", SPREAD, WEB, WEB.pod_labelled(x="y"), NO),
        case("one of another namespace came", "PodTopologySpread", SPREAD, None,
             pod("other", "elsewhere").on("n").pod_labelled(app="web"), NO),
        case("one that is nowhere went", "PodTopologySpread", SPREAD,
             pod("other").pod_labelled(app="web"), None, NO),
        case("the pod's own labels count now", "PodTopologySpread", SPREAD, SPREAD,
             SPREAD.pod_labelled(app="web"), YES),
        case("it tolerates more, and taints do not count", "PodTopologySpread", SPREAD, SPREAD,
             SPREAD.tolerates("t"), NO),
        case("it tolerates more, and they do", "PodTopologySpread",
             WAITING.pod_having("topologySpreadConstraints", [
                 {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "Honor"}]),
             SPREAD, SPREAD.tolerates("t"), YES),
        case("a node with the key came", "PodTopologySpread", SPREAD, None, ZONED, YES),
        case("a node without it came", "PodTopologySpread", SPREAD, None, node(), NO),
        case("a node with the key went", "PodTopologySpread", SPREAD, ZONED, None, YES),
        case("a node moved", "PodTopologySpread", SPREAD, ZONED, node().labelled(zone="b"), YES),
        case("a node lost the key", "PodTopologySpread", SPREAD, ZONED, node(), YES),
        case("another label changed", "PodTopologySpread", SPREAD, ZONED, ZONED.labelled(x="y"), NO),
        case("taints changed", "PodTopologySpread", SPREAD, ZONED, ZONED.tainted("t"), YES),
        case("taints changed elsewhere", "PodTopologySpread", SPREAD, node(), node().tainted("t"), NO),
        case("the profile's constraints: any change", "PodTopologySpread", WAITING, None, node(), YES),
        # affinity
        case("a friend came", "InterPodAffinity", NEAR, None, DB, YES),
        case("a stranger came", "InterPodAffinity", NEAR, None, WEB, NO),
        case("a stranger became a friend", "InterPodAffinity", NEAR, WEB, DB, YES),
        case("a friend went", "InterPodAffinity", NEAR, DB, None, NO),
        case("an enemy went", "InterPodAffinity", AWAY, DB, None, YES),
        case("an enemy became a stranger", "InterPodAffinity", AWAY, DB, WEB, YES),
        case("an enemy came", "InterPodAffinity", AWAY, None, DB, NO),
        case("one went that would not have it", "InterPodAffinity", WAITING.pod_labelled(app="db"),
             AWAY.on("n"), None, YES),
        case("an enemy that was nowhere went", "InterPodAffinity", AWAY,
             pod("other").pod_labelled(app="db"), None, NO),
        case("the pod's own labels changed", "InterPodAffinity", AWAY, AWAY, AWAY.pod_labelled(x="y"), YES),
        case("a node of the topology came: near", "InterPodAffinity", NEAR, None, ZONED, YES),
        case("a node outside came: near", "InterPodAffinity", NEAR, None, node(), NO),
        case("a node outside came: away", "InterPodAffinity", AWAY, None, node(), YES),
        case("a node joined: near", "InterPodAffinity", NEAR, node(), ZONED, YES),
        case("a node joined: away", "InterPodAffinity", AWAY, node(), ZONED, NO),
        case("a node left: near", "InterPodAffinity", NEAR, ZONED, node(), NO),
        case("a node left: away", "InterPodAffinity", AWAY, ZONED, node(), YES),
        case("a node moved: near", "InterPodAffinity", NEAR, ZONED, node().labelled(zone="b"), YES),
        case("a node moved: away", "InterPodAffinity", AWAY, ZONED, node().labelled(zone="b"), YES),
        # volumes
        case("the claim came", "VolumeBinding", NAMED, None, claim("data"), YES),
        case("one of another name", "VolumeBinding", NAMED, None, claim("other"), NO),
        case("of another namespace", "VolumeBinding", NAMED, None, claim("data", "elsewhere"), NO),
        case("the claim made for the pod", "VolumeBinding", EPHEMERAL, None, claim("waiting-v"), YES),
        case("which is none of VolumeZone's", "VolumeZone", EPHEMERAL, None, claim("waiting-v"), NO),
        case("a class came", "VolumeBinding", NAMED, None, StorageClass(), YES),
        case("a class changed", "VolumeBinding", NAMED, StorageClass(), StorageClass(provisioner="p"), NO),
        case("to be had elsewhere", "VolumeBinding", NAMED, StorageClass(),
             StorageClass(allowed_topologies=(TopologySelectorTerm(),)), YES),
        case("a class that binds at once", "VolumeZone", NAMED, None, StorageClass(), NO),
        case("a class that waits", "VolumeZone", NAMED, None,
             StorageClass(volume_binding_mode="WaitForFirstConsumer"), YES),
        case("a volume came", "VolumeZone", NAMED, None, PersistentVolume(), YES),
        case("a volume changed", "VolumeZone", NAMED, PersistentVolume(), PersistentVolume(), NO),
        case("a volume is elsewhere", "VolumeZone", NAMED, PersistentVolume(),
             PersistentVolume(metadata=ObjectMeta(labels={"topology.kubernetes.io/zone": "a"})), YES),
        case("a driver came to a node", "VolumeBinding", NAMED, None, drivers(1), YES),
        case("a driver's limit is not its matter", "VolumeBinding", NAMED, drivers(1), drivers(2), NO),
        case("a driver's limit rose", "NodeVolumeLimits", NAMED, drivers(1), drivers(2), YES),
        case("a driver's limit fell", "NodeVolumeLimits", NAMED, drivers(2), drivers(1), NO),
        case("a driver's capacity counts no more", "VolumeBinding", NAMED,
             CSIDriver(spec=CSIDriverSpec(storage_capacity=True)), CSIDriver(), YES),
        case("there is more space", "VolumeBinding", NAMED,
             CSIStorageCapacity(capacity="1Gi"), CSIStorageCapacity(capacity="2Gi"), YES),
        case("there is less", "VolumeBinding", NAMED,
             CSIStorageCapacity(capacity="1Gi"), CSIStorageCapacity(capacity="1G"), NO),
        case("an attachment went", "NodeVolumeLimits", NAMED, VolumeAttachment(), None, YES),
        case("a pod without claims has none", "NodeVolumeLimits", WAITING, VolumeAttachment(), None, NO),
        case("a pod with claims went", "NodeVolumeLimits", NAMED, NAMED.on("n"), None, YES),
        case("a pod without went", "NodeVolumeLimits", NAMED, BOUND, None, NO),
        case("the other user of the claim went", "VolumeRestrictions", NAMED, NAMED.on("n"), None, YES),
        case("a pod without volumes went", "VolumeRestrictions", NAMED, BOUND, None, NO),
        case("a pod with a disk went", "VolumeRestrictions", WAITING.pod_having("volumes", DISK),
             BOUND.pod_having("volumes", DISK), None, YES),
        # the rest
        case("the gates are gone", "SchedulingGates", WAITING, WAITING.gated("g"), WAITING, YES),
        case("those of another pod", "SchedulingGates", WAITING, pod("other").gated("g"), pod("other"), NO),
        case("no plugin: anything may help", "HouseRules", WAITING, node(), ZONED, YES),
    ],
)  # fmt: skip
def test_hint(plugin: str, waiting: PodManifest, old: Any, new: Any, expected: bool) -> None:
    assert helped(plugin, waiting, old, new) == expected


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        case("a heartbeat is nothing", node(), node().having("status.conditions", []), []),
        case("a condition", node(), node().condition("Ready"), [Action.NODE_CONDITION]),
        case("labels and taints", node(), ZONED.tainted("t"), [Action.NODE_LABEL, Action.NODE_TAINT]),
        case("the end of a cordon", node().cordoned(), node(), [Action.NODE_TAINT]),
        case("its beginning", node(), node().cordoned(), []),
        case("an annotation", node(), node().annotated(a="b"), [Action.NODE_ANNOTATION]),
    ],
)
def test_a_node_update_is_split(old: NodeManifest, new: NodeManifest, actions: list[Action]) -> None:
    before: Node = old.view()
    assert object_events(before, new.view()) == tuple(ClusterEvent("Node", each) for each in actions)


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        case("nothing that is asked for", WAITING, WAITING.annotated(a="b"), [("UnschedulablePod", Action.UPDATE)]),
        case("labels of a bound pod", BOUND, WEB, [("AssignedPod", Action.POD_LABEL)]),
        case(
            "a request is gone, a toleration came",
            BOUND.requests(cpu=1), BOUND.tolerates("t"),
            [("AssignedPod", Action.POD_SCALE_DOWN), ("AssignedPod", Action.POD_TOLERATION)],
        ),
        case("a gate of two is gone", WAITING.gated("a").gated("b"), WAITING.gated("a"),
             [("UnschedulablePod", Action.UPDATE)]),
    ],
)  # fmt: skip
def test_a_pod_update_is_split(old: PodManifest, new: PodManifest, events: list[tuple[str, Action]]) -> None:
    assert pod_events(info(old), info(new)) == tuple(ClusterEvent(*each) for each in events)
