"""Start-up of the lab, wall time: its programs there (warm), and with `--cold` building them with empty caches.

There is no peer to run beside it: kind and minikube need containers. The served engine's start is the measure of what a
control plane costs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bayplan.cluster.lab.lab import WHOLE, Lab, LabOptions
from bayplan.cluster.lab.toolchain import LabUnavailableError, Toolchain
from benchmarks.measure import Effort
from benchmarks.report import Line, Sort, Table
from benchmarks.serving import BARE, engine

NAME = "lab"
_GOAL = 20.0
_BUILD = "from bayplan.cluster.lab.toolchain import Toolchain; Toolchain().build(lambda told: None)"


def started(options: LabOptions) -> float:
    """Seconds until a lab is ready."""
    start = time.perf_counter()
    with Lab(options, name="bench"):
        return time.perf_counter() - start


def served() -> float:
    """Seconds until the embedded engine is served, from the start of its process."""
    start = time.perf_counter()
    with engine():
        return time.perf_counter() - start


def built() -> float:
    """Seconds of building all programs; modules that are here already are not fetched again."""
    with _empty_caches() as environment:
        start = time.perf_counter()
        subprocess.run((sys.executable, "-c", _BUILD), check=True, env=environment)
        return time.perf_counter() - start


@contextmanager
def _empty_caches() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        yield {**os.environ, "XDG_CACHE_HOME": folder, "GOCACHE": str(Path(folder, "go-build"))}


def run(effort: Effort) -> Table:
    """Measure."""
    columns = ("best", "median")

    def line(who: str, start: Callable[[], float], goal: float | None = None) -> Line:
        runs = [start() for _ in range(effort.repeats)]
        return Line("s until ready, warm", who, Sort.EACH, (min(runs), statistics.median(runs)), goal)

    lines, notes = [], []
    try:
        Toolchain().programs()
        lines.append(line("bayplan lab, whole", lambda: started(WHOLE), _GOAL))
        lines.append(line("bayplan lab, API server and etcd", lambda: started(BARE)))
    except LabUnavailableError as error:
        notes.append(f"no lab here: {error.message}")
    lines.append(line("bayplan, embedded engine served", served))
    if effort.cold:
        lines.append(Line("s of building, cold", "bayplan lab", Sort.EACH, (built(), None)))
    else:
        notes.append("the cold build, minutes, is not measured: --cold does")
    return Table(NAME, f"start-up of a lab, {effort.repeats} runs", columns, tuple(lines), notes=tuple(notes))
