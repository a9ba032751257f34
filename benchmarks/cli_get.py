"""`bayplan get pods` beside `kubectl get pods` on the served engine: wall time, since that is what a person feels."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from bayplan.cluster.lab.toolchain import Toolchain
from benchmarks.measure import Effort
from benchmarks.report import OURS, Line, Sort, Table
from benchmarks.serving import engine

NAME = "cli_get"
_RUNS = 7


def seconds(command: Sequence[str]) -> float:
    """One run, from start to end."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def kubectl() -> str | None:
    """The lab's own kubectl, or that of PATH."""
    found = next(each for each in Toolchain().find() if each.name == "kubectl")
    return shutil.which("kubectl") if found.path is None else str(found.path)


def run(effort: Effort) -> Table:
    """Measure, the commands in turn, so that a busy moment meets both."""
    peer = kubectl()
    programs = {OURS: (sys.executable, "-m", "bayplan")} | ({} if peer is None else {"kubectl": (peer,)})
    lines = []
    for size in effort.sizes(10, 500, 5_000):
        runs: dict[str, list[float]] = {who: [] for who in programs}
        with engine(size) as target:
            arguments = ("get", "pods", "-A", f"--kubeconfig={target.kubeconfig}")
            for program in programs.values():
                seconds((*program, *arguments))  # kubectl keeps what it learns of a server on disk
            for _ in range(_RUNS):
                for who, program in programs.items():
                    runs[who].append(1000 * seconds((*program, *arguments)))
        lines += [
            Line(f"ms of get pods, {size:,} pods", who, Sort.EACH, (min(each), statistics.median(each)))
            for who, each in runs.items()
        ]
    notes = () if peer else ("kubectl is not here",)
    return Table(NAME, f"wall time, {_RUNS} runs", ("best", "median"), tuple(lines), notes=notes)
