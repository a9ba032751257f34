"""Ids read back as they are written."""

from __future__ import annotations

import pytest

from bayplan.model.ids import ContainerId, ContainerName, IdError, PodId, Ref, Uid


def test_people_call_a_pod_by_namespace_and_name() -> None:
    pod = PodId("vision", "trainer-3", Uid("8f6a"))
    assert str(pod) == "vision/trainer-3"
    assert str(ContainerName(pod, "main")) == "vision/trainer-3/main"
    assert pod != PodId("vision", "trainer-3", Uid("9b10"))


def test_a_reference_names_the_namespace_only_if_there_is_one() -> None:
    assert str(Ref("ResourceQuota", "vision", "gpus")) == "ResourceQuota vision/gpus"
    assert str(Ref("Node", "", "node-1")) == "Node node-1"


def test_a_container_id_round_trips() -> None:
    assert str(ContainerId.parse("containerd://3f2a")) == "containerd://3f2a"


@pytest.mark.parametrize("text", ["", "3f2a", "://3f2a", "containerd://"])
def test_half_a_container_id_is_refused(text: str) -> None:
    with pytest.raises(IdError, match="expected <runtime>://<id>"):
        ContainerId.parse(text)
