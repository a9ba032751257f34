"""The command: `python -m bayplan.conformance.agreement [--decisions 10000] [--seed 7] [--shape NAME] [-o json]`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence

import msgspec

from bayplan.conformance.agreement.campaign import run_shape
from bayplan.conformance.agreement.report import Report
from bayplan.conformance.agreement.shapes import SHAPES
from bayplan.model.errors import BayplanError

_INTERRUPTED = 130
_PARALLEL_SHARE = 0.05
"""Decisions of a shape with several threads, beside the others: each asks only whether the choice is among our best."""


def plan(decisions: int, names: Sequence[str]) -> dict[str, int]:
    """How many decisions each shape gets: those with one thread share them all, the others come on top."""
    single = [name for name in names if SHAPES[name].parallelism == 1]
    given = {name: -(-decisions // len(single)) for name in single}
    share = max(1, int(decisions * (_PARALLEL_SHARE if single else 1)))
    return {name: given.get(name, share) for name in names}


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


async def campaign(decisions: int, seed: int, names: Sequence[str], report: Report) -> None:
    """Shape after shape; the report holds what has been seen, however it ends."""
    for name, count in plan(decisions, names).items():
        await run_shape(SHAPES[name], count, seed, report, _tell)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; 0 if the agreement is reached, 1 if not, 130 if it was interrupted."""
    parser = argparse.ArgumentParser(prog="python -m bayplan.conformance.agreement", description=__doc__)
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--shape", action="append", choices=SHAPES, help="only this shape; may be given again")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    given = parser.parse_args(arguments)
    report, code = Report(), None
    try:
        asyncio.run(campaign(given.decisions, given.seed, given.shape or [*SHAPES], report))
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BayplanError as error:
        sys.stderr.write(f"{error.code} {error}\n")
        code = 1
    if given.output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report.document())).decode() + "\n")
    else:
        sys.stdout.write("\n".join(report.lines()) + "\n")
    return code if code is not None else int(not report.reached)


if __name__ == "__main__":
    raise SystemExit(main())
