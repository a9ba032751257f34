"""The objects of the load: nodes of several vendors, owners of several kinds, pods, and the versions of a life."""

from __future__ import annotations

from typing import Any

from bayplan.cluster.kinds import Kind
from bayplan.model.clock import SECOND, Instant, rfc3339

GUEST = "registry.example/web:1"
"""The image of pods without GPUs."""
Document = dict[str, Any]

NAMESPACES = ("vision", "speech", "robots", "search")
VENDORS = {
    "nvidia.com/gpu": {"nvidia.com/gpu.product": "NVIDIA-H100"},
    "nvidia.com/mig-1g.5gb": {"nvidia.com/gpu.product": "NVIDIA-A100-MIG"},
    "amd.com/gpu": {"amd.com/gpu.product-name": "MI300X"},
    "gpu.intel.com/i915": {"gpu.intel.com/product": "Max-1550"},
    "habana.ai/gaudi": {"habana.ai/gaudi.product": "Gaudi3"},
}
"""A resource each, and the label that names the model."""

PYTORCH_JOB = Kind("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", True)
RAY_JOB = Kind("ray.io", "v1", "RayJob", "rayjobs", True)
RAY_CLUSTER = Kind("ray.io", "v1", "RayCluster", "rayclusters", True)
LINK = Kind("chains.example.com", "v1alpha1", "Link", "links", True)
RING = Kind("chains.example.com", "v1alpha1", "Ring", "rings", True)
CUSTOM = (PYTORCH_JOB, RAY_JOB, RAY_CLUSTER, LINK, RING)
CHAINS: tuple[tuple[Kind, ...], ...] = (
    (),
    (PYTORCH_JOB,),
    (RAY_JOB, RAY_CLUSTER),
    (LINK, RING, LINK, RING, LINK, RING),
)
"""From the root down to the pod's own controller."""


def definition(kind: Kind) -> Document:
    """The CRD of a kind; anything is valid."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"plural": kind.plural, "kind": kind.name, "singular": kind.name.lower()},
            "versions": [version],
        },
    }


def node(name: str, resource: str) -> Document:
    """A node with eight devices."""
    room = {"cpu": "64", "memory": "512Gi", "pods": "500", resource: "800"}
    status = {"capacity": room, "allocatable": room}
    meta = {"name": name, "labels": VENDORS[resource], "annotations": {"kwok.x-k8s.io/node": "fake"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}


def reference(kind: Kind, name: str, uid: str) -> Document:
    """A controller, as its dependents name it."""
    return {"apiVersion": kind.api_version, "kind": kind.name, "name": name, "uid": uid, "controller": True}


def owner(kind: Kind, name: str, namespace: str, above: Document | None) -> Document:
    """A custom object, below another or at the top."""
    meta = {"name": name, "namespace": namespace, "ownerReferences": [above] if above else []}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": {"replicas": 1}}


def template(resource: str, count: int) -> Document:
    """A pod's spec with GPUs; with none it is a guest of those who have some."""
    amount = {"cpu": f"{count + 1}00m", "memory": "64Mi", **({resource: str(count)} if count else {})}
    container = {
        "name": "train",
        "image": "registry.example/train:1" if count else GUEST,
        "resources": {"requests": amount, "limits": amount},
    }
    return {"containers": [container], "restartPolicy": "Always", "terminationGracePeriodSeconds": 5}


def pod(name: str, namespace: str, resource: str, count: int, above: Document | None) -> Document:
    """A pod that waits for the load's own hands to bind it."""
    meta = {"name": name, "namespace": namespace, "ownerReferences": [above] if above else []}
    spec = {**template(resource, count), "schedulerName": "load"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def deployment(name: str, namespace: str, resource: str, replicas: int) -> Document:
    """A Deployment: real controllers, the real scheduler and KWOK move its pods."""
    labels = {"app": name}
    inner = {"metadata": {"labels": labels}, "spec": template(resource, 1)}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": inner}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _meta(name, namespace), "spec": spec}


def job(name: str, namespace: str, resource: str, completions: int) -> Document:
    """A Job, moved in the same way."""
    inner = {"spec": {**template(resource, 1), "restartPolicy": "Never"}}
    spec = {"completions": completions, "parallelism": completions, "template": inner}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _meta(name, namespace), "spec": spec}


def stateful_set(name: str, namespace: str, resource: str, replicas: int) -> Document:
    """A StatefulSet: whoever follows a pod that went has its name."""
    labels = {"app": name}
    inner = {"metadata": {"labels": labels}, "spec": template(resource, 1)}
    spec = {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": labels}, "template": inner}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": _meta(name, namespace), "spec": spec}


def _meta(name: str, namespace: str) -> Document:
    return {"name": name, "namespace": namespace}


# --- a pod's life


def waiting_for_a_place(now: Instant) -> Document:
    """Not schedulable; it has an address already, by which KWOK leaves it alone."""
    refused = _condition("PodScheduled", False, now, "Unschedulable", "0/5 nodes are available: 5 Insufficient gpu.")
    return {"phase": "Pending", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "conditions": [refused]}


def pulling(now: Instant) -> Document:
    """Bound, and its image is being pulled."""
    return _status("Pending", False, now, _container({"waiting": {"reason": "ContainerCreating"}}, 0))


def running(now: Instant, restarts: int = 0, over: Document | None = None, *, ready: bool = True) -> Document:
    """It runs, for the first time or after a crash."""
    container = _container({"running": {"startedAt": rfc3339(now)}}, restarts, over, ready=ready)
    return _status("Running", ready, now, container)


def crashed(now: Instant, restarts: int = 0) -> Document:
    """Its container has failed and is waited for."""
    return _status("Running", False, now, _container({"terminated": ended(now, 137, "OOMKilled")}, restarts))


def over(now: Instant, restarts: int, code: int) -> Document:
    """It has come to its end."""
    done = ended(now, code, "Error" if code else "Completed")
    return _status("Failed" if code else "Succeeded", False, now, _container({"terminated": done}, restarts))


def ended(now: Instant, code: int, reason: str) -> Document:
    """A run of a container that is over."""
    began = rfc3339(Instant(now - SECOND))
    return {"exitCode": code, "reason": reason, "startedAt": began, "finishedAt": rfc3339(now)}


def _condition(kind: str, value: bool, now: Instant, reason: str = "", message: str = "") -> Document:
    found = {"type": kind, "status": str(value), "lastTransitionTime": rfc3339(now)}
    return found | ({"reason": reason, "message": message} if reason else {})


def _container(state: Document, restarts: int, last: Document | None = None, *, ready: bool = False) -> Document:
    found = {"name": "train", "image": "registry.example/train:1", "imageID": "", "ready": ready, "state": state}
    return {**found, "restartCount": restarts, "lastState": {"terminated": last} if last else {}}


def _status(phase: str, ready: bool, now: Instant, container: Document) -> Document:
    conditions = [
        _condition("PodScheduled", True, now),
        _condition("Initialized", True, now),
        _condition("ContainersReady", ready, now),
        _condition("Ready", ready, now),
    ]
    return {"phase": phase, "conditions": conditions, "containerStatuses": [container]}
