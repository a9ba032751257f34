"""`bayplan cordon` and `uncordon`: keep new pods off a node, and let them on again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.dry_run import TOLD, dry_run_option
from bayplan.cli.names import complete_nodes
from bayplan.cli.targets import Session, Target, on_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from bayplan.cluster.objects import Object


def node_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Nodes by name or by label, and a dry run."""
    for option in (
        dry_run_option("Change nothing."),
        click.option("-l", "--selector", "labels", default="", metavar="LABELS", help="All nodes with these labels."),
        click.argument("names", nargs=-1, metavar="NODE ...", shell_complete=complete_nodes),
    ):
        verb = option(verb)
    return verb


@click.command()
@node_options
@on_cluster
def cordon(target: Target, names: tuple[str, ...], labels: str, dry_run: str) -> None:
    """Keep new pods off a node; those that are there stay."""
    target.run(lambda session: _each(session, names, labels, True, dry_run))


@click.command()
@node_options
@on_cluster
def uncordon(target: Target, names: tuple[str, ...], labels: str, dry_run: str) -> None:
    """Let new pods onto a node again."""
    target.run(lambda session: _each(session, names, labels, False, dry_run))


async def _each(session: Session, names: tuple[str, ...], labels: str, shut: bool, dry_run: str) -> None:
    for node in await nodes_named(session, names, labels):
        await set_cordoned(session, node, shut=shut, dry_run=dry_run)


async def nodes_named(session: Session, names: tuple[str, ...], labels: str) -> list[Object]:
    """The nodes of a command line. Raises NotFound, UsageError."""
    from bayplan.cli.resources import Found, objects_of
    from bayplan.cluster.kinds import NODE

    if bool(names) == bool(labels):
        raise click.UsageError("expected names of nodes, or -l")
    return await objects_of(session, Found(NODE, tuple(name.removeprefix("node/") for name in names)), labels=labels)


async def set_cordoned(session: Session, node: Object, *, shut: bool, dry_run: str) -> None:
    """Make a node so, unless it is already, and say it."""
    word = "cordoned" if shut else "uncordoned"
    if bool((node.doc().get("spec") or {}).get("unschedulable")) == shut:
        click.echo(f"node/{node.name} already {word}{TOLD[dry_run]}")
        return
    if dry_run != "client":
        patch = {"spec": {"unschedulable": shut or None}}
        await session.cluster.patch(node.kind, patch, node.name, dry_run=dry_run == "server")
    click.echo(f"node/{node.name} {word}{TOLD[dry_run]}")
