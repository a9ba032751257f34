"""Runs over a trace like openb's default one: placements a second of CPU time, by policy and by the number of nodes.

Beside them the same scheduler without anything kept between decisions, as `explain` looks at a pod: every node filtered
and scored anew. It is measured on the first pods alone.
"""

from __future__ import annotations

import itertools
import random

from bayplan.scheduling.policies import GPU_POLICIES
from bayplan.simulate.openb.run import setting, steps
from bayplan.simulate.openb.trace import Trace, TraceNode, TracePod
from benchmarks.measure import Effort, cpu_time, most
from benchmarks.report import OURS, Line, Sort, Table

NAME = "openb"
_FRESH_PODS = 100
_NODES = (("G2", 8, 96_000, 55), ("T4", 2, 64_000, 25), ("P100", 2, 64_000, 10), ("V100", 8, 96_000, 10))
"""Model, GPUs, CPU, share: roughly the trace's."""
_SHAPES = 90


def made(nodes: int, seed: int = 1) -> Trace:
    """A trace of that many nodes, with pods for all of their GPUs in as many shapes as openb's has."""
    chance = random.Random(seed)
    found = []
    for number, (model, gpus, cpu, _) in enumerate(chance.choices(_NODES, [each[3] for each in _NODES], k=nodes)):
        found.append(TraceNode(f"node-{number:05d}", cpu, 4 * cpu, gpus, model))
    shares = [(1, chance.randrange(50, 950, 10)) for _ in range(_SHAPES - 2)]
    asks = [chance.choice(((0, 0), (1, 1000), share, share)) for share in shares] + [(2, 1000), (8, 1000)]
    shapes = [TracePod("", 1000 * chance.choice((1, 2, 4, 6, 8, 12)), 8192, *ask) for ask in asks]
    often = [1 / (place + 1) for place in range(_SHAPES)]
    pods: list[TracePod] = []
    asked = 0
    while asked < 1000 * sum(node.gpus for node in found):
        shape = chance.choices(shapes, often)[0]
        pods.append(TracePod(f"pod-{len(pods):06d}", shape.cpu_milli, shape.memory_mib, shape.gpus, shape.gpu_milli))
        asked += shape.total_gpu
    return Trace(tuple(found), tuple(pods))


def rate(policy: str, nodes: int) -> float:
    """Placements a second, the whole of a run."""
    trace = made(nodes)
    with cpu_time() as span:
        pods = sum(1 for _ in steps(trace, policy, 42, 1.3))
    return pods / span.seconds


def fresh(policy: str, nodes: int) -> float:
    """The same, looking at every node for every pod."""
    scheduler, arriving = setting(made(nodes), policy, 42, 1.3)
    first = [pod for _, pod in itertools.islice(arriving, _FRESH_PODS)]
    with cpu_time() as span:
        for pod in first:
            if decision := scheduler.decide(pod).node:
                scheduler.put_pod(pod.with_devices(scheduler.devices(pod, decision)), decision)
    return len(first) / span.seconds


def run(effort: Effort) -> Table:
    """Measure."""
    sizes = effort.sizes(300, 1_200, 5_000)
    lines: list[Line] = []
    for policy in GPU_POLICIES:
        for who, measured in ((OURS, rate), ("nothing kept", fresh)):
            rates = tuple(most(effort, measured, policy, size) for size in sizes)
            lines.append(Line(policy, who, Sort.RATE, rates))
    columns = tuple(f"{size:,} nodes" for size in sizes)
    return Table(NAME, "pods of a GPU trace placed/s", columns, tuple(lines), sizes)
