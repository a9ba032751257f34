"""`bayplan simulate validate`: whether scenario files can be used, with every fault and its code."""

from __future__ import annotations

from pathlib import Path

import click

from bayplan.cli.simulate.run import twin_option


@click.command()
@click.argument("files", nargs=-1, metavar="FILE...")
@twin_option
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a scenario file instead.")
def validate(files: tuple[str, ...], twin_file: Path | None, schema: bool) -> int:
    """Check scenario files, and the objects that an API server would be asked for.

    A line for each fault: file, line, path, what is wrong, and its code. Exit code 1 if there is any.
    """
    from bayplan.cli.printers import document
    from bayplan.cli.simulate.run import read_twin, scenario_of
    from bayplan.simulate.scenario_file import ScenarioError, json_schema

    if schema:
        click.echo(document(json_schema(), "json"), nl=False)
        return 0
    if not files:
        raise click.UsageError("expected a scenario file")
    twin = read_twin(twin_file)
    wrong = False
    for file in files:
        try:
            _, scenario = scenario_of(file, twin)
        except ScenarioError as error:
            wrong = True
            for line, kind in zip(error.message.splitlines(), error.kinds, strict=False):
                click.echo(f"{line} [{kind.value}]")
        except OSError as error:
            wrong = True
            click.echo(f"{file}: {error.strerror or error}")
        else:
            load = f"{len(scenario.workloads)} workloads, {len(scenario.vms)} groups of VMs"
            click.echo(f"{file}: valid: {scenario.node_count} nodes, {load}, {len(scenario.events)} events")
    return int(wrong)
