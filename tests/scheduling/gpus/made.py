"""Nodes and pods with GPUs for these tests."""

from __future__ import annotations

import random

from bayplan.model.meta import ObjectMeta
from bayplan.model.nodes import Node, NodeStatus
from bayplan.model.pods import Container, Pod, PodSpec, ResourceRequirements
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.gpus.asking import DEVICES, RESOURCE, SHARE, written
from bayplan.scheduling.gpus.columns import MODEL
from bayplan.scheduling.plugins.gpu_policies.fragmentation import TypicalPod
from bayplan.scheduling.pods import PodInfo

MODELS = ("T4", "V100", "")
TYPICAL = (
    TypicalPod(4000, 1000, 1, (), 40),
    TypicalPod(8000, 500, 1, (), 20),
    TypicalPod(1000, 200, 1, ("T4",), 15),
    TypicalPod(32000, 1000, 4, (), 5),
    TypicalPod(2000, 0, 0, (), 20),
)


def node(name: str, cpu: int = 64, gpus: int = 4, model: str = "T4") -> Node:
    there = {"cpu": str(cpu), "memory": "256Gi", "pods": "110", **({RESOURCE: str(gpus)} if gpus else {})}
    return Node(
        metadata=ObjectMeta(name=name, labels={MODEL: model} if model else {}), status=NodeStatus(allocatable=there)
    )


def pod(name: str, cpu: str = "1", gpus: int = 0, share: int = 0, devices: tuple[int, ...] = ()) -> PodInfo:
    requests = {"cpu": cpu, "memory": "1Gi", **({RESOURCE: str(gpus)} if gpus else {})}
    annotations = {SHARE: str(share)} if share else {}
    if devices:
        annotations[DEVICES] = written(devices)
    return PodInfo(
        Pod(
            metadata=ObjectMeta(name=name, namespace="default", annotations=annotations),
            spec=PodSpec(containers=(Container(name="a", resources=ResourceRequirements(requests=requests)),)),
        )
    )


def placed(scheduler: FastScheduler, info: PodInfo, where: str) -> PodInfo:
    """Put a pod onto a node, with the devices that the profile gives it."""
    known = info.with_devices(scheduler.devices(info, where))
    scheduler.put_pod(known, where)
    return known


def random_pod(chance: random.Random, number: int) -> PodInfo:
    cpu = str(chance.choice((1, 2, 4, 8, 16)))
    kind = chance.random()
    if kind < 0.2:
        return pod(f"p{number}", cpu)
    if kind < 0.6:
        return pod(f"p{number}", cpu, share=chance.choice((100, 250, 460, 500, 900)))
    return pod(f"p{number}", cpu, gpus=chance.choice((1, 1, 1, 2, 4)))


def random_cluster(chance: random.Random, scheduler: FastScheduler, nodes: int) -> None:
    for number in range(nodes):
        scheduler.put_node(
            node(f"n{number:03d}", chance.choice((32, 64, 96)), chance.choice((0, 2, 4, 8)), chance.choice(MODELS))
        )
