"""The parts that shapes are put together from: nodes and pods as documents for an API server, drawn at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

Document = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
GPU = "nvidia.com/gpu"
SPACES = ("default", "batch", "web")
APPS = tuple("abcdef")
IMAGES = {f"registry.example/{name}:1": size << 20 for name, size in (("small", 30), ("large", 900), ("huge", 4000))}

_SIZES = ((2, 4), (4, 16), (8, 16), (8, 64), (16, 32), (32, 128))
"""Cores and GiB."""


def node(number: int, random: Random, labels: Mapping[str, str] | None = None, **spec: Any) -> Document:
    """A ready node of some size; some have GPUs, some hold images, some take few pods."""
    name = f"node-{number:03d}"
    cores, memory = random.choice(_SIZES)
    amounts = {
        "cpu": f"{cores * 1000 - random.choice((0, 70, 130))}m",
        "memory": f"{memory * 1024 - random.choice((0, 300, 999))}Mi",
        "ephemeral-storage": "100Gi",
        "pods": random.choice(("12", "30", "110")),
        **({GPU: random.choice("248")} if random.random() < 0.2 else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, "disk": random.choice(("ssd", "hdd")), **(labels or {})}},
        "spec": spec,
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [
                {"names": [image], "sizeBytes": size} for image, size in IMAGES.items() if random.random() < 0.3
            ],
        },
    }


def pod(random: Random, **spec: Any) -> Document:
    """A pod with labels and requests; the one who creates it gives it a name."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": random.choice(SPACES),
            "labels": {
                "app": random.choice(APPS),
                "tier": random.choice(("front", "back")),
                "track": random.choice(("stable", "canary")),
            },
        },
        "spec": {
            "terminationGracePeriodSeconds": 0,  # nobody is there to end it: a deleted pod is gone at once
            "containers": [container(random, number) for number in range(random.choice((1, 1, 1, 2)))],
            **spec,
        },
    }


def container(random: Random, number: int = 0) -> Document:
    """A container that asks for something, for nothing, or for far too much."""
    asked: dict[str, str] = {}
    if random.random() < 0.85:
        asked["cpu"] = random.choice(("50m", "100m", "250m", "333m", "500m", "1", "2", "3500m"))
    if random.random() < 0.85:
        asked["memory"] = random.choice(("64Mi", "200Mi", "512Mi", "777Mi", "1Gi", "3Gi", "7Gi"))
    if random.random() < 0.05:
        asked["ephemeral-storage"] = random.choice(("5Gi", "60Gi"))
    resources: Document = {"requests": asked}
    if random.random() < 0.05:
        resources = {"requests": {**asked, GPU: "1"}, "limits": {GPU: "1"}}
    if random.random() < 0.02:
        resources = {"requests": {"cpu": random.choice(("40", "31"))}}
    return {"name": f"c{number}", "image": random.choice((*IMAGES, "registry.example/rare:1")), "resources": resources}


def some(random: Random, chance: float, **fields: Any) -> Document:
    """The fields, with that chance."""
    return fields if random.random() < chance else {}


def selector(random: Random) -> Document:
    """A label selector of one of the usual forms."""
    return random.choice(
        (
            {"matchLabels": {"app": random.choice(APPS)}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": random.sample(APPS, 2)}]},
            {"matchExpressions": [{"key": "track", "operator": "NotIn", "values": ["canary"]}]},
            {"matchLabels": {"app": random.choice(APPS), "track": "stable"}},
        )
    )


def surroundings(kind: str, version: str, items: Sequence[tuple[Document, Document]]) -> list[Document]:
    """Objects of one kind, each from its metadata and the rest of it."""
    return [{"apiVersion": version, "kind": kind, "metadata": meta, **rest} for meta, rest in items]
