"""The pod that runs a VM, as KubeVirt's virt-launcher would be: a document, made and nothing else.

A target that is required, and a source that is not to be returned to, are said to the scheduler as node affinity by
name. Terms are alternatives, so each of the VM's own gets the addition; one that asks for nothing matches nothing, and
stays so.

The labels by which a pod is known are ours alone (`OWN_LABELS`). `app` is what virt-launcher pods have by default: a VM
that says otherwise has its own, so that what it and others ask of `app` is kept.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bayplan.cluster.kinds import NODE, Kind
from bayplan.simulate.vms.constraints import DOMAIN, MANAGED, VM_LABEL, document_faults
from bayplan.simulate.vms.vm import VM, Doc, Node, NodeShape, VMError, requests

GROUP = "simulate.bayplan.dev"
MANAGER = "bayplan-vms"
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
    annotations = {DIGEST: _digest(spec, vm)}
    if node_name:
        spec["nodeName"] = node_name
        annotations[FORCED] = node_name
    if only or never:
        spec["affinity"] = _directed(spec.get("affinity", {}), only, never)
    labels = {"app": "virt-launcher", **vm.labels, DOMAIN: vm.id, VM_LABEL: vm.id, MANAGED: MANAGER}
    meta: Doc = {"generateName": f"virt-launcher-{vm.id}-", "labels": labels, "annotations": annotations}
    if owner is not None:
        meta["ownerReferences"] = [dict(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def digest(vm: VM, shape: NodeShape, selector: Mapping[str, str] = SIMULATED) -> str:
    """What tells a VM's pod from one of another size, with other constraints or other labels."""
    return _digest(_spec(vm, shape, selector), vm)


def _digest(spec: Doc, vm: VM) -> str:
    return hashlib.sha256(msgspec.json.encode((spec, vm.labels), order="deterministic")).hexdigest()[:16]


def _spec(vm: VM, shape: NodeShape, selector: Mapping[str, str]) -> Doc:
    container = {"name": "compute", "image": "virt-launcher", "resources": {"requests": requests(vm, shape)}}
    spec: Doc = {
        "containers": [container],
        "tolerations": [{**_FAKE, "operator": "Equal"}],
        "terminationGracePeriodSeconds": 0,  # its state has moved elsewhere: there is nothing to wait for
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
    }
    asked = copy.deepcopy(vm.constraints())
    node_selector = {**selector, **asked.pop("nodeSelector", {})}
    spec["tolerations"] += asked.pop("tolerations", ())
    return spec | ({"nodeSelector": node_selector} if node_selector else {}) | asked


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
        "spec": {"taints": [*node.taints, _FAKE]},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def check_nodes(nodes: Sequence[Node], selector: Mapping[str, str] = SIMULATED) -> None:
    """Whether these nodes can be, all of them. Raises VMError."""
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise VMError(f'there are two nodes "{node.name}"')
        seen.add(node.name)
        wrong = document_faults(NODE, node_document(node, selector))
        if wrong:
            raise VMError(f'node "{node.name}": ' + "; ".join(f"{each.path}: {each.message}" for each in wrong))
