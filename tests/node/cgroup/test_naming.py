"""kubelet's group names, there and back."""

from __future__ import annotations

import pytest

from bayplan.node.cgroup.naming import BadNameError, Driver, GroupName, Qos, Runtime, parse, path_of

UID = "0d5b4c1e-9a55-4d41-8f8b-6a1e9d8a7c11"
HASH = "f1e2d3c4b5a697887766554433221100"
CID = "4f" * 32
BURSTABLE = GroupName(Qos.BURSTABLE, UID, CID, Runtime.CONTAINERD)


@pytest.mark.parametrize(
    ("name", "driver", "path"),
    [
        pytest.param(BURSTABLE, Driver.CGROUPFS, f"/kubepods/burstable/pod{UID}/{CID}", id="a container by cgroupfs"),
        pytest.param(
            BURSTABLE,
            Driver.SYSTEMD,
            f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
            f"/cri-containerd-{CID}.scope",
            id="a container by systemd",
        ),
        pytest.param(
            GroupName(Qos.GUARANTEED, UID), Driver.CGROUPFS, f"/kubepods/pod{UID}", id="no level if guaranteed"
        ),
        pytest.param(
            GroupName(Qos.GUARANTEED, UID, CID, Runtime.CRIO),
            Driver.CGROUPFS,
            f"/kubepods/pod{UID}/crio-{CID}",
            id="CRI-O puts its name before the id",
        ),
        pytest.param(
            GroupName(Qos.BURSTABLE, HASH),
            Driver.SYSTEMD,
            f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{HASH}.slice",
            id="a static pod goes by the hash of its manifest",
        ),
        pytest.param(
            GroupName(Qos.BEST_EFFORT, root=("my-node",)),
            Driver.SYSTEMD,
            "/my_node.slice/my_node-kubepods.slice/my_node-kubepods-besteffort.slice",
            id="a cgroup root is the first slice and a prefix of the others",
        ),
        pytest.param(
            GroupName(Qos.BEST_EFFORT, UID, root=("a", "b")),
            Driver.CGROUPFS,
            f"/a/b/kubepods/besteffort/pod{UID}",
            id="a cgroup root is the folder above",
        ),
        pytest.param(GroupName(Qos.GUARANTEED), Driver.SYSTEMD, "/kubepods.slice", id="all pods"),
    ],
)
def test_a_group_has_kubelets_name(name: GroupName, driver: Driver, path: str) -> None:
    assert path_of(name, driver) == path
    assert parse(path) == name


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/", id="the root"),
        pytest.param("/system.slice/kubelet.service", id="a service"),
        pytest.param(f"/kubepods/burstable/pod{UID}/{CID}/init", id="a group inside a container"),
        pytest.param(f"/kubepods/burstable/{UID}", id="a pod without its prefix"),
        pytest.param("/kubepods.slice/kubepods-pod1.slice/crio-conmon-12.scope", id="the monitor of a container"),
        pytest.param("/kubepods.slice/burstable.slice", id="slices that do not carry the names above"),
        pytest.param(f"/kubepods/{CID}", id="a container without a pod"),
        pytest.param("/kubepods.slice/x/kubepods-pod1.slice", id="a folder between slices"),
    ],
)
def test_other_groups_are_not_kubelets(path: str) -> None:
    assert parse(path) is None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(GroupName(Qos.BURSTABLE, "a_b"), id="an underscore could not be read back"),
        pytest.param(GroupName(Qos.BURSTABLE, "../x"), id="a way out"),
        pytest.param(GroupName(Qos.BURSTABLE, "", CID, Runtime.CRIO), id="a container without a pod"),
        pytest.param(GroupName(Qos.BURSTABLE, UID, CID), id="a container without a runtime"),
        pytest.param(GroupName(Qos.BURSTABLE, root=("kubepods",)), id="a root that is called as the pods' own group"),
    ],
)
def test_what_cannot_be_a_name_is_refused(name: GroupName) -> None:
    with pytest.raises(BadNameError):
        path_of(name, Driver.SYSTEMD)
