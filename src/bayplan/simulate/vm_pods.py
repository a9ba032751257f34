"""The VMs of a scenario as pods: what chance gave each of them, and the pod that simulate/vms would make of it.

Consumptions are cores and GiB here: the shape that they are shares of has one of each. A pod is named
`virt-launcher-ID-1`, and the next one after a migration `virt-launcher-ID-2`, so
that names do not depend on the engine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from bayplan.cluster.embedded.kubelet.behaviour import PREFIX
from bayplan.cluster.kinds import POD
from bayplan.model.quantity import NANOS, parse
from bayplan.simulate.entry import Amounts
from bayplan.simulate.fault_kinds import Fault, FaultKind
from bayplan.simulate.manifests import VM_GROUP, Made
from bayplan.simulate.scenario import Scenario, VmGroup
from bayplan.simulate.vms.constraints import constraint_faults
from bayplan.simulate.vms.launcher import launcher
from bayplan.simulate.vms.vm import GIBI, VM, NodeShape

SHAPE = NodeShape(cores=1, memory=GIBI)
WISHED = "simulate.bayplan.dev/wished"
"""The node on which somebody would like a VM."""


def drawn(group: VmGroup, number: int, chance: random.Random | None) -> VM:
    """One VM of a group. Without chance it has the median size."""
    return VM(
        id=f"{group.name}-{number}",
        cpu_consumption=_amount(group.cpu, chance),
        memory_consumption=_amount(group.memory, chance) / GIBI,
        dirty_rate_mbps=group.dirty_rate,
        labels={**group.labels, VM_GROUP: group.name},
        node_selector=dict(group.node_selector),
        affinity=dict(group.affinity),
        tolerations=list(group.tolerations),
        topology_spread=list(group.topology_spread_constraints),
        priority_class_name=group.priority_class_name,
    )


def asked_faults(group: VmGroup) -> Iterator[Fault]:
    """What is wrong with a group's labels and constraints, by path."""
    if VM_GROUP in group.labels:
        message = "expected no such label: it says whose VMs these are, and is set with their pods"
        yield Fault(f"labels.{VM_GROUP}", message, FaultKind.VALUE)
    asked = {
        "nodeSelector": group.node_selector,
        "affinity": group.affinity,
        "tolerations": group.tolerations,
        "topologySpreadConstraints": group.topology_spread_constraints,
        "priorityClassName": group.priority_class_name,
    }
    yield from constraint_faults(group.labels, asked)


def _amount(given: str | int | float | Amounts, chance: random.Random | None) -> float:
    if not isinstance(given, Amounts):
        return parse(str(given)).nanos / NANOS
    amount = parse(str(given.median)).nanos / NANOS
    if chance is not None:
        amount *= math.exp(chance.gauss(0, 1) * math.log(given.spread))
    return amount if given.most is None else min(amount, parse(str(given.most)).nanos / NANOS)


def pod(vm: VM, group: VmGroup, scenario: Scenario, *, turn: int = 1, wished: str = "", never: str = "") -> Made:
    """The pod of a VM: its first, or one that it migrates to."""
    body = launcher(vm, SHAPE, selector={}, never=never)
    meta = body["metadata"]
    del meta["generateName"]
    meta["name"] = f"virt-launcher-{vm.id}-{turn}"
    for model in scenario.usage_models:
        if model.name == group.usage:
            meta["annotations"] |= {PREFIX + key: str(text) for key, text in model.behaviour().items()}
    if wished:
        meta["annotations"][WISHED] = wished
    return Made(POD, group.namespace, body)


def first_pod(group: VmGroup, scenario: Scenario) -> Made:
    """The pod of a group's first VM, of median size: what an API server is asked about."""
    return pod(drawn(group, 1, None), group, scenario)
