"""The verb `describe`: reads an object and what belongs to it, and hands them to the page of its kind."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import click

from bayplan.cli.names import complete_resources
from bayplan.cli.targets import Session, Target, on_cluster, tell

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bayplan.cli.describe.page import Doc, Page
    from bayplan.cluster.objects import Object


@click.command()
@click.argument("words", nargs=-1, metavar="TYPE [NAME ...] | TYPE/NAME ...", shell_complete=complete_resources)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="In all namespaces.")
@click.option("-l", "--selector", "labels", default="", metavar="LABELS", help="Only with these labels.")
@click.option("--show-events/--no-show-events", "with_events", default=True, help="With the events of each object.")
@on_cluster
def describe(target: Target, words: tuple[str, ...], everywhere: bool, labels: str, with_events: bool) -> None:
    """Tell all about objects: what they ask for, how they are, what happened to them.

    \b
    bayplan describe pod web-0
    bayplan describe node/a100-a-1
    bayplan describe deploy -l team=vision
    """
    target.run(lambda session: _describe(session, words, everywhere, labels, with_events))


async def _describe(session: Session, words: tuple[str, ...], everywhere: bool, labels: str, with_events: bool) -> None:
    from bayplan.cli.resources import find, objects_of

    pages = []
    for found in await find(session, words):
        for item in await objects_of(session, found, labels=labels, everywhere=everywhere):
            pages.append(await described(session, item, with_events=with_events))  # noqa: PERF401 - awaits in order
    if not pages:
        tell(f"No resources found in {session.namespace} namespace." if not everywhere else "No resources found")
    click.echo("\n\n".join(pages), nl=False)


async def described(session: Session, item: Object, *, with_events: bool = True) -> str:
    """The page of one object."""
    from bayplan.cli.describe.page import Page

    page = Page(session.now())
    events = await _events_of(session, item) if with_events else []
    make = await _page_of(session, item)
    make(events, page)
    return page.text()


async def _page_of(session: Session, item: Object) -> Callable[[list[Doc], Page], None]:
    special: dict[str, Callable[[Session, Object], Awaitable[Callable[[list[Doc], Page], None]]]]
    special = {"Pod": _pod, "Node": _node, "Deployment": _deployment}
    if item.kind.name in special:
        return await special[item.kind.name](session, item)
    from bayplan.cli.describe.others import other_page
    from bayplan.cli.describe.workloads import KINDS, workload_page

    if item.kind.name in KINDS:
        return functools.partial(workload_page, item.doc(), [])
    return functools.partial(other_page, item.doc())


async def _events_of(session: Session, item: Object) -> list[Doc]:
    """Events on the object. A node's are told by its name: its kubelet does not know its uid."""
    from bayplan.cli.resources import list_all
    from bayplan.cluster.kinds import EVENT

    fields = f"involvedObject.kind={item.kind.name},involvedObject.name={item.name}"
    if item.namespace:
        fields += f",involvedObject.uid={item.uid}"
    found, _ = await list_all(session, EVENT, item.namespace or None, fields=fields)
    return [event.doc() for event in found]


async def _pod(_: Session, item: Object) -> Callable[[list[Doc], Page], None]:
    from bayplan.cli.describe.pods import pod_page
    from bayplan.cli.gpus import gpu_text

    return functools.partial(pod_page, item.doc(), gpu_text(item))


async def _node(session: Session, item: Object) -> Callable[[list[Doc], Page], None]:
    from bayplan.cli.describe.nodes import Holder, node_page
    from bayplan.cli.resources import list_all
    from bayplan.cluster.kinds import POD
    from bayplan.model.clock import rfc3339
    from bayplan.model.nodes import Node
    from bayplan.model.pods import Pod
    from bayplan.model.resources import amounts, pod_limits, pod_requests

    fields = f"spec.nodeName={item.name},status.phase!=Succeeded,status.phase!=Failed"
    pods, _ = await list_all(session, POD, None, fields=fields)
    holders = [
        Holder(
            pod.namespace,
            pod.name,
            str(pod.doc()["metadata"].get("creationTimestamp") or rfc3339(session.now())),
            pod_requests(pod.view(Pod)),
            pod_limits(pod.view(Pod)),
        )
        for pod in pods
    ]
    return functools.partial(node_page, item.doc(), amounts(item.view(Node).status.allocatable), holders)


async def _deployment(session: Session, item: Object) -> Callable[[list[Doc], Page], None]:
    from bayplan.cli.describe.workloads import workload_page
    from bayplan.cli.resources import list_all
    from bayplan.cluster.kinds import REPLICA_SET

    sets, _ = await list_all(session, REPLICA_SET, item.namespace)
    owned = [each.doc() for each in sets if any(owner.uid == item.uid for owner in each.meta.owner_references)]
    return functools.partial(workload_page, item.doc(), owned)
