"""What the families of the kubelet have in common: the machine and the pods of a case."""

from __future__ import annotations

from typing import Any

from bayplan.model.meta import ObjectMeta
from bayplan.model.pods import Container, Pod, PodSpec, ResourceRequirements
from bayplan.node.machine import Cpu, Topology
from bayplan.node.needs import PodNeed, needs_of

Case = dict[str, Any]


def topology_of(case: Case) -> Topology:
    """The CPUs of the case's machine."""
    return Topology(tuple(Cpu(*row) for row in case["topology"]["cpus"]))


def pod_of(document: Case) -> PodNeed:
    """What a recorded pod asks for. Raises ValueError where its QoS class is not the recorded one."""
    level = {"requests": document.get("pod_requests"), "limits": document.get("pod_limits")}
    need = needs_of(
        Pod(
            metadata=ObjectMeta(name=document["uid"], uid=document["uid"]),
            spec=PodSpec(
                init_containers=tuple(_container(each) for each in document.get("init") or ()),
                containers=tuple(_container(each) for each in document["containers"]),
                resources=_resources(level) if any(level.values()) else None,
            ),
        )
    )
    if need.qos.value != document["qos"]:
        raise ValueError(f"pod {need.uid} is {need.qos.value}, expected {document['qos']}")
    return need


def _container(document: Case) -> Container:
    return Container(name=document["name"], restart_policy=document.get("restart"), resources=_resources(document))


def _resources(document: Case) -> ResourceRequirements:
    return ResourceRequirements(requests=document.get("requests") or {}, limits=document.get("limits") or {})
