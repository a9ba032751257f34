"""`bayplan lab`: a real control plane on this machine, in the background."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from bayplan.cli.invocation import output_option
from bayplan.cli.targets import tell

if TYPE_CHECKING:
    from bayplan.cluster.lab.toolchain import Toolchain

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_PARTS = ("controllers", "scheduler", "kwok")


def _checked(_: click.Context, __: click.Parameter, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise click.BadParameter(f'expected small letters, digits and dashes; got "{value}"')
    return value


def _running_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from bayplan.cluster.lab.running import read_notes

    return [note.name for note in read_notes() if note.name.startswith(incomplete)]


_name = click.option(
    "--name", default="lab", show_default=True, callback=_checked, shell_complete=_running_names, help="Which lab."
)
_kubernetes = click.option(
    "--kubernetes", metavar="X.Y", help="1.35, 1.36 or 1.37; else what BAYPLAN_LAB_KUBERNETES says, else 1.36."
)


@click.group()
def lab() -> None:
    """Run a real control plane on this machine: etcd, kube-apiserver, scheduler, controllers, and KWOK for nodes.

    \b
    bayplan lab doctor                          what is there and what would be built
    bayplan lab up                              start one; it stays until `lab down`
    export KUBECONFIG=$(bayplan lab kubeconfig --path)
    bayplan lab down                            end it; nothing is left but the cache
    """


@lab.command()
@_name
@_kubernetes
@click.option("--without", multiple=True, type=click.Choice(_PARTS), help="Leave a part out; repeatable.")
def up(name: str, kubernetes: str | None, without: tuple[str, ...]) -> None:
    """Start a lab; returns when it is ready. Ctrl-C before that leaves nothing."""
    from bayplan.cluster.lab.lab import LabOptions
    from bayplan.cluster.lab.running import start
    from bayplan.cluster.lab.toolchain import Toolchain

    toolchain = Toolchain(kubernetes)
    options = LabOptions(
        kubernetes=toolchain.kubernetes,
        controllers="controllers" not in without,
        scheduler="scheduler" not in without,
        kwok="kwok" not in without,
        service_accounts="controllers" not in without,  # nobody else would make the accounts
    )
    tell(f'starting lab "{name}" with Kubernetes {toolchain.release}')
    note = start(name, options, tell)
    tell(f'lab "{name}" is ready; to use it:')
    click.echo(f"export KUBECONFIG={note.kubeconfig}")


@lab.command()
@_name
@click.option("--all", "all_of_them", is_flag=True, help="Every lab that runs.")
def down(name: str, all_of_them: bool) -> None:
    """End a lab. No process and no file is left but the cache of programs."""
    from bayplan.cluster.lab.running import find, read_notes, stop

    for note in read_notes() if all_of_them else [find(name)]:
        stop(note)
        tell(f'lab "{note.name}" ended')


@lab.command()
@output_option("json", "yaml", "name")
def status(output: str | None) -> None:
    """List the labs that run."""
    import msgspec

    from bayplan.cli.printers import columns, document
    from bayplan.cluster.lab.running import read_notes

    notes = read_notes()
    if output in ("json", "yaml"):
        click.echo(document(msgspec.to_builtins(notes), output), nl=False)
    elif output == "name":
        click.echo("".join(f"{note.name}\n" for note in notes), nl=False)
    elif not notes:
        tell("no lab runs; start one: bayplan lab up")
    else:
        rows = [
            [each.name, "Ready" if each.kubeconfig else "Starting", each.version, str(each.pid), each.kubeconfig]
            for each in notes
        ]
        click.echo(columns([["NAME", "STATUS", "VERSION", "PID", "KUBECONFIG"], *rows]), nl=False)


@lab.command()
@_name
@click.option("--path", "as_path", is_flag=True, help="Where it is, instead of what it says.")
def kubeconfig(name: str, as_path: bool) -> None:
    """Print the kubeconfig of a lab."""
    from pathlib import Path

    from bayplan.cluster.lab.running import find
    from bayplan.model.errors import Conflict

    note = find(name)
    if not note.kubeconfig:
        raise Conflict(f'lab "{name}" is starting still', hint="wait a moment and try again")
    click.echo(note.kubeconfig if as_path else Path(note.kubeconfig).read_text(), nl=as_path)


@lab.command()
@_kubernetes
@click.option("--build", is_flag=True, help="Build what is missing, now.")
def doctor(kubernetes: str | None, build: bool) -> int:
    """Say which of a lab's programs are there, from where, and what would be built."""
    from bayplan.cli.printers import columns
    from bayplan.cluster.lab.toolchain import Toolchain

    toolchain = Toolchain(kubernetes)
    if build:
        toolchain.programs(lambda line: click.echo(line, err=True))
    found = toolchain.find()
    rows = [[each.name, each.source, str(each.path or "")] for each in found]
    click.echo(columns([["PROGRAM", "FROM", "PATH"], *rows]), nl=False)
    missing = [each.name for each in found if each.path is None]
    if not missing:
        click.echo(f"Kubernetes {toolchain.release}: nothing to build")
        return 0
    click.echo(_what_to_build(toolchain, missing))
    return 0


def _what_to_build(toolchain: Toolchain, missing: list[str]) -> str:
    import shutil

    from bayplan.cluster.lab.toolchain import GO_PACKAGE

    go = shutil.which("go")
    by = f"with {go}" if go else f"with {GO_PACKAGE}, to be installed from the package index"
    return (
        f"Kubernetes {toolchain.release}: `bayplan lab up` would build {', '.join(missing)} {by},\n"
        f"once, into {toolchain.folder}; or set KUBEBUILDER_ASSETS to a folder that has them"
    )
