"""`bayplan simulate openb`: how much of a GPU cluster policies can give away, by the trace of a real one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.invocation import output_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.cli.printers import Listing
    from bayplan.simulate.openb.run import Run
    from bayplan.simulate.openb.table import Line, Mean

_FILE = click.Path(path_type=Path)
TIES = "nodes with the same score: the first in an order that the seed shuffles"


def _seeds(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[int, ...]:
    """`42`, `42-51` or `1,2,5-7`."""
    found: list[int] = []
    for part in value.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            raise click.BadParameter(f'"{part}" is neither a seed nor a range such as 42-51')
        found += range(int(first), int(last) + 1)
    return tuple(found)


def _policies(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[str, ...]:
    """`all`, or policies with commas between."""
    from bayplan.scheduling.policies import GPU_POLICIES

    if value == "all":
        return tuple(GPU_POLICIES)
    names = tuple(value.lower().split(","))
    for name in names:
        if name not in GPU_POLICIES:
            raise click.BadParameter(f'no policy "{name}"; there are {", ".join(GPU_POLICIES)}')
    return names


@click.command()
@click.option("--nodes", required=True, type=_FILE, metavar="FILE", help="The trace's nodes, as CSV.")
@click.option("--pods", required=True, type=_FILE, metavar="FILE", help="The trace's pods, as CSV.")
@click.option("--policy", "policies", callback=_policies, default="all", show_default=True, help="Which, with commas.")
@click.option("--seeds", callback=_seeds, default="42-51", show_default=True, help="As 42-51 or 1,2,3.")
@click.option(
    "--inflate", type=click.FloatRange(min=0, min_open=True), default=1.3, show_default=True,
    help="Pods come until they ask for so many times the cluster's GPUs.",
)  # fmt: skip
@click.option("--expected", type=_FILE, metavar="FILE", help="A published table to print beside ours, as CSV.")
@click.option("--step", type=click.IntRange(1, 100), default=10, show_default=True, help="Percent between columns.")
@click.option("--processes", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="cores")
@output_option("table", "json", "yaml")
def openb(nodes: Path, pods: Path, policies: Sequence[str], seeds: Sequence[int], **flags: Any) -> None:
    """Place a trace's pods one after the other, by each policy and with each seed.

    \b
    bayplan simulate openb --nodes openb_node_list_gpu_node.csv --pods openb_pod_list_default.csv
    bayplan simulate openb --nodes NODES --pods PODS --policy fgd,bestfit --seeds 42-44 -o json

    Shown are the GPUs in use, in percent of all, by how many the pods so far have asked for. The seed decides on the
    order of the pods, on which of them come again, and on the order of the nodes.
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
        found = list(in_processes(run, asked_for, flags["processes"], step))
    means = lines(found, expected)
    if flags["output"] in ("json", "yaml"):
        click.echo(document(_document(found, means, inflate), flags["output"]), nl=False)
        return
    asked = [*range(0, round(inflate * 100) + 1, flags["step"])]
    click.echo(render(_runs(found, asked)))
    click.echo(render(_means(means, asked)), nl=False)
    click.echo(f"\nGPUs in use by GPUs asked for, both in percent of all {trace.capacity // 1000}; {TIES}.")


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


def _document(runs: Sequence[Run], lines: Sequence[Line], inflate: float) -> dict[str, Any]:
    def means(found: dict[int, Mean]) -> dict[str, Any]:
        return {
            str(asked): {"mean": round(each.value, 4), "standardError": each.error and round(each.error, 4)}
            for asked, each in found.items()
        }

    return {
        "kind": "OpenbAllocation",
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
