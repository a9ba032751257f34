"""`bayplan ledger run` and `bayplan ledger migrate`: the process that records, and the database's schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.invocation import Invocation
from bayplan.cli.targets import Target, on_cluster

if TYPE_CHECKING:
    from bayplan.service.lifecycle import Service


def _take_database(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.obj.give("ledger.database", value, "--database")


def database_option(command: Any) -> Any:
    """The flag --database: short for ledger.database."""
    return click.option(
        "--database",
        callback=_take_database,
        expose_value=False,
        metavar="URL",
        help="sqlite:///FILE, postgresql://USER@HOST/NAME or mysql://...  [default: a file in the state folder]",
    )(command)


@click.command()
@database_option
@click.option("--anew", is_flag=True, help="Read the whole present and compare, rather than go on where it ended.")
@on_cluster
@click.pass_obj
def run(invocation: Invocation, target: Target, anew: bool) -> int:
    """Record the GPU pods of a cluster, their owners and nodes, until stopped.

    It goes on where it ended: what happened meanwhile is caught up with. While the database is away, batches wait on
    disk. Of several replicas one records. With --anew it begins by reading what there is: what the ledger has wrong is
    put right, and states between its last word and now are told as a gap.

    \b
    bayplan ledger run                                               into an SQLite file in the state folder
    bayplan ledger run --database postgresql://ledger@db/ledger      after bayplan ledger migrate --database ...
    """
    from bayplan.ledger.settings import database_url
    from bayplan.ledger.store.settings import parse_url
    from bayplan.service.lifecycle import run as run_service

    settings = invocation.settings().settings
    parse_url(database_url(settings.ledger))  # one that cannot be read is told before anything is begun
    access = target.access()

    async def main(service: Service) -> None:
        from bayplan.cluster.live.cluster import LiveCluster
        from bayplan.ledger.process import run_ledger

        cluster = LiveCluster(access, clock=service.clock, answer_within=settings.ledger.request_timeout.seconds)
        service.on_close("cluster", cluster.close)
        await run_ledger(service, cluster, anew=anew)

    return run_service("ledger", settings, main)


@click.command()
@database_option
@click.pass_obj
def migrate(invocation: Invocation) -> None:
    """Make the tables of a ledger, or bring them up to date. Calling it again is safe."""
    import asyncio

    from bayplan.ledger.settings import database_url, store_settings
    from bayplan.ledger.store.migrating import migrate as bring_up_to_date
    from bayplan.ledger.store.settings import parse_url
    from bayplan.service.state import state_folder

    settings = invocation.settings().settings.ledger
    url = database_url(settings)
    if settings.database == "auto":
        state_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    steps = asyncio.run(bring_up_to_date(url, store_settings(settings)))
    click.echo(f"{parse_url(url).shown}: {', '.join(steps) if steps else 'up to date'}")
