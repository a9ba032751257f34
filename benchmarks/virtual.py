"""Virtual seconds simulated a second: `bayplan up --virtual 24h --seed 7`, and two and three days for the growth.

Whole days, since a day's load is not that of its night. The peer is a control plane in real time, which simulates one
second a second whatever it runs on.
"""

from __future__ import annotations

import resource
import subprocess
import sys

from benchmarks.measure import Effort, most
from benchmarks.report import OURS, Line, Sort, Table

NAME = "virtual"
_SEED = "7"


def simulated(span: int) -> float:
    """Virtual seconds a second of CPU, start-up and printing included."""
    command = (sys.executable, "-m", "bayplan", "up", "--virtual", f"{span}s", "--seed", _SEED, "-o", "json")
    before = _children()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return span / (_children() - before)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(effort: Effort) -> Table:
    """Measure."""
    sizes = effort.sizes(24 * 3600, 48 * 3600, 72 * 3600)
    return Table(
        NAME,
        f"virtual seconds a second (of CPU time), bayplan up --virtual SPAN --seed {_SEED}",
        tuple(f"{size / 3600:.3g}h" for size in sizes),
        (
            Line("virtual s/s", OURS, Sort.RATE, tuple(most(effort, simulated, size) for size in sizes)),
            Line("virtual s/s", "real time", Sort.RATE, (1.0,) * len(sizes)),
        ),
        sizes,
    )
