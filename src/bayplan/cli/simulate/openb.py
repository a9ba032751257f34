"""`bayplan simulate openb`: how much of a GPU cluster policies can give away, by the trace of a real one."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.invocation import output_option
from bayplan.cli.simulate.several import names, seeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.cli.printers import Listing
    from bayplan.simulate.openb.run import Run
    from bayplan.simulate.openb.table import Line, Mean

_FILE = click.Path(path_type=Path)
TIES = "nodes with the same score: the first in an order that the seed shuffles"
_COLUMNS = 15
"""Steps that a table has at most, unless somebody says otherwise: more are wider than a screen."""
_MOST = 100
"""Times the cluster's GPUs: a hundred say no more than two."""


def _policies(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """`all`, or policies."""
    from bayplan.scheduling.policies import GPU_POLICIES

    found = names(ctx, param, values)
    for name in found:
        if name not in GPU_POLICIES and name != "all":
            raise click.BadParameter(f'no policy "{name}"; there are {", ".join(GPU_POLICIES)}')
    return tuple(GPU_POLICIES) if "all" in found else found


def _inflation(_ctx: click.Context, _param: click.Parameter, value: float) -> float:
    if not 0 < value <= _MOST:  # a nan is on no side of anything
        raise click.BadParameter(f"expected a number above 0, and at most {_MOST}; got {value}")
    return value


def step_for(inflate: float) -> int:
    """Percent between columns such that they fit a screen: 1, 2, 5, 10, 20, 50 and so on."""
    wanted = max(1.0, inflate * 100 / _COLUMNS)
    scale: int = 10 ** math.floor(math.log10(wanted))
    return next(scale * each for each in (1, 2, 5, 10) if scale * each >= wanted)


@click.command()
@click.option("--nodes", required=True, type=_FILE, metavar="FILE", help="The trace's nodes, as CSV.")
@click.option("--pods", required=True, type=_FILE, metavar="FILE", help="The trace's pods, as CSV.")
@click.option(
    "--policy", "policies", multiple=True, callback=_policies, default=("all",), show_default="all",
    help="Which: with commas, or several times.",
)  # fmt: skip
@click.option("--seeds", callback=seeds, default="42-51", show_default=True, help="As 42-51 or 1,2,3.")
@click.option(
    "--inflate", type=float, callback=_inflation, default=1.3, show_default=True,
    help="Pods come until they ask for so many times the cluster's GPUs.",
)  # fmt: skip
@click.option("--expected", type=_FILE, metavar="FILE", help="A published table to print beside ours, as CSV.")
@click.option(
    "--step", type=click.IntRange(1, 100 * _MOST), show_default="by --inflate", help="Percent between columns."
)
@click.option("--processes", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="cores")
@output_option("table", "json", "yaml")
def openb(nodes: Path, pods: Path, policies: Sequence[str], seeds: Sequence[int], **flags: Any) -> int:
    """Place a trace's pods one after the other, by each policy and with each seed.

    \b
    bayplan simulate openb --nodes openb_node_list_gpu_node.csv --pods openb_pod_list_default.csv
    bayplan simulate openb --nodes NODES --pods PODS --policy fgd,bestfit --seeds 42-44 -o json

    Shown are the GPUs in use, in percent of all, by how many the pods so far have asked for. The seed decides on the
    order of the pods, on which of them come again, and on the order of the nodes. Ctrl-C prints what is done so far.
    """
    from bayplan.cli.printers import document, render
    from bayplan.cli.progress import progress
    from bayplan.simulate.openb.run import run
    from bayplan.simulate.openb.table import lines, read_expected
    from bayplan.simulate.openb.trace import TraceError, read_trace
    from bayplan.simulate.processes import in_processes

    trace = read_trace(nodes, pods)
    if not trace.capacity:
        raise TraceError(f"{nodes}: no node has a GPU")
    expected = read_expected(flags["expected"]) if flags["expected"] else None
    inflate: float = flags["inflate"]
    asked_for = [(trace, policy, seed, inflate) for policy in policies for seed in seeds]
    with progress("placing", len(asked_for)) as step:
        results = in_processes(run, asked_for, flags["processes"], step)
    found = [*results.found.values()]
    means = lines(found, expected)
    if found and flags["output"] in ("json", "yaml"):
        click.echo(document(_document(found, means, inflate, complete=results.complete), flags["output"]), nl=False)
    elif found:
        asked = [*range(0, round(inflate * 100) + 1, flags["step"] or step_for(inflate))]
        click.echo(render(_runs(found, asked)))
        click.echo(render(_means(means, asked)), nl=False)
        click.echo("" if results.complete else "\nPartial: not all runs were done.")
        click.echo(f"GPUs in use by GPUs asked for, both in percent of all {trace.capacity // 1000}; {TIES}.")
    if not results.complete:
        click.echo(results.how_far, err=True)
    return results.exit_code


def _runs(runs: Sequence[Run], asked: Sequence[int]) -> Listing:
    from bayplan.cli.printers import Column, Listing, Row

    heads = ("POLICY", "SEED", "PODS", "PLACED", *map(str, asked))
    rows = [
        Row(
            [run.policy, run.seed, run.pods, run.placed, *(_number(run.allocated.get(each)) for each in asked)],
            "",
            None,
        )
        for run in runs
    ]
    return Listing([*map(Column, heads)], rows)


def _means(lines: Sequence[Line], asked: Sequence[int]) -> Listing:
    from bayplan.cli.printers import Column, Listing, Row

    rows = []
    for line in lines:
        rows.append(Row([line.policy, "mean", *(_number(_value(line.means.get(each))) for each in asked)], "", None))
        if any(each.error is not None for each in line.means.values()):
            rows.append(Row(["", "std. error", *(_number(_error(line.means.get(each))) for each in asked)], "", None))
        if line.expected:
            rows.append(Row(["", "expected", *(_number(_value(line.expected.get(each))) for each in asked)], "", None))
    return Listing([*map(Column, ("POLICY", "OF ALL SEEDS", *map(str, asked)))], rows)


def _value(mean: Mean | None) -> float | None:
    return None if mean is None else mean.value


def _error(mean: Mean | None) -> float | None:
    return None if mean is None else mean.error


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _document(runs: Sequence[Run], lines: Sequence[Line], inflate: float, *, complete: bool) -> dict[str, Any]:
    def means(found: dict[int, Mean]) -> dict[str, Any]:
        return {
            str(asked): {"mean": round(each.value, 4), "standardError": each.error and round(each.error, 4)}
            for asked, each in found.items()
        }

    return {
        "kind": "OpenbAllocation",
        "complete": complete,
        "inflate": inflate,
        "ties": TIES,
        "runs": [
            {
                "policy": run.policy,
                "seed": run.seed,
                "pods": run.pods,
                "placed": run.placed,
                "allocated": {str(asked): used for asked, used in run.allocated.items()},
            }
            for run in runs
        ],
        "means": [
            {
                "policy": line.policy,
                "allocated": means(line.means),
                **({"expected": means(line.expected)} if line.expected else {}),
            }
            for line in lines
        ],
    }
