"""`bayplan simulate compare`: one scenario under several policies, with what the differences are worth."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.invocation import output_option
from bayplan.cli.simulate.run import twin_option
from bayplan.cli.simulate.several import names
from bayplan.cli.spans import span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bayplan.cli.printers import Listing
    from bayplan.service.durations import Duration
    from bayplan.simulate.comparing import Interval, Line
    from bayplan.simulate.summary import Summary


@click.command()
@click.argument("file", metavar="FILE")
@twin_option
@click.option(
    "--policy", "policies", multiple=True, required=True, callback=names,
    help="Two or more, each with --policy or with commas; the others are compared with the first.",
)  # fmt: skip
@click.option(
    "--seeds", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many, from the scenario's on."
)
@click.option("--for", "lasts", callback=span, metavar="SPAN", help="Another duration than the scenario's: 24h.")
@click.option("--processes", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="cores")
@output_option("table", "json", "yaml")
def compare(
    file: str,
    twin_file: Path | None,
    policies: tuple[str, ...],
    seeds: int,
    lasts: Duration | None,
    processes: int,
    output: str | None,
) -> int:
    """Run a scenario under each policy with the same seeds, and say in words what the difference is.

    \b
    bayplan simulate compare week.yaml --policy default --policy fgd --seeds 10

    Runs with the same seed have the same arrivals, so they are compared pair by pair. Margins are 95% confidence
    intervals; a star marks a difference that chance does not explain. Ctrl-C compares what is done so far.
    """
    from bayplan.cli.printers import document, render
    from bayplan.cli.progress import progress
    from bayplan.cli.simulate.run import read_twin, scenario_of
    from bayplan.simulate.comparing import compared, under, verdict
    from bayplan.simulate.policy import configuration
    from bayplan.simulate.processes import in_processes
    from bayplan.simulate.run import Order

    if len(policies) < 2:
        raise click.UsageError("expected two different policies at least: --policy default --policy fgd")
    name, scenario = scenario_of(file, read_twin(twin_file))
    for policy in policies:
        configuration(scenario, policy, scenario.seed)  # a name that is none is refused before anything runs
    duration = (scenario.duration if lasts is None else lasts).micros
    order = Order(scenario=scenario, name=name, seed=scenario.seed, duration=duration)
    asked = [(order, policy, order.seed + number, twin_file) for number in range(seeds) for policy in policies]
    with progress("rehearsing", len(asked)) as step:
        results = in_processes(under, asked, processes, step)
    groups = by_policy(results.found, policies)
    if groups:
        lines, done = compared(groups), len(next(iter(groups.values())))
        words = verdict(lines, [*groups])
        if output in ("json", "yaml"):
            click.echo(document(_document(lines, words, name, done, complete=results.complete), output), nl=False)
        else:
            click.echo(render(_listing(lines, [*groups])), nl=False)
            partly = [] if results.complete else [f"Partial: of {done} of {seeds} seeds."]
            click.echo("\n".join(["", *words, *partly]))
    if not results.complete:
        click.echo(results.how_far, err=True)
    return results.exit_code


def by_policy(found: Mapping[int, Summary], policies: Sequence[str]) -> dict[str, list[Summary]]:
    """The runs of each policy, of the same seeds in the same order; the runs of a seed stand together.

    Where not all were done: of the seeds that every policy has, since others would be compared with another first one.
    Nothing, where there is no such seed.
    """
    runs: dict[str, dict[int, Summary]] = {policy: {} for policy in policies}
    for place, run in found.items():
        runs[policies[place % len(policies)]][place // len(policies)] = run
    common = sorted(set[int].intersection(*map(set, runs.values())))
    return {policy: [those[seed] for seed in common] for policy, those in runs.items()} if common else {}


def _listing(lines: Sequence[Line], policies: Sequence[str]) -> Listing:
    from bayplan.cli.printers import Column, Listing, Row

    heads = ["MEASURE", "UNIT", *policies, *(f"{policy} - {policies[0]}" for policy in policies[1:])]
    rows = [
        Row(
            [
                line.measure,
                line.unit,
                *(_shown(line.values[policy]) for policy in policies),
                *(_shown(line.differences[policy], signed=True) for policy in policies[1:]),
            ],
            "",
            None,
        )
        for line in lines
    ]
    return Listing([*map(Column, heads)], rows)


def _shown(found: Interval, *, signed: bool = False) -> str:
    mean = f"{found.mean:+.2f}" if signed else f"{found.mean:.2f}"
    margin = "" if found.margin is None else f" ± {found.margin:.2f}"
    return f"{mean}{margin}{' *' if signed and found.is_clear else ''}"


def _document(lines: Sequence[Line], words: list[str], scenario: str, seeds: int, *, complete: bool) -> dict[str, Any]:
    import msgspec

    return {
        "kind": "PolicyComparison",
        "scenario": scenario,
        "complete": complete,
        "seeds": seeds,
        "measures": [msgspec.to_builtins(line) for line in lines],
        "verdict": words,
    }
