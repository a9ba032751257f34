"""`bayplan simulate replay DIR`: a run once more, held against the log that it wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bayplan.cli.invocation import Invocation
    from bayplan.scheduling.configuration import SchedulerConfiguration
    from bayplan.service.lifecycle import Service
    from bayplan.simulate.again import Beside, RunLog
    from bayplan.simulate.run import Order
    from bayplan.simulate.twin.snapshot import Snapshot

Doc = dict[str, Any]
_NOT_OF_A_RUN = ("nodes", "engine", "policy", "keep_placed", "seed")


def log_at(path: Path) -> Path | None:
    """The log of a run, where that is what somebody points at. Raises EventLogError for a folder without one."""
    from bayplan.cli.simulate.run import LOG
    from bayplan.simulate.again import is_log
    from bayplan.simulate.eventlog import EventLogError

    if path.is_dir():
        if not (path / LOG).is_file():
            hint = "bayplan simulate run FILE --out DIR writes one"
            raise EventLogError(f"{path / LOG}: no log of a run is there", hint=hint)
        return path / LOG
    return path if is_log(path) else None


def run_again(invocation: Invocation, ctx: click.Context, path: Path, flags: Doc) -> int:
    """Run what a log tells of once more, and say whether it wrote the same."""
    from bayplan.cli.simulate.run import minutes_passing, read_twin
    from bayplan.service.lifecycle import run
    from bayplan.simulate.again import beside, read_log

    for name in _NOT_OF_A_RUN:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            told = f"{path} is the log of a run, which is run again as it was: expected no --{name.replace('_', '-')}"
            raise click.UsageError(told)
    log = read_log(path)
    order = _order(log, flags["scenario"], read_twin(flags["twin_file"]))
    scheduler = _scheduler(log, order, flags["scheduler_config"])
    found: list[Beside] = []

    async def main(service: Service) -> None:
        from bayplan.model.clock import VirtualClock

        start = VirtualClock().now() if order.twin is None else order.twin.at
        with minutes_passing(start, order.duration) as reached:
            found.append(await beside(log, order, scheduler, stopping=lambda: service.stopping, reached=reached))

    code = run("replay", invocation.quiet_settings(), main, endpoint=False, finite=True)
    if found:
        _print(log, found[0], flags["output"])
        code = code or int(found[0].difference is not None)
    return code


def _order(log: RunLog, scenario: str | None, twin: Snapshot | None) -> Order:
    from bayplan.cli.simulate.run import scenario_of
    from bayplan.simulate.again import order_of
    from bayplan.simulate.eventlog import EventLogError
    from bayplan.simulate.scenario_file import names

    if scenario is None and log.began.scenario not in names():
        raise EventLogError(
            f'{log.path}: the log of a run of "{log.began.scenario}", whose scenario it does not hold',
            hint="add --scenario FILE, and --twin TWIN if it was put to one",
        )
    return order_of(log, scenario_of(scenario or log.began.scenario, twin)[1], twin)


def _scheduler(log: RunLog, order: Order, file: Path | None) -> SchedulerConfiguration:
    from bayplan.cluster.embedded.scheduler_file import load_configuration
    from bayplan.scheduling.policies import POLICIES
    from bayplan.simulate.eventlog import EventLogError
    from bayplan.simulate.policy import configuration

    if file is not None and order.policy in POLICIES:
        told = f"{log.path} is the log of a run under the policy {order.policy}, which is run again as it was"
        raise click.UsageError(f"{told}: expected no --scheduler-config")
    if order.policy in POLICIES:
        return configuration(order.scenario, order.policy, order.seed, order.pods)
    if file is None and not Path(order.policy).is_file():
        told = f"{log.path}: pods were placed by the configuration {order.policy}, which is not there"
        raise EventLogError(told, hint="add --scheduler-config FILE")
    return load_configuration(file or Path(order.policy))


def _print(log: RunLog, found: Beside, output: str | None) -> None:
    from bayplan.cli.printers import document

    unlike = found.difference
    if output:
        click.echo(document(_document(log, found), output), nl=False)
    elif unlike is not None:
        click.echo(f"line {unlike.line} differs, after the same {found.same} events")
        click.echo(f"logged: {unlike.logged or '-'}")
        click.echo(f"again:  {unlike.again or '-'}")
    else:
        up_to = " so far" if found.stopped else "" if log.whole else ", up to where the log was cut short"
        click.echo(f"the same {found.same} events{up_to}")


def _document(log: RunLog, found: Beside) -> Doc:
    import msgspec

    return {
        "kind": "RunAgain",
        "log": str(log.path),
        "scenario": log.began.scenario,
        "seed": log.began.seed,
        "policy": log.began.policy,
        "complete": log.whole and not found.stopped,
        "same": found.difference is None,
        "events": found.same,
        "difference": None if found.difference is None else msgspec.to_builtins(found.difference),
    }
