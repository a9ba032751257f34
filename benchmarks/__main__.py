"""The command: `python -m benchmarks [NAME...] [-o json] [--scale 0.1] [--repeats 3] [--cold]`."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
from collections.abc import Callable, Sequence

import msgspec

from benchmarks import (
    binding,
    burst,
    cli_get,
    cpu_assignment,
    creation,
    decoding,
    fanout,
    lab,
    ledger,
    memory,
    observing,
    openb,
    reflector,
    scheduling,
    served,
    served_watch,
    simulate_scenario,
    startup,
    throttling,
    tiers,
    virtual,
)
from benchmarks.measure import Effort
from benchmarks.report import Table, plain, render

BENCHMARKS: dict[str, Callable[[Effort], Table]] = {
    module.NAME: module.run
    for module in (
        creation,
        memory,
        fanout,
        virtual,
        decoding,
        startup,
        served,
        served_watch,
        reflector,
        scheduling,
        binding,
        cpu_assignment,
        cli_get,
        burst,
        tiers,
        lab,
        throttling,
        observing,
        ledger,
        openb,
        simulate_scenario,
    )
}
LEGEND = """\
growth  the cost of one operation at the largest size, in units of that at the smallest (1 is flat)
ratio   how many times better bayplan is than the program of that line (below 1: worse)
goal    judged at the largest size
"""


def header(effort: Effort) -> dict[str, object]:
    """What the figures depend on."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load": [round(each, 2) for each in os.getloadavg()],
        "scale": effort.scale,
        "repeats": effort.repeats,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, all without a name, and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("-o", "--output", choices=["json"], help="one JSON document instead of tables")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full sizes (default 1)")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many (default 3)")
    parser.add_argument("--cold", action="store_true", help="build the lab's programs with empty caches, too")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.names if name not in BENCHMARKS]:
        parser.error(f"no benchmark {unknown[0]!r}: there are {', '.join(BENCHMARKS)}")
    effort = Effort(given.scale, max(1, given.repeats), given.cold)
    head = header(effort)
    if given.output is None:
        print("  ".join(f"{name} {value}" for name, value in head.items()), LEGEND, sep="\n", flush=True)
    tables = []
    for name in given.names or BENCHMARKS:
        table = BENCHMARKS[name](effort)
        tables.append(plain(table))
        if given.output is None:
            print(render(table), flush=True)
    if given.output is not None:
        print(msgspec.json.format(msgspec.json.encode({"run": head, "benchmarks": tables})).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
