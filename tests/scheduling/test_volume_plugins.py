"""Volumes: a pod goes where its volumes can be reached, found or made, and where nobody is in the way."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.model.meta import KubernetesObject
from bayplan.model.objects import KINDS, from_builtins
from bayplan.scheduling.framework import Plugin, Refusal
from bayplan.scheduling.plugins.node_volume_limits import NodeVolumeLimits
from bayplan.scheduling.plugins.volume_binding import VolumeBinding
from bayplan.scheduling.plugins.volume_restrictions import VolumeRestrictions
from bayplan.scheduling.plugins.volume_zone import VolumeZone
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.state import ClusterState
from bayplan.testing.nodes import node
from bayplan.testing.pods import PodManifest, pod

ZONE = "topology.kubernetes.io/zone"
LATE = "WaitForFirstConsumer"
A, B = (node(name).labelled({ZONE: name}).view() for name in ("a", "b"))
Objects = tuple[KubernetesObject, ...]


def thing(kind: str, name: str, namespace: str = "", **fields: Any) -> KubernetesObject:
    metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return from_builtins({"metadata": metadata, **fields}, KINDS[kind])


def claim(name: str = "data", *, size: str = "1Gi", metadata: Any = None, phase: str = "", **spec: Any) -> Any:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    status = {"phase": phase}
    return thing("PersistentVolumeClaim", name, "default", metadata=metadata or {}, spec=asked, status=status)


def bound(volume: str, name: str = "data", **spec: Any) -> Any:
    done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    return claim(name, metadata=done, volumeName=volume, **spec)


def volume(
    name: str = "disk",
    *,
    zone: str = "",
    size: str = "1Gi",
    metadata: Any = None,
    phase: str = "Available",
    **spec: Any,
) -> Any:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if zone else {}
    has = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **affinity, **spec}
    return thing("PersistentVolume", name, metadata=metadata or {}, spec=has, status={"phase": phase})


def storage_class(name: str = "late", *, mode: str = LATE, provisioner: str = "csi.example", **fields: Any) -> Any:
    return thing("StorageClass", name, volumeBindingMode=mode, provisioner=provisioner, **fields)


def using(*claims: str, name: str = "new") -> PodManifest:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return pod(name).having("spec.volumes", volumes)


def holding(source: dict[str, Any], name: str = "new") -> PodManifest:
    return pod(name).having("spec.volumes", [{"name": "disk", **source}])


def verdicts(plugin: Plugin, incoming: PodManifest, *objects: KubernetesObject) -> dict[str, tuple[str, ...]] | str:
    """What each node says; one text for all nodes where it is said before they are asked."""
    state = ClusterState((A, B, *objects))
    found = plugin.filter(PodInfo(incoming.view()), state)
    if found is None:
        return "skipped"
    if isinstance(found, Refusal):
        assert found.hopeless
        return found.reasons[0]
    refusals = {each.name: found.check(each) for each in state.nodes}
    return {name: refusal.reasons for name, refusal in refusals.items() if refusal}


@pytest.mark.parametrize("plugin", [VolumeRestrictions(), NodeVolumeLimits(), VolumeBinding(), VolumeZone()])
def test_a_pod_without_claims_is_not_asked_about(plugin: Plugin) -> None:
    assert verdicts(plugin, pod("new")) == "skipped"
    assert verdicts(plugin, holding({"emptyDir": {}})) == "skipped"


OUT_OF_REACH = ("node(s) didn't match PersistentVolume's node affinity",)
NONE_TO_BIND = ("node(s) didn't find available persistent volumes to bind",)
NO_SPACE = ("node(s) did not have enough free storage",)
STATIC = storage_class(provisioner="kubernetes.io/no-provisioner")
LATE_CLAIM = claim(storageClassName="late")
PICKY_CLAIM = claim(storageClassName="late", selector={"matchLabels": {"x": "y"}})
IN_ZONE_A = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
TELLS_SPACE = thing("CSIDriver", "csi.example", spec={"storageCapacity": True})


def space(zone: str, **told: str) -> KubernetesObject:
    topology = {"matchLabels": {ZONE: zone}}
    return thing("CSIStorageCapacity", f"space-{zone}", storageClassName="late", nodeTopology=topology, **told)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((), 'persistentvolumeclaim "data" not found', id="a claim must be there"),
        pytest.param(
            (claim(metadata={"deletionTimestamp": "2024-01-01T00:00:00Z"}),),
            'persistentvolumeclaim "data" is being deleted',
            id="and stay",
        ),
        pytest.param(
            (claim(phase="Lost", volumeName="disk"),),
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "disk"',
            id="and have its volume",
        ),
        pytest.param(
            (claim(),), "pod has unbound immediate PersistentVolumeClaims", id="a claim without a class must be bound"
        ),
        pytest.param(
            (claim(storageClassName="now"), storage_class("now", mode="Immediate")),
            "pod has unbound immediate PersistentVolumeClaims",
            id="as must one whose class binds at once",
        ),
        pytest.param(
            (claim(storageClassName="late", volumeName="disk"), storage_class(), volume()),
            "pod has unbound immediate PersistentVolumeClaims",
            id="and one that names its volume",
        ),
        pytest.param((bound("disk"), volume()), {}, id="a bound volume without affinity is reached from anywhere"),
        pytest.param((bound("disk"), volume(zone="a")), {"b": OUT_OF_REACH}, id="one with affinity only from there"),
        pytest.param(
            (bound("disk"),),
            dict.fromkeys("ab", ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",)),
            id="one that is gone from nowhere",
        ),
        pytest.param((LATE_CLAIM, storage_class()), {}, id="a provisioner makes volumes anywhere"),
        pytest.param(
            (LATE_CLAIM, storage_class(allowedTopologies=IN_ZONE_A)),
            {"b": NONE_TO_BIND},
            id="or where its class allows",
        ),
        pytest.param(
            (LATE_CLAIM, storage_class(), TELLS_SPACE, space("a", capacity="2Gi"), space("b", capacity="1Mi")),
            {"b": NO_SPACE},
            id="or where its driver says there is space",
        ),
        pytest.param(
            (LATE_CLAIM, storage_class(), TELLS_SPACE, space("a", capacity="2Gi", maximumVolumeSize="1Mi")),
            dict.fromkeys("ab", NO_SPACE),
            id="for a volume of that size",
        ),
        pytest.param(
            (
                claim(storageClassName="late", metadata={"annotations": {"volume.kubernetes.io/selected-node": "a"}}),
                storage_class(),
            ),
            {"b": NONE_TO_BIND},
            id="a volume that is being made for a node is for that node",
        ),
        pytest.param(
            (LATE_CLAIM, STATIC), dict.fromkeys("ab", NONE_TO_BIND), id="without a provisioner a volume must be there"
        ),
        pytest.param(
            (LATE_CLAIM, STATIC, volume(zone="a", storageClassName="late")), {"b": NONE_TO_BIND}, id="within reach"
        ),
        pytest.param(
            (LATE_CLAIM, STATIC, volume(storageClassName="late", size="1Mi")),
            dict.fromkeys("ab", NONE_TO_BIND),
            id="large enough",
        ),
        pytest.param(
            (LATE_CLAIM, STATIC, volume(storageClassName="late", accessModes=["ReadOnlyMany"])),
            dict.fromkeys("ab", NONE_TO_BIND),
            id="with the access modes asked for",
        ),
        pytest.param(
            (LATE_CLAIM, STATIC, volume(storageClassName="late", volumeMode="Block")),
            dict.fromkeys("ab", NONE_TO_BIND),
            id="of the mode asked for",
        ),
        pytest.param(
            (LATE_CLAIM, STATIC, volume(storageClassName="other")), dict.fromkeys("ab", NONE_TO_BIND), id="of the class"
        ),
        pytest.param(
            (LATE_CLAIM, STATIC, volume(storageClassName="late", phase="Released")),
            dict.fromkeys("ab", NONE_TO_BIND),
            id="and available",
        ),
        pytest.param(
            (PICKY_CLAIM, STATIC, volume(storageClassName="late")),
            dict.fromkeys("ab", NONE_TO_BIND),
            id="and among those that the claim selects",
        ),
        pytest.param(
            (
                LATE_CLAIM, STATIC, volume(storageClassName="late"),
                volume("mine", zone="a", storageClassName="late", claimRef={"namespace": "default", "name": "data"}),
            ),
            {"b": NONE_TO_BIND},
            id="a volume that is meant for the claim is the only one",
        ),
        pytest.param(
            (
                LATE_CLAIM, STATIC,
                volume(storageClassName="late", claimRef={"namespace": "default", "name": "other"}),
            ),
            dict.fromkeys("ab", NONE_TO_BIND),
            id="one that is meant for another is none",
        ),
    ],
)  # fmt: skip
def test_volume_binding(objects: Objects, expected: dict[str, tuple[str, ...]] | str) -> None:
    assert verdicts(VolumeBinding(), using("data"), *objects) == expected


def test_two_claims_do_not_get_one_volume_and_the_smaller_chooses_first() -> None:
    claims = claim("big", size="3Gi", storageClassName="late"), claim("small", storageClassName="late")
    big, small = (volume(name, size=size, storageClassName="late") for name, size in (("v3", "3Gi"), ("v2", "2Gi")))
    incoming = using("big", "small")
    assert verdicts(VolumeBinding(), incoming, *claims, STATIC, big, small) == {}
    assert verdicts(VolumeBinding(), incoming, *claims, STATIC, big) == dict.fromkeys("ab", NONE_TO_BIND)


def test_all_reasons_of_a_node_are_told() -> None:
    objects = (bound("disk", "one"), volume(zone="a"), claim("two", storageClassName="late"), STATIC)
    assert verdicts(VolumeBinding(), using("one", "two"), *objects) == {
        "a": NONE_TO_BIND,
        "b": (*OUT_OF_REACH, *NONE_TO_BIND),
    }


EPHEMERAL = holding({"ephemeral": {}}).having("metadata.uid", "u1")


def owned(uid: str) -> Any:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "new", "uid": uid, "controller": True}
    return claim("new-disk", storageClassName="late", metadata={"ownerReferences": [owner]})


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            (),
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "new-disk"',
            id="its claim is made by a controller",
        ),
        pytest.param(
            (owned("u2"),),
            "PVC default/new-disk was not created for pod default/new (pod is not owner)",
            id="and must be the pod's own",
        ),
        pytest.param((owned("u1"), storage_class()), {}, id="then it is a claim as any other"),
    ],
)
def test_ephemeral_volumes(objects: Objects, expected: dict[str, tuple[str, ...]] | str) -> None:
    assert verdicts(VolumeBinding(), EPHEMERAL, *objects) == expected


WRONG_ZONE = ("node(s) had no available volume zone",)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((bound("disk"), volume()), "skipped", id="a volume without such labels is had anywhere"),
        pytest.param(
            (bound("disk"), volume(metadata={"labels": {ZONE: "a"}})), {"b": WRONG_ZONE}, id="else in its zone"
        ),
        pytest.param(
            (bound("disk"), volume(metadata={"labels": {"failure-domain.beta.kubernetes.io/zone": "a"}})),
            {"b": WRONG_ZONE},
            id="whose old name is as good",
        ),
        pytest.param(
            (bound("disk"), volume(metadata={"labels": {ZONE: "a__b"}}), node("c").labelled({ZONE: "c"}).view()),
            {"c": WRONG_ZONE},
            id="or zones",
        ),
        pytest.param(
            (bound("disk"), volume(metadata={"labels": {ZONE: "a"}}), node("c").view()),
            {"b": WRONG_ZONE},
            id="nodes that name no zone take it",
        ),
        pytest.param((bound("disk"),), 'persistentvolume "disk" not found', id="the volume must be there"),
        pytest.param(
            (claim(),), "PersistentVolumeClaim had no pv name and storageClass name", id="or a class to make one"
        ),
        pytest.param(
            (LATE_CLAIM,), 'storageclass.storage.k8s.io "late" not found', id="and that class must be there as well"
        ),
        pytest.param((LATE_CLAIM, storage_class()), "skipped", id="a volume to come has no zone yet"),
        pytest.param(
            (LATE_CLAIM, storage_class(mode="Immediate")),
            "PersistentVolume had no name",
            id="one that is late has no name",
        ),
    ],
)
def test_volume_zones(objects: Objects, expected: dict[str, tuple[str, ...]] | str) -> None:
    assert verdicts(VolumeZone(), using("data"), *objects) == expected


def csi(name: str, driver: str = "csi.example") -> Any:
    return volume(name, csi={"driver": driver, "volumeHandle": name})


def room_for(count: int, driver: str = "csi.example", where: str = "a") -> KubernetesObject:
    return thing("CSINode", where, spec={"drivers": [{"name": driver, "allocatable": {"count": count}}]})


TOO_MANY = {"a": ("node(s) exceed max volume count",)}
OLD = (using("old", name="old").on("a").view(), bound("v-old", "old"), csi("v-old"))
NEW = (bound("v-new"), csi("v-new"))
ATTACHED = {"attacher": "csi.example", "nodeName": "a", "source": {"persistentVolumeName": "v-else"}}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((*NEW, *OLD), {}, id="without a known limit there is none"),
        pytest.param((*NEW, *OLD, room_for(2)), {}, id="there is room up to the limit"),
        pytest.param((*NEW, *OLD, room_for(1)), TOO_MANY, id="and not beyond"),
        pytest.param((*NEW, *OLD, room_for(1, "other.example")), {}, id="each driver has its own"),
        pytest.param((bound("v-old"), *OLD, room_for(1)), {}, id="a volume that is there already takes no more room"),
        pytest.param(
            (*NEW, csi("v-else"), thing("VolumeAttachment", "x", spec=ATTACHED), room_for(1)),
            TOO_MANY,
            id="volumes that are attached count though no pod uses them",
        ),
        pytest.param(
            (LATE_CLAIM, storage_class(), *OLD, room_for(1)), TOO_MANY, id="a volume to come counts for its provisioner"
        ),
        pytest.param((bound("disk"), volume(), *OLD, room_for(1)), {}, id="other volumes do not count"),
        pytest.param(
            (room_for(1),),
            dict.fromkeys("ab", ('looking up PVC default/data: persistentvolumeclaim "data" not found',)),
            id="a claim must be there",
        ),
    ],
)
def test_volume_limits(objects: Objects, expected: dict[str, tuple[str, ...]]) -> None:
    assert verdicts(NodeVolumeLimits(), using("data"), *objects) == expected


ONE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
)
EXCLUSIVE = claim(accessModes=["ReadWriteOncePod"])


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((), 'persistentvolumeclaim "data" not found', id="a claim must be there"),
        pytest.param((claim(), using("data", name="old").on("a").view()), "skipped", id="most claims can be shared"),
        pytest.param((EXCLUSIVE,), "skipped", id="an exclusive one that nobody uses can be had"),
        pytest.param(
            (EXCLUSIVE, using("data", name="old").on("a").view()),
            dict.fromkeys("ab", ONE_POD),
            id="one that somebody uses cannot, on any node",
        ),
    ],
)
def test_claims_for_one_pod(objects: Objects, expected: dict[str, tuple[str, ...]] | str) -> None:
    assert verdicts(VolumeRestrictions(), using("data"), *objects) == expected


def test_an_exclusive_claim_is_free_once_its_user_is_gone() -> None:
    old = using("data", name="old").on("a").view()
    state = ClusterState((A, B, EXCLUSIVE, old))
    found = VolumeRestrictions().filter(PodInfo(using("data").view()), state)
    assert found
    assert not isinstance(found, Refusal)
    here = state.nodes[0]
    supposed = found.copy()
    supposed.remove(PodInfo(old), here)
    assert supposed.check(here) is None
    assert found.check(here)
    supposed.add(PodInfo(old), here)
    assert supposed.check(here)


def rbd(*monitors: str, **fields: Any) -> dict[str, Any]:
    return {"rbd": {"monitors": monitors, "pool": "p", "image": "i", **fields}}


GCE = {"gcePersistentDisk": {"pdName": "d"}}
GCE_READER = {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}
AWS = {"awsElasticBlockStore": {"volumeID": "d"}}
ISCSI = {"iscsi": {"iqn": "d"}}


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        pytest.param(GCE, GCE, True, id="a GCE disk has one writer"),
        pytest.param(GCE, GCE_READER, True, id="and no readers beside it"),
        pytest.param(GCE_READER, GCE_READER, False, id="but any number of readers"),
        pytest.param(GCE, {"gcePersistentDisk": {"pdName": "e"}}, False, id="another disk is another disk"),
        pytest.param(AWS, AWS, True, id="an EBS disk has one user"),
        pytest.param(AWS, {"awsElasticBlockStore": {"volumeID": "e"}}, False, id="another EBS disk is another disk"),
        pytest.param(ISCSI, ISCSI, True, id="an iSCSI disk has one writer"),
        pytest.param(rbd("m1", "m2"), rbd("m2"), True, id="an image is the same if a monitor is"),
        pytest.param(rbd("m1"), rbd("m2"), False, id="and another if none is"),
        pytest.param(rbd("m1"), rbd("m1", image="j"), False, id="or if its name is another"),
        pytest.param(rbd("m1", readOnly=True), rbd("m1", readOnly=True), False, id="an image may have many readers"),
        pytest.param(GCE, AWS, False, id="disks of different makers do not meet"),
    ],
)
def test_disks_for_one_pod(mine: dict[str, Any], theirs: dict[str, Any], conflict: bool) -> None:
    expected = {"a": ("node(s) had no available disk",)} if conflict else {}
    assert verdicts(VolumeRestrictions(), holding(mine), holding(theirs, "old").on("a").view()) == expected
