"""One run: the pods of a trace come one after the other, and a scheduler with one policy places them.

It is the scheduler that places the pods of the embedded engine, with a profile that `explain` could be asked about.
Nothing ends, and a pod that finds no place is not tried again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from bayplan.model.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.model.meta import ObjectMeta
from bayplan.model.nodes import Node, NodeStatus
from bayplan.model.pods import Container, Pod, PodSpec, ResourceRequirements
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.gpus.asking import RESOURCE, SHARE, WHOLE
from bayplan.scheduling.gpus.columns import MODEL
from bayplan.scheduling.plugins.gpu_policies.fragmentation import TypicalPod, typical
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.policies import profile
from bayplan.simulate.openb.trace import Trace, TraceNode, TracePod, arrivals, renamed

_MOST_PODS = 1000
"""On a node: the trace has no such limit."""
_PERCENT = 100
_NAMESPACE = "openb"


class Step(msgspec.Struct, frozen=True):
    """After a pod: what has been asked for and what is in use, in thousandths of a GPU, and where it went."""

    asked: int
    used: int
    node: str
    """Empty: nowhere."""


class Run(msgspec.Struct, frozen=True):
    """What came of a run."""

    policy: str
    seed: int
    pods: int
    placed: int
    allocated: dict[int, float]
    """The GPUs in use, in percent of all, by how many had been asked for, in percent of all: each percent from 0 on."""


def setting(
    trace: Trace, policy: str, seed: int, inflate: float
) -> tuple[FastScheduler, Iterator[tuple[TracePod, PodInfo]]]:
    """The scheduler with the trace's nodes, and the pods that come to it."""
    expected = typical(TypicalPod(pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.models) for pod in trace.pods)
    scheduler = FastScheduler(profile(policy, expected, seed))
    for there in renamed(trace, seed):
        scheduler.put_node(node_of(there))
    return scheduler, ((each, PodInfo(pod_of(each))) for each in arrivals(trace, seed, inflate))


def steps(trace: Trace, policy: str, seed: int, inflate: float) -> Iterator[Step]:
    """The run, pod by pod."""
    scheduler, arriving = setting(trace, policy, seed, inflate)
    asked = used = 0
    for each, pod in arriving:
        asked += each.total_gpu
        node = scheduler.place(pod)
        if node:
            used += each.total_gpu
            scheduler.put_pod(pod.with_devices(scheduler.devices(pod, node)), node)
        yield Step(asked, used, node)


def run(trace: Trace, policy: str, seed: int, inflate: float) -> Run:
    """A whole run."""
    sums: dict[int, list[float]] = {}
    placed = pods = 0
    per_cent = trace.capacity / _PERCENT
    for step in steps(trace, policy, seed, inflate):
        pods += 1
        placed += bool(step.node)
        sums.setdefault(round(step.asked / per_cent), []).append(round(step.used / per_cent, 2))
    return Run(policy, seed, pods, placed, dict(_by_percent(sums, round(inflate * _PERCENT))))


def _by_percent(sums: Mapping[int, Sequence[float]], last: int) -> Iterator[tuple[int, float]]:
    """The mean at each percent, as the paper's authors have it; where no pod came just then, what was in use before.

    In a cluster of their size pods come at every percent. In a small one they do not, and the authors' tables, which
    take the neighbours on both sides or nothing there, would have gaps, and more in use than was asked for.
    """
    before = 0.0
    for asked in range(last + 1):
        used = sums.get(asked)
        yield asked, round(sum(used) / len(used), 2) if used else before
        before = used[-1] if used else before


def node_of(node: TraceNode) -> Node:
    """A node of the trace as Kubernetes has it."""
    there = {"cpu": f"{node.cpu_milli}m", "memory": f"{node.memory_mib}Mi", "pods": str(_MOST_PODS)}
    if node.gpus:
        there[RESOURCE] = str(node.gpus)
    labels = {"kubernetes.io/hostname": node.name, **({MODEL: node.model} if node.model else {})}
    return Node(
        metadata=ObjectMeta(name=node.name, labels=labels), status=NodeStatus(capacity=there, allocatable=there)
    )


def pod_of(pod: TracePod) -> Pod:
    """A pod of the trace as Kubernetes has it."""
    requests = {"cpu": f"{pod.cpu_milli}m", "memory": f"{pod.memory_mib}Mi"}
    share = pod.gpus == 1 and pod.gpu_milli < WHOLE
    whole = {RESOURCE: str(pod.gpus)} if pod.gpus and not share else {}
    resources = ResourceRequirements(requests=requests | whole, limits=whole)
    container = Container(name="main", image="main", resources=resources)
    return Pod(
        metadata=ObjectMeta(
            name=pod.name, namespace=_NAMESPACE, annotations={SHARE: str(pod.gpu_milli)} if share else {}
        ),
        spec=PodSpec(containers=(container,), affinity=_models(pod.models)),
    )


def _models(models: tuple[str, ...]) -> Affinity | None:
    if not models:
        return None
    term = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=MODEL, operator="In", values=models),))
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=(term,))))
