"""`bayplan ledger uninstall`: what a ledger left in a cluster is taken away; its database stays."""

from __future__ import annotations

import click

from bayplan.cli.targets import Session, Target, on_cluster


@click.command()
@on_cluster
def uninstall(target: Target) -> None:
    """Take the ledger's finalizer off every pod and workload that has it, and its Service with all kubelets away.

    Stop the ledger first, or it puts them back. The database is left as it is.
    """
    target.run(_uninstall)


async def _uninstall(session: Session) -> None:
    from bayplan.ledger.finalizers import FINALIZER, kinds_with_finalizers, sweep
    from bayplan.ledger.kubelet_service import remove

    freed = sum([await sweep(session.cluster, kind) for kind in await kinds_with_finalizers(session.cluster)])
    click.echo(f"finalizer {FINALIZER} taken off {freed} object{'s' * (freed != 1)}")
    for each in await remove(session.cluster):
        click.echo(f"{each} removed")
