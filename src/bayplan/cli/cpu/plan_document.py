"""A plan for programs. docs/cpu-plan.md describes the shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.node.plan import Plan, Pool, Share, blockage, pools, shares
from bayplan.node.sets import format_list, mask_of

if TYPE_CHECKING:
    from bayplan.cli.cpu.plan_input import Planned
    from bayplan.node.admission import Holding
    from bayplan.node.plan import Blockage, Outcome

Doc = dict[str, Any]


def plan_document(planned: Planned) -> Doc:
    """The whole plan as one value."""
    plan = planned.plan
    return {
        **settings_document(planned),
        "pods": [_pod(plan, each) for each in plan.outcomes],
        "heldBefore": [
            {"uid": uid, "containers": [_held(plan, *each) for each in plan.site.managers.holdings(uid).items()]}
            for uid in plan.others
        ],
        "pools": [pool_document(each) for each in pools(plan.site.managers)],
    }


def settings_document(planned: Planned) -> Doc:
    """Which machine, set how."""
    policies = planned.plan.configuration.policies
    return {
        "machine": planned.plan.machine.name,
        "policies": {
            "cpuManagerPolicy": policies.cpu,
            "cpuManagerPolicyOptions": policies.cpu_options,
            "topologyManagerPolicy": policies.topology.policy,
            "topologyManagerScope": policies.topology.scope,
            "topologyManagerPolicyOptions": policies.topology.options,
            "memoryManagerPolicy": policies.memory,
        },
        "assumed": planned.assumed,
        "notes": planned.notes,
    }


def _pod(plan: Plan, outcome: Outcome) -> Doc:
    found = identity(outcome)
    if not outcome.admitted:
        return {**found, "blocked": blockage_document(blockage(outcome))}
    return {**found, "containers": [_share(plan, each) for each in shares(plan, outcome)]}


def identity(outcome: Outcome) -> Doc:
    """Which pod, and whether it is let in."""
    pod, need = outcome.candidate.pod, outcome.candidate.need
    return {
        "namespace": pod.metadata.namespace,
        "name": pod.metadata.name,
        "uid": need.uid,
        "qosClass": need.qos.value,
        "admitted": outcome.admitted,
    }


def _share(plan: Plan, share: Share) -> Doc:
    affinity = share.held.affinity
    return {
        **_held(plan, share.container, share.held),
        "role": share.role.value,
        "affinity": None if affinity is None or affinity.nodes is None else format_list(affinity.nodes),
        "preferred": affinity is not None and affinity.preferred,
        "hints": share.hints,
        "decided": share.decided,
        "why": share.why,
    }


def _held(plan: Plan, name: str, held: Holding) -> Doc:
    topology = plan.machine.topology
    cores = mask_of(core for core, members in topology.cores.items() if members & held.cpus)
    return {
        "name": name,
        "exclusive": bool(held.cpus),
        "cpus": format_list(held.cpus or plan.site.managers.cpu.shared),
        "cores": format_list(cores),
        "numaNodes": format_list(held.nodes),
        "memory": [
            {"resource": block.resource, "numaNodes": format_list(block.nodes), "bytes": block.size}
            for block in held.memory
        ],
        "devices": held.devices,
    }


def pool_document(pool: Pool) -> Doc:
    """One NUMA node."""
    kinds = ("cpus", "reserved", "exclusive", "shared", "free")
    return {
        "numaNode": pool.node,
        **{kind: format_list(getattr(pool, kind)) for kind in kinds},
        "freeMemory": pool.memory,
        "freeDevices": pool.devices,
    }


def blockage_document(found: Blockage) -> Mapping[str, Any]:
    """What keeps a pod out."""
    told = {field: getattr(found, field) for field in found.__struct_fields__ if field != "pools"}
    return {**msgspec.to_builtins(told), "free": [pool_document(each) for each in found.pools]}
