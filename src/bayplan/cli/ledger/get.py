"""`bayplan ledger get`: pods, workloads, nodes and events as they are, or as they were at a time."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.invocation import output_option
from bayplan.cli.ledger.asking import Ledger, Session, on_ledger
from bayplan.cli.ledger.times import span_option
from bayplan.cli.targets import tell

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bayplan.cli.printers import Listing
    from bayplan.model.clock import Instant

_KINDS = {
    **dict.fromkeys(("pods", "pod", "po"), "pods"),
    **dict.fromkeys(("workloads", "workload"), "workloads"),
    **dict.fromkeys(("nodes", "node", "no"), "nodes"),
    **dict.fromkeys(("events", "event", "ev"), "events"),
}
_DOCUMENTS = ("json", "yaml")


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags ask for."""

    at: str | None
    namespace: str | None
    everywhere: bool
    lately: int
    output: str | None
    no_headers: bool
    show_managed_fields: bool

    @property
    def within(self) -> str | None:
        """The namespace; None: all."""
        return None if self.everywhere else self.namespace or "default"


class Answer(msgspec.Struct, frozen=True):
    """What is to be printed: a table for people, items for programs (else they only say whether there are any)."""

    listing: Listing
    items: Sequence[Any]
    namespaced: bool = True


@click.command()
@click.argument("kind", metavar="pods|workloads|nodes|events")
@click.option("--at", metavar="TIME", help='As it was then: 2026-01-02T14:00:00Z, "yesterday 14:00", "2h ago", -90m.')
@click.option("-n", "--namespace", metavar="NAME", help="Namespace, not default.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="In all namespaces.")
@click.option(
    "--for",
    "lately",
    default="1h",
    show_default=True,
    callback=span_option,
    metavar="SPAN",
    help="Events of so long a time, up to then.",
)
@output_option("wide", "json", "yaml", "csv")
@click.option("--no-headers", is_flag=True, help="Without the line of column names.")
@click.option("--show-managed-fields", is_flag=True, help="With metadata.managedFields in JSON and YAML.")
@on_ledger
def get(ledger: Ledger, kind: str, **flags: Any) -> None:
    """Show what is and what was: GPU pods as kubectl would have shown them, workloads, nodes, events.

    \b
    bayplan ledger get pods -A
    bayplan ledger get pods -n vision --at "yesterday 14:00" -o wide
    bayplan ledger get workloads -A --at -2h
    bayplan ledger get events -n vision --at 2026-01-02T14:00:00Z --for 30m
    """
    if kind not in _KINDS:
        raise click.UsageError(f'expected pods, workloads, nodes or events; got "{kind}"')
    wish = Wish(**flags)
    ask = _QUESTIONS[_KINDS[kind]]

    async def asked(session: Session) -> Answer:
        at = session.at(wish.at)
        if wish.at is not None:
            from bayplan.model.clock import rfc3339

            tell(f"as of {rfc3339(at)}")
        return await ask(session, wish, at)

    _print(ledger.run(asked), wish)


def _print(answer: Answer, wish: Wish) -> None:
    from bayplan.cli.printers import document, render

    if wish.output in _DOCUMENTS:
        whole = {"apiVersion": "v1", "items": answer.items, "kind": "List", "metadata": {"resourceVersion": ""}}
        click.echo(document(whole, wish.output), nl=False)
    elif answer.items:
        click.echo(render(answer.listing, wish.output, headers=not wish.no_headers), nl=False)
    else:
        within = wish.within if answer.namespaced else None
        tell(f"No resources found in {within} namespace." if within else "No resources found")


def _listing(
    session: Session, wish: Wish, heads: Sequence[str], wide: Sequence[str], rows: Sequence[tuple[str, str, list[Any]]]
) -> Listing:
    """Rows of cluster, namespace and cells, with the columns in front that are needed to tell them apart."""
    from bayplan.cli.printers import Column, Listing, Row

    columns = [*map(Column, heads), *(Column(each, wide=True) for each in wide)]
    with_namespace = wish.everywhere and any(namespace for _, namespace, _ in rows)
    before = [*(["Cluster"] if session.several else []), *(["Namespace"] if with_namespace else [])]
    shown = [
        Row([*([cluster] if session.several else []), *([namespace] if with_namespace else []), *cells], "", None)
        for cluster, namespace, cells in rows
    ]
    return Listing([*map(Column, before), *columns], shown)


async def _pods(session: Session, wish: Wish, at: Instant) -> Answer:
    from bayplan.cli.printers import Column, Listing, Row
    from bayplan.cli.rows import Style, clean, listing
    from bayplan.cluster.kinds import POD
    from bayplan.ledger.questions.present import pods_at
    from bayplan.ledger.settings import gpu_vendors

    found = await pods_at(session.store, at, session.scope(wish.within))
    vendors = gpu_vendors(click.get_current_context().obj.settings().settings.ledger)
    style = Style(wide=wish.output in ("wide", "csv"), namespace=wish.everywhere, vendors=vendors)
    table = listing(POD, [pod.object for pod in found], at, style)
    if session.several:
        rows = [
            Row([cluster, *row.cells], row.name, row.item)
            for cluster, pods in groupby(found, key=lambda each: each.cluster)
            for row in listing(POD, [pod.object for pod in pods], session.known_of(cluster, at), style).rows
        ]
        table = Listing([Column("Cluster"), *table.columns], rows)
    if wish.output not in _DOCUMENTS:
        return Answer(table, found)
    return Answer(table, [clean(pod.object.doc(), managed_fields=wish.show_managed_fields) for pod in found])


async def _workloads(session: Session, wish: Wish, at: Instant) -> Answer:
    from bayplan.ledger.questions.amounts import gpus
    from bayplan.ledger.questions.present import workloads_at
    from bayplan.model.ages import age

    found = await workloads_at(session.store, at, session.scope(wish.within))
    rows = [
        (
            each.row.cluster,
            each.row.namespace,
            [
                each.row.name,
                each.row.kind,
                each.status,
                each.pods,
                gpus(each.gpus),
                age(each.row.created_at, session.known_of(each.row.cluster, at)),
                each.row.user,
                each.row.group_version,
                each.row.uid,
                each.row.status_reason,
            ],
        )
        for each in found
    ]
    heads = ("Name", "Kind", "Status", "Pods", "GPUs", "Age")
    table = _listing(session, wish, heads, ("User", "API-Version", "UID", "Reason"), rows)
    return Answer(table, [{**_row_then(session, each.row, at), **_beside(each)} for each in found])


async def _nodes(session: Session, wish: Wish, at: Instant) -> Answer:
    from bayplan.cli.ledger.printing import UNKNOWN
    from bayplan.ledger.questions.amounts import gpus
    from bayplan.ledger.questions.present import nodes_at
    from bayplan.model.ages import age

    def status(each: Any) -> str:
        if each.hurdle is None:
            return UNKNOWN
        ready = "Ready" if each.row.ready else "NotReady"
        return ready if each.row.schedulable else f"{ready},SchedulingDisabled"

    found = await nodes_at(session.store, at, session.scope())
    rows = [
        (
            each.row.cluster,
            "",
            [
                each.row.name,
                status(each),
                each.row.gpu_model or UNKNOWN,
                f"{gpus(each.allocated)}/{gpus(each.capacity)}",
                age(each.row.created_at, session.known_of(each.row.cluster, at)),
                each.row.kubelet_version,
                each.row.uid,
            ],
        )
        for each in found
    ]
    table = _listing(session, wish, ("Name", "Status", "Model", "GPUs", "Age", "Version"), ("UID",), rows)
    items = [{**_row_then(session, each.row, at), **_beside(each)} for each in found]
    for item in items:
        if item["hurdle"] is None:
            item.update(ready=None, schedulable=None)
    return Answer(table, items, namespaced=False)


async def _events(session: Session, wish: Wish, at: Instant) -> Answer:
    from bayplan.cli.ledger.printing import plain
    from bayplan.ledger.questions.present import events_between
    from bayplan.model.clock import Instant as At

    found = await events_between(session.store, At(at - wish.lately), at, session.scope(wish.within))
    rows = [(each.event.cluster, each.namespace, event_cells(each)) for each in found]
    heads = ("Time", "Pod", "Event", "What", "Reason", "Message")
    table = _listing(session, wish, heads, (), rows)
    return Answer(table, [{**plain(each.event), "namespace": each.namespace, "pod": each.pod} for each in found])


def event_cells(each: Any) -> list[str]:
    """A transition in words: when, of which pod, what became what."""
    from bayplan.model.clock import rfc3339

    event = each.event
    change = " -> ".join(filter(None, (event.before, event.value)))
    what = ": ".join(filter(None, (event.subject, change)))
    if event.exit_code is not None:
        what = f"{event.subject}: exit code {event.exit_code}"
    return [rfc3339(event.at), each.pod, event.event_type, what, event.reason, event.message]


def _row_then(session: Session, row: Any, at: Instant) -> dict[str, Any]:
    """A row as programs read it; a version that was not there yet is not named."""
    from bayplan.cli.ledger.printing import plain

    later = row.updated_at > session.known_of(row.cluster, at)
    return {**plain(row), **(dict.fromkeys(("resource_version", "updated_at")) if later else {})}


def _beside(answer: Any) -> dict[str, Any]:
    """What an answer says besides its row."""
    return {name: getattr(answer, name) for name in answer.__struct_fields__ if name != "row"}


_QUESTIONS: dict[str, Callable[[Session, Wish, Instant], Awaitable[Answer]]] = {
    "pods": _pods,
    "workloads": _workloads,
    "nodes": _nodes,
    "events": _events,
}
