"""A scenario file run to its end: pods a second of CPU time and the peak of memory, at 5,000 nodes and 100,000 pods.

All of `bayplan simulate run` is in it: reading the file, load, scheduling, kubelets, the log, samples and summary. Half
of the pods are those of Deployments, half come by themselves and end after some minutes; all start at once when placed.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from bayplan.simulate.policy import configuration
from bayplan.simulate.run import Order, rehearse
from bayplan.simulate.scenario_file import parse_scenario
from benchmarks.measure import Effort, cpu_time, forget_peak, peak, repeated
from benchmarks.report import OURS, Line, Sort, Table

NAME = "simulate_scenario"
_DEPLOYMENTS = 10
_GOAL = 60.0
_MEMORY = 2 << 30


def scenario(nodes: int, pods: int) -> str:
    """The file."""
    head = f"""\
duration: 1h
startUp: 0s
nodes:
  - {{name: node, count: {nodes}, capacity: {{cpu: 64, memory: 256Gi}}}}
teams: [{{name: load}}]
workloads:
  - name: task
    namespace: load
    kind: Pod
    arrivals: {{perHour: {pods}, count: {pods // 2}}}
    behaviour: {{run-for: 10m}}
    sizes:
      - {{share: 3, resources: {{requests: {{cpu: 1, memory: 2Gi}}}}}}
      - {{share: 1, resources: {{requests: {{cpu: 4, memory: 16Gi}}}}}}
    spec: {{restartPolicy: Never, containers: [{{name: main, image: task}}]}}
"""
    services = "".join(
        f"""\
  - name: serve-{number}
    namespace: load
    kind: Deployment
    spec:
      replicas: {max(1, (pods - pods // 2) // _DEPLOYMENTS)}
      template:
        spec:
          containers: [{{name: main, image: serve, resources: {{requests: {{cpu: {1 + number % 3}, memory: 2Gi}}}}}}]
"""
        for number in range(_DEPLOYMENTS)
    )
    return head + services


def run_once(nodes: int, pods: int) -> tuple[float, float]:
    """CPU seconds and peak bytes of a whole run."""
    text = scenario(nodes, pods)
    forget_peak()
    with tempfile.TemporaryDirectory() as folder, cpu_time() as span:
        read = parse_scenario("bench.yaml", text)
        order = Order(scenario=read, name="bench", seed=1, duration=read.duration.micros)
        summary = asyncio.run(rehearse(order, Path(folder, "events.jsonl"), configuration(read, "default", 1)))
    assert summary.created >= pods * 0.95, summary.created
    return span.seconds, float(peak())


def run(effort: Effort) -> Table:
    """Measure."""
    pods = effort.sizes(5_000, 20_000, 100_000)
    found = [min(repeated(effort, run_once, max(1, size // 20), size)) for size in pods]
    seconds, memory = (_GOAL, _MEMORY / (1 << 20)) if effort.scale >= 1 else (None, None)
    return Table(
        NAME,
        "a scenario from file to summary",
        tuple(f"{size // 20:,} nodes, {size:,} pods" for size in pods),
        (
            Line("CPU s", OURS, Sort.WHOLE, tuple(each[0] for each in found), seconds),
            Line("pods/s", OURS, Sort.RATE, tuple(size / each[0] for size, each in zip(pods, found, strict=True))),
            Line("peak MiB", OURS, Sort.WHOLE, tuple(each[1] / (1 << 20) for each in found), memory),
        ),
        pods,
    )
