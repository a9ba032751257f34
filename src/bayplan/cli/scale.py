"""`bayplan scale`: how many replicas a workload is to have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bayplan.cli.names import complete_resources
from bayplan.cli.targets import Session, Target, on_cluster

if TYPE_CHECKING:
    from bayplan.cluster.objects import Object


@click.command()
@click.argument("words", nargs=-1, metavar="TYPE NAME ... | TYPE/NAME ...", shell_complete=complete_resources)
@click.option("--replicas", type=click.IntRange(0), required=True, metavar="N", help="How many are wanted.")
@click.option("--current-replicas", type=click.IntRange(0), metavar="N", help="Only if there are so many now.")
@click.option("-l", "--selector", "labels", default="", metavar="LABELS", help="All with these labels.")
@on_cluster
def scale(target: Target, words: tuple[str, ...], replicas: int, current_replicas: int | None, labels: str) -> None:
    """Set how many replicas a deployment, replica set or stateful set has.

    \b
    bayplan scale deploy/web --replicas=5
    bayplan scale sts db --replicas=3 --current-replicas=1
    """
    target.run(lambda session: _scale(session, words, replicas, current_replicas, labels))


async def _scale(session: Session, words: tuple[str, ...], replicas: int, current: int | None, labels: str) -> None:
    from bayplan.cli.resources import called, find, objects_of

    for found in await find(session, words):
        if not found.names and not labels:
            raise click.UsageError("expected names, or -l")
        for item in await objects_of(session, found, labels=labels):
            _check(item, current)
            await session.cluster.scale(item.kind, item.name, item.namespace, replicas)
            click.echo(f"{called(item.kind, item.name)} scaled")


def _check(item: Object, current: int | None) -> None:
    from bayplan.cli.resources import called
    from bayplan.cluster.kinds import KINDS
    from bayplan.model.errors import BadRequest, Conflict

    if item.kind.name in KINDS and "scale" not in item.kind.subresources:
        hint = "deployments, replica sets, stateful sets and replication controllers have replicas"
        raise BadRequest(f"{item.kind.plural} cannot be scaled", hint=hint)
    there = (item.doc().get("spec") or {}).get("replicas", 1)
    if current is not None and there != current:
        raise Conflict(
            f"{called(item.kind, item.name)}: expected {current} replicas; there are {there}",
            hint="look and decide anew",
        )
