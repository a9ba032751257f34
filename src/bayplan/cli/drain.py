"""`bayplan drain`: cordon a node, evict what may be evicted, wait until it is gone.

An eviction that a disruption budget forbids is tried again, every five seconds as kubectl does, until the time is over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.cordon import node_options
from bayplan.cli.dry_run import TOLD
from bayplan.cli.targets import Target, on_cluster, tell
from bayplan.cli.waiting import span_seconds

if TYPE_CHECKING:
    from bayplan.cli.targets import Session
    from bayplan.cluster.objects import Object

_RETRY = 5.0


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags ask for."""

    names: tuple[str, ...]
    labels: str
    dry_run: str
    force: bool
    ignore_daemonsets: bool
    delete_emptydir_data: bool
    disable_eviction: bool
    grace_period: int
    timeout: float | None
    pod_selector: str

    @property
    def grace(self) -> int | None:
        """Seconds of grace; None leaves them to the pod."""
        return None if self.grace_period < 0 else self.grace_period


@click.command()
@node_options
@click.option("--force", is_flag=True, help="Also pods that nobody will make anew.")
@click.option("--ignore-daemonsets", is_flag=True, help="Leave the pods of daemon sets: they would come back.")
@click.option("--delete-emptydir-data", is_flag=True, help="Also pods whose emptyDir data will be lost.")
@click.option("--disable-eviction", is_flag=True, help="Delete at once, without asking disruption budgets.")
@click.option("--grace-period", type=int, default=-1, metavar="SECONDS", help="Time to end in; -1 is the pod's own.")
@click.option("--timeout", callback=span_seconds, metavar="SPAN", help="How long to try: 5m. For ever by default.")
@click.option("--pod-selector", default="", metavar="LABELS", help="Only pods with these labels.")
@on_cluster
def drain(target: Target, **flags: Any) -> int:
    """Empty a node: no new pods, and those that are there are evicted, honouring disruption budgets.

    \b
    bayplan drain a100-a-1 --ignore-daemonsets --timeout=5m
    bayplan drain -l pool=old --dry-run
    """
    wish = Wish(**flags)
    return target.run(lambda session: _drain_all(session, wish))


async def _drain_all(session: Session, wish: Wish) -> int:
    """All nodes are cordoned before the first is emptied, so that pods do not wander from one to the next."""
    from bayplan.cli.cordon import nodes_named, set_cordoned

    nodes = await nodes_named(session, wish.names, wish.labels)
    for node in nodes:
        await set_cordoned(session, node, shut=True, dry_run=wish.dry_run)
    return max([await _drain(session, node, wish) for node in nodes], default=0)


async def _drain(session: Session, node: Object, wish: Wish) -> int:
    from bayplan.cli.drain_rules import Act, Rules, summary, verdict
    from bayplan.cli.resources import list_all
    from bayplan.cli.waiting import patience
    from bayplan.cluster.kinds import POD

    rules = Rules(wish.force, wish.ignore_daemonsets, wish.delete_emptydir_data)
    pods, _ = await list_all(session, POD, None, labels=wish.pod_selector, fields=f"spec.nodeName={node.name}")
    judged = [(pod, verdict(pod.doc(), rules)) for pod in pods]
    told = [(pod.doc(), found) for pod, found in judged]
    refused = summary(told, Act.REFUSE, "cannot delete ")
    if refused:
        tell(f'error: unable to drain node "{node.name}": {"; ".join(refused)}')
        return 1
    for words in summary(told, Act.LEAVE) + summary(told, Act.EVICT):
        tell(f"Warning: {words}")
    going = [pod for pod, found in judged if found.act is Act.EVICT]
    if wish.dry_run != "none":
        await _pretend(session, going, wish)
    else:
        async with patience(wish.timeout, f'node "{node.name}" is not empty'):
            await asyncio.gather(*(_remove(session, pod, wish) for pod in going))
    click.echo(f"node/{node.name} drained{TOLD[wish.dry_run]}")
    return 0


async def _pretend(session: Session, going: list[Object], wish: Wish) -> None:
    """A server asked to pretend says which evictions a budget forbids now."""
    from bayplan.model.errors import TooManyRequests

    for pod in going:
        click.echo(f"evicting pod {pod.namespace}/{pod.name}{TOLD[wish.dry_run]}")
        if wish.dry_run == "server":
            try:
                await session.cluster.evict(pod.name, pod.namespace, uid=pod.uid, dry_run=True)
            except TooManyRequests as error:
                tell(f'would have to wait: pods/"{pod.name}" -n "{pod.namespace}": {error.message}')


async def _remove(session: Session, pod: Object, wish: Wish) -> None:
    from bayplan.cli.waiting import gone
    from bayplan.model.errors import Conflict, NotFound

    try:
        if wish.disable_eviction:
            await session.cluster.delete(pod.kind, pod.name, pod.namespace, grace=wish.grace, uid=pod.uid)
        else:
            await _evict(session, pod, wish)
    except (NotFound, Conflict):  # gone already, or another of that name
        return
    await gone(session, pod)
    click.echo(f"pod/{pod.name} {'deleted' if wish.disable_eviction else 'evicted'}")


async def _evict(session: Session, pod: Object, wish: Wish) -> None:
    from bayplan.model.errors import TooManyRequests

    while True:
        click.echo(f"evicting pod {pod.namespace}/{pod.name}")
        try:
            await session.cluster.evict(pod.name, pod.namespace, grace=wish.grace, uid=pod.uid)
        except TooManyRequests as error:
            where = f'pods/"{pod.name}" -n "{pod.namespace}"'
            tell(f"error when evicting {where} (will retry after {_RETRY:g}s): {error.message}")
            await asyncio.sleep(_RETRY)
        else:
            return
