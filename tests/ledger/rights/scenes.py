"""A lab with everything that a ledger looks at: GPU nodes, a Deployment, custom owners, claims and slices."""

from __future__ import annotations

from bayplan.cluster.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Kind,
)
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.objects import Object
from tests.ledger.chaos.objects import definition
from tests.ledger.process.running import happens
from tests.ledger.rights.accounts import made
from tests.ledger.shell.scenes import container, gpu_node, gpu_pod

TRAINER = Kind("rights.example.com", "v1", "Trainer", "trainers", namespaced=True)
STRANGER = Kind("rights.example.com", "v1", "Stranger", "strangers", namespaced=True)
"""A kind that nobody was told of."""


async def kinds_made(cluster: LiveCluster) -> None:
    """Define the custom kinds, and wait until they are served."""
    for kind in (TRAINER, STRANGER):
        await made(cluster, CUSTOM_RESOURCE_DEFINITION, definition(kind))

        async def served(kind: Kind = kind) -> bool:
            return (await cluster.list(kind)).items is not None

        await happens(served)


async def node_made(cluster: LiveCluster, name: str) -> None:
    """A GPU node with an address of each family, and a slice of devices."""
    node = gpu_node(name)
    node["status"]["addresses"] = [{"type": "InternalIP", "address": each} for each in ("10.1.2.3", "fd00::3")]
    await made(cluster, NODE, node)
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": name, "devices": [{"name": "gpu-0"}]}
    await made(cluster, RESOURCE_SLICE, {"metadata": {"name": f"{name}-gpus"}, "spec": spec})


async def owned_pod(cluster: LiveCluster, kind: Kind, name: str, namespace: str) -> Object:
    """A pod below an object of a custom kind, both of this name."""
    owner = await cluster.create(
        kind, {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}}, namespace
    )
    pod = gpu_pod(name)
    reference = {"apiVersion": kind.api_version, "kind": kind.name, "name": name, "uid": owner.uid, "controller": True}
    pod["metadata"]["ownerReferences"] = [reference]
    return await cluster.create(POD, pod, namespace)


async def deployment(cluster: LiveCluster, name: str, namespace: str) -> None:
    """A Deployment of two GPU pods, and a claim beside it."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container(1)]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    await cluster.create(DEPLOYMENT, {"metadata": {"name": name}, "spec": spec}, namespace)
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    await cluster.create(
        RESOURCE_CLAIM, {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}, namespace
    )
