"""The pod that runs a VM, as KubeVirt's virt-launcher would be: a document, made and nothing else.

A target that is required, and a source that is not to be returned to, are said to the scheduler as node affinity by
name. Terms are alternatives, so each of the VM's own gets the addition; one that asks for nothing matches nothing, and
stays so.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.cluster.kinds import Kind
from bayplan.simulate.vms.vm import VM, Doc, Node, NodeShape, requests

GROUP = "simulate.bayplan.dev"
MANAGED = "app.kubernetes.io/managed-by"
MANAGER = "bayplan-vms"
VM_LABEL = "vm.kubevirt.io/name"
OURS = f"{MANAGED}={MANAGER}"
"""The label selector of all pods made here; whoever else runs VMs in the namespace is left alone."""
FORCED, DIGEST, REMINDED = (f"{GROUP}/{word}" for word in ("forced", "digest", "reminded"))
SIMULATED = {"type": "kwok"}
"""The label of nodes on which nothing really runs. Pods want it, so that none ever starts on a real machine."""
_FAKE: Doc = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
VIRTUAL_MACHINE = Kind(GROUP, "v1", "VirtualMachine", "virtualmachines", True, ("vm",), ("status", "scale"))


def launcher(
    vm: VM,
    shape: NodeShape,
    *,
    selector: Mapping[str, str] = SIMULATED,
    node_name: str = "",
    only: str = "",
    never: str = "",
    owner: Mapping[str, Any] | None = None,
) -> Doc:
    """The pod of a VM.

    `node_name` puts it there past the scheduler. `only` and `never` tell the scheduler where it must and must not go.
    """
    spec = _spec(vm, shape, selector)
    annotations = {DIGEST: _digest(spec)}
    if node_name:
        spec["nodeName"] = node_name
        annotations[FORCED] = node_name
    if only or never:
        spec["affinity"] = _directed(spec.get("affinity", {}), only, never)
    labels = {**vm.labels, "app": "virt-launcher", "kubevirt.io/domain": vm.id, VM_LABEL: vm.id, MANAGED: MANAGER}
    meta: Doc = {"generateName": f"virt-launcher-{vm.id}-", "labels": labels, "annotations": annotations}
    if owner is not None:
        meta["ownerReferences"] = [dict(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def digest(vm: VM, shape: NodeShape, selector: Mapping[str, str] = SIMULATED) -> str:
    """What tells a VM's pod from one of another size or with other constraints."""
    return _digest(_spec(vm, shape, selector))


def _digest(spec: Doc) -> str:
    return hashlib.sha256(msgspec.json.encode(spec, order="deterministic")).hexdigest()[:16]


def _spec(vm: VM, shape: NodeShape, selector: Mapping[str, str]) -> Doc:
    container = {"name": "compute", "image": "virt-launcher", "resources": {"requests": requests(vm, shape)}}
    spec: Doc = {
        "containers": [container],
        "tolerations": [{**_FAKE, "operator": "Equal"}, *copy.deepcopy(vm.tolerations)],
        "terminationGracePeriodSeconds": 0,  # its state has moved elsewhere: there is nothing to wait for
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
    }
    optional = {
        "nodeSelector": {**selector, **vm.node_selector},
        "affinity": copy.deepcopy(vm.affinity),
        "topologySpreadConstraints": copy.deepcopy(vm.topology_spread),
        "priorityClassName": vm.priority_class_name,
    }
    return spec | {name: value for name, value in optional.items() if value}


def _directed(affinity: Doc, only: str, never: str) -> Doc:
    """An affinity with where it must and must not go."""
    fields = [
        {"key": "metadata.name", "operator": operator, "values": [name]}
        for operator, name in (("In", only), ("NotIn", never))
        if name
    ]
    own = affinity.get("nodeAffinity", {})
    terms = own.get(_REQUIRED, {}).get("nodeSelectorTerms") or [{"matchFields": []}]
    directed = [{**term, "matchFields": [*term.get("matchFields", ()), *fields]} if term else {} for term in terms]
    return {**affinity, "nodeAffinity": {**own, _REQUIRED: {"nodeSelectorTerms": directed}}}


def virtual_machine(vm: VM) -> Doc:
    """The object that owns a VM's pods, so that disruption budgets know how many there should be: one."""
    meta = {"name": vm.id, "labels": {MANAGED: MANAGER}}
    return {
        "apiVersion": VIRTUAL_MACHINE.api_version,
        "kind": "VirtualMachine",
        "metadata": meta,
        "spec": {"replicas": 1},
    }


def owner_reference(name: str, uid: str) -> Doc:
    """How a pod names it."""
    return {
        "apiVersion": VIRTUAL_MACHINE.api_version,
        "kind": "VirtualMachine",
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def definition() -> Doc:
    """The CustomResourceDefinition of VirtualMachine. It has a scale, which is what budgets ask."""
    count = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": count, "status": count}}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
    }
    names = {"plural": "virtualmachines", "singular": "virtualmachine", "kind": "VirtualMachine", "shortNames": ["vm"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"virtualmachines.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def node_document(node: Node, selector: Mapping[str, str] = SIMULATED) -> Doc:
    """A simulated node: labelled and tainted as KWOK's are."""
    shape = node.capacity
    amounts = {"cpu": f"{round(shape.cores * 1000)}m", "memory": str(shape.memory), "pods": str(shape.pods)}
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        **selector,
        **node.labels,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels},
        "spec": {"taints": [_FAKE, *node.taints]},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
