"""The Kubernetes objects that a scenario stands for, as documents to create."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from bayplan.cluster.embedded.kubelet.behaviour import PREFIX
from bayplan.cluster.kinds import (
    KINDS,
    NAMESPACE,
    NODE,
    POD_DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    Kind,
)
from bayplan.scheduling.gpus.asking import SHARE
from bayplan.simulate.scenario import Budget, NodeGroup, PriorityClass, Scenario, Size, Team, Workload

VM_GROUP = "simulate.bayplan.dev/vms"
"""The label of VMs' pods that names their group."""
INSTANCE = "app.kubernetes.io/instance"
KUBELET_VERSION = "v1.36.4"

Doc = dict[str, Any]


class Made(msgspec.Struct, frozen=True):
    """An object to create."""

    kind: Kind
    namespace: str
    body: Doc

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self.body["metadata"]["name"]
        return name

    @property
    def request(self) -> tuple[Kind, str, Doc]:
        """As a server's create takes it."""
        return self.kind, self.namespace, self.body


def node(group: NodeGroup, name: str) -> Made:
    """A node as its kubelet registers it."""
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        **group.labels,
    }
    status = {
        "capacity": {"pods": 110, **group.capacity},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": "6.8.0",
            "kubeProxyVersion": "",
            "kubeletVersion": KUBELET_VERSION,
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "Ubuntu 24.04 LTS",
            "systemUUID": "",
        },
    }
    spec = {"taints": list(group.taints)} if group.taints else {}
    return Made(NODE, "", {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status})


def namespace(team: Team) -> Made:
    """A team's namespace."""
    return Made(NAMESPACE, "", {"metadata": {"name": team.name, "labels": {"team": team.name}}})


def quota(team: Team) -> Iterator[Made]:
    """A team's quota, if it has one."""
    if team.quota:
        yield Made(RESOURCE_QUOTA, team.name, {"metadata": {"name": "team"}, "spec": {"hard": dict(team.quota)}})


def budget(wanted: Budget, scenario: Scenario) -> Made:
    """A disruption budget."""
    selector = wanted.selector
    if wanted.workload:
        vms = wanted.workload in [group.name for group in scenario.vms if group.namespace == wanted.namespace]
        selector = {"matchLabels": {VM_GROUP if vms else "app": wanted.workload}}
    bounds = {"minAvailable": wanted.min_available, "maxUnavailable": wanted.max_unavailable}
    spec = {"selector": selector, **{key: value for key, value in bounds.items() if value is not None}}
    return Made(POD_DISRUPTION_BUDGET, wanted.namespace, {"metadata": {"name": wanted.name}, "spec": spec})


def priority_class(priority: PriorityClass) -> Made:
    """A priority class."""
    body = {
        "metadata": {"name": priority.name},
        "value": priority.value,
        "preemptionPolicy": priority.preemption_policy,
    }
    return Made(PRIORITY_CLASS, "", body)


def workload(
    wanted: Workload,
    name: str,
    *,
    behaviour: Mapping[str, object] | None = None,
    size: Size | None = None,
    replicas: int | None = None,
    spec: Doc | None = None,
) -> Made:
    """One object of a workload: its spec with labels, behaviour, and the given size.

    Pods of one size may share a spec, given as `sized` makes it.
    """
    spec = sized(wanted, size) if spec is None else spec
    kind = KINDS[wanted.kind]
    body: Doc = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}, "spec": spec}
    pod = body if wanted.kind == "Pod" else _template(spec)
    identity = {"app": wanted.name}
    if wanted.arrivals is not None and wanted.kind != "Pod":
        identity[INSTANCE] = name  # each takes care of its own pods only
    labels = {**identity, **wanted.labels}
    meta = pod["metadata"]
    meta["labels"] = {**labels, **meta.get("labels", {})}
    said = {PREFIX + key: str(value) for key, value in {**wanted.behaviour, **(behaviour or {})}.items()}
    said |= wanted.annotations
    if size is not None and size.gpu_milli is not None:
        said[SHARE] = str(size.gpu_milli)
    if said:
        meta["annotations"] = {**said, **meta.get("annotations", {})}
    if wanted.kind in ("Deployment", "StatefulSet", "DaemonSet"):
        body["metadata"]["labels"] = dict(labels)
        body["spec"].setdefault("selector", {"matchLabels": identity})
    if replicas is not None:
        body["spec"]["replicas"] = replicas
    return Made(kind, wanted.namespace, body)


def sized(wanted: Workload, size: Size | None) -> Doc:
    """The spec of a workload whose pods have a size."""
    spec = copy.deepcopy(wanted.spec)
    pod = spec if wanted.kind == "Pod" else _template(spec).get("spec", {})
    if size is not None and size.resources and (containers := pod.get("containers")):
        containers[0]["resources"] = size.resources
    return spec


def _template(spec: Doc) -> Doc:
    template: Doc = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    return template
