"""Decisions a second, ours beside upstream's own scheduling cycle on the same cluster and pods, in the same run.

Ours counts all of a decision: choosing, and counting the pod in or out. Upstream's counts its SchedulePod alone, by the
wall clock, with its default parallelism on all cores: all nodes scored, as here, and with its default sampling.
"""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.pods import PodInfo, PodKey
from bayplan.scheduling.profiles import default_profile
from benchmarks import scheduling_peer
from benchmarks.measure import Effort, alone, cpu_time, most
from benchmarks.report import OURS, Line, Sort, Table
from benchmarks.scheduling_load import Load, load

NAME = "scheduling"
_WARM_UP, _STEPS = 2_000, 2_000
"""Enough for every shape to have come twice."""
_PEER_WARM_UP, _PEER_STEPS = 100, (1_000, 400, 100)
"""Fewer the larger the cluster: upstream takes up to two tenths of a second for a decision at 20,000 nodes."""
_PARALLELISM = 16
_ALL_NODES, _SAMPLED = 100, 0
MEASURES = {
    "interleaved": ("300 shapes, 10% deletions", 200),
    "recurring": ("one shape", 500),
    "distinct": ("each its own shape", 30),
    "spread": ("soft zone and host spread", 50),
    "affinity": ("pod affinity", 50),
}
"""What each load is called, and how many times upstream's rate is the goal at 5,000 nodes."""


def decided(path: Path) -> FastScheduler:
    """A scheduler that has gone through a whole load; for comparing placements."""
    plan = msgspec.json.decode(path.read_bytes(), type=Load)
    scheduler = _cluster(plan)
    _go_through(scheduler, _steps(plan))
    return scheduler


def rate(path: Path) -> float:
    """Decisions a second of CPU time, after the warm-up."""
    plan = msgspec.json.decode(path.read_bytes(), type=Load)
    scheduler, steps = _cluster(plan), _steps(plan)
    _go_through(scheduler, steps[: plan.warmup])
    gc.collect()
    gc.freeze()
    with cpu_time() as span:
        decisions = _go_through(scheduler, steps[plan.warmup :])
    return decisions / span.seconds


def _cluster(plan: Load) -> FastScheduler:
    scheduler = FastScheduler(default_profile(percentage_of_nodes_to_score=_ALL_NODES))
    for node in plan.nodes:
        scheduler.put_node(_as(Node, node))
    return scheduler


def _steps(plan: Load) -> list[PodInfo | PodKey]:
    steps: list[PodInfo | PodKey] = []
    for step in plan.steps:
        if step.create is not None:
            steps.append(PodInfo(_as(Pod, step.create)))
        else:
            namespace, _, name = (step.delete or "").partition("/")
            steps.append((namespace, name))
    return steps


def _go_through(scheduler: FastScheduler, steps: list[PodInfo | PodKey]) -> int:
    decisions = 0
    for step in steps:
        if isinstance(step, PodInfo):
            chosen = scheduler.choose(step)
            if isinstance(chosen, str):
                scheduler.put_pod(step, chosen)
            decisions += 1
        else:
            scheduler.drop_pod(step)
    return decisions


def _as(kind: type[Any], plain: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(plain), type=kind)


def _peer(path: Path, percentage: int) -> float:
    result = scheduling_peer.run(path, percentage, _PARALLELISM, limit=0)
    return result.decisions / result.seconds


def run(effort: Effort) -> Table:
    """Measure."""
    sizes = effort.sizes(1_000, 5_000, 20_000)
    lines: list[Line] = []
    notes = ["goals are multiples of upstream's rate at 5,000 nodes with all nodes scored: see ratio"]
    with tempfile.TemporaryDirectory() as folder:
        for scenario, (measure, times) in MEASURES.items():
            rates: dict[str, list[float | None]] = {OURS: [], "kube-scheduler": [], "kube-scheduler (sampling)": []}
            for size, steps in zip(sizes, _PEER_STEPS, strict=True):
                mine, theirs = Path(folder, "ours.json"), Path(folder, "theirs.json")
                alone(_write, mine, scenario, size, _WARM_UP, _STEPS)
                alone(_write, theirs, scenario, size, _PEER_WARM_UP, steps)
                rates[OURS].append(most(effort, rate, mine))
                for who, percentage in (("kube-scheduler", _ALL_NODES), ("kube-scheduler (sampling)", _SAMPLED)):
                    try:
                        rates[who].append(_peer(theirs, percentage))
                    except LabUnavailableError as error:
                        rates[who].append(None)
                        notes.append(str(error).splitlines()[0])
            lines += [Line(measure, who, Sort.RATE, tuple(found)) for who, found in rates.items()]
            ours, upstream = rates[OURS][1], rates["kube-scheduler"][1]
            if ours and upstream:
                reached = "reached" if ours >= times * upstream else "MISSED"
                notes.append(f"{measure}: {ours / upstream:,.0f} times at {sizes[1]:,} nodes, goal {times}: {reached}")
    columns = tuple(f"{size:,} nodes" for size in sizes)
    title = "decisions/s, all nodes scored unless said"
    return Table(NAME, title, columns, tuple(lines), sizes, tuple(dict.fromkeys(notes)))


def _write(path: Path, scenario: str, nodes: int, warm_up: int, steps: int) -> None:
    load(scenario, nodes, steps, warm_up).write(path)
