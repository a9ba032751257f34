"""`bayplan simulate run`: a scenario from its beginning to its end, with a log of all that happened and a summary."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bayplan.cli.invocation import Invocation, output_option
from bayplan.cli.spans import span

if TYPE_CHECKING:
    from bayplan.model.clock import Instant
    from bayplan.scheduling.configuration import SchedulerConfiguration
    from bayplan.service.durations import Duration
    from bayplan.service.lifecycle import Service
    from bayplan.simulate.run import Order
    from bayplan.simulate.scenario import Scenario
    from bayplan.simulate.summary import Summary
    from bayplan.simulate.twin.snapshot import Snapshot

_MINUTE = 60_000_000
LOG, SUMMARY = "events.jsonl", "summary.json"


def scenario_of(file: str, twin: Snapshot | None = None) -> tuple[str, Scenario]:
    """A scenario and what it is called: a file, or one that comes with the package by its name; put to a twin or not.

    Raises ScenarioError, OSError.
    """
    from bayplan.simulate.fault_kinds import FaultKind
    from bayplan.simulate.scenario_file import ScenarioError, names, read_scenario, shipped
    from bayplan.simulate.scenario_ground import NOTHING, ground_of

    path, ground = Path(file), NOTHING if twin is None else ground_of(twin)
    if not path.exists():
        if file in names():
            return file, shipped(file, ground)
        if not path.suffix:
            hint = f"these ship: {', '.join(names())}"
            raise ScenarioError(f'no file and no scenario "{file}"', kinds=(FaultKind.NAME,), hint=hint)
    return path.stem, read_scenario(path, ground)


twin_option = click.option(
    "--twin",
    "twin_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="TWIN",
    help="Put the scenario to a twin, from its moment on.",
)


@click.command()
@click.argument("file", metavar="FILE")
@twin_option
@click.option("--engine", type=click.Choice(["embedded", "lab"]), default="embedded", show_default=True)
@click.option("--policy", default=None, metavar="NAME", help="What the scheduler scores by: docs/simulate.md.")
@click.option(
    "--scheduler-config", type=click.Path(path_type=Path), metavar="FILE", help="A KubeSchedulerConfiguration."
)
@click.option("--seed", type=int, default=None, help="Another seed than the scenario's.")
@click.option("--for", "lasts", callback=span, metavar="SPAN", help="Another duration than the scenario's: 24h.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Where log and summary go."
)
@output_option("json", "yaml")
@click.pass_obj
def run(
    invocation: Invocation,
    file: str,
    twin_file: Path | None,
    engine: str,
    policy: str | None,
    scheduler_config: Path | None,
    seed: int | None,
    lasts: Duration | None,
    out: Path | None,
    output: str | None,
) -> int:
    """Run a scenario in virtual time, as fast as the machine, and tell what came of it.

    \b
    bayplan simulate run week.yaml --policy fgd --out runs/fgd
    bayplan simulate run 03-exhaustion --engine lab      on a real control plane, in real time
    bayplan simulate run storm.yaml --twin prod.twin     on a copy of a cluster (bayplan twin from)

    FILE is a scenario file, or the name of one that comes with bayplan. The same scenario, seed and policy write the
    same bytes. Ctrl-C, SIGTERM and SIGHUP leave the log valid up to that moment, and end with 130, 143 and 129.
    """
    if policy is not None and scheduler_config is not None:
        raise click.UsageError("--policy and --scheduler-config both say how pods are placed: expected one of them")
    if twin_file is not None and engine == "lab":
        raise click.UsageError("--twin is a copy in the embedded engine: expected no --engine lab")
    from bayplan.cluster.embedded.scheduler_file import load_configuration
    from bayplan.service.lifecycle import run as serve
    from bayplan.simulate.policy import configuration
    from bayplan.simulate.run import Order

    settings = invocation.quiet_settings()
    twin = read_twin(twin_file)
    name, scenario = scenario_of(file, twin)
    order = Order(
        scenario=scenario,
        name=name if twin_file is None else f"{name} on {twin_file.stem}",
        seed=scenario.seed if seed is None else seed,
        policy=str(scheduler_config) if scheduler_config is not None else (policy or "default").lower(),
        engine=engine,
        duration=(scenario.duration if lasts is None else lasts).micros,
        twin=twin,
    )
    scheduler = (
        configuration(scenario, order.policy, order.seed, order.pods)
        if scheduler_config is None
        else load_configuration(scheduler_config)
    )
    if engine == "lab":
        from bayplan.simulate.lab_run import check

        check(order, scheduler_config)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)

    async def main(service: Service) -> None:
        summary = await _run(service, order, scheduler, scheduler_config, out)
        _tell(summary, out, output)

    return serve("simulate", settings, main, endpoint=False, finite=True)


def read_twin(path: Path | None) -> Snapshot | None:
    """The twin that a scenario is put to, if there is one, and what it lacks, on standard error."""
    if path is None:
        return None
    from bayplan.cli.twin import say_what_lacks
    from bayplan.simulate.twin.snapshot import read_snapshot

    snapshot = read_snapshot(path)
    say_what_lacks(snapshot)
    return snapshot


async def _run(
    service: Service, order: Order, scheduler: SchedulerConfiguration, file: Path | None, out: Path | None
) -> Summary:
    from bayplan.simulate.eventlog import Writer

    with Writer(None if out is None else out / LOG) as log:
        if order.engine == "lab":
            from bayplan.simulate.lab_run import on_lab

            return await on_lab(order, log, file, stopping=lambda: service.stopping)
        from bayplan.simulate.run import Rehearsal

        rehearsal = Rehearsal(order, log, scheduler)
        with minutes_passing(rehearsal.now, order.duration) as reached:
            return await rehearsal.rehearse(stopping=lambda: service.stopping, reached=reached)


@contextlib.contextmanager
def minutes_passing(start: Instant, span: int) -> Iterator[Callable[[Instant], None]]:
    """Progress in minutes of the cluster's time, with the time left."""
    from bayplan.cli.progress import progress

    done = 0
    with progress("simulating", max(1, span // _MINUTE)) as step:

        def reached(at: Instant) -> None:
            nonlocal done
            minutes = (at - start) // _MINUTE
            step(minutes - done)
            done = minutes

        yield reached


def _tell(summary: Summary, out: Path | None, output: str | None) -> None:
    from bayplan.cli.printers import document
    from bayplan.simulate.summary import text

    if out is not None:
        (out / SUMMARY).write_text(document(summary.document(), "json"))
    if output is not None:
        click.echo(document(summary.document(), output), nl=False)
    else:
        for line in text(summary):
            click.echo(line)
    if out is not None:
        click.echo(f"{out / LOG} and {SUMMARY} written", err=True)
    if not summary.complete:
        click.echo(f"interrupted at {summary.reached:.0f}s of {summary.duration:.0f}s", err=True)
