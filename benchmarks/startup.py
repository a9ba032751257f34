"""Start-up of the command line beside bare Python: wall time, since that is what a person feels."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.measure import Effort
from benchmarks.report import OURS, Line, Sort, Table

NAME = "startup"
_RUNS = 20
_BARE = ("-c", "pass")
_VERBS = ("--version", "config view")


def seconds(arguments: tuple[str, ...]) -> float:
    """One run of Python, from start to end."""
    start = time.perf_counter()
    subprocess.run((sys.executable, *arguments), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def run(effort: Effort) -> Table:
    """Measure, the commands in turn, so that a busy moment meets all of them."""
    commands = {verb: ("-m", "bayplan", *verb.split()) for verb in _VERBS}
    commands["bare"] = _BARE
    runs: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(max(1, round(_RUNS * effort.scale))):
        for name, arguments in commands.items():
            runs[name].append(1000 * seconds(arguments))

    def line(verb: str, who: str, name: str, goal: float | None = None) -> Line:
        return Line(f"ms of bayplan {verb}", who, Sort.EACH, (min(runs[name]), statistics.median(runs[name])), goal)

    lines = [
        line(verb, who, name, goal)
        for verb in _VERBS
        for who, name, goal in ((OURS, verb, 150.0 if verb == "--version" else None), ("python -c pass", "bare", None))
    ]
    return Table(NAME, f"wall time, {len(runs['bare'])} runs", ("best", "median"), tuple(lines))
