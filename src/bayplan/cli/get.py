"""`bayplan get`: objects as kubectl shows them, once or for as long as one looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.invocation import output_option
from bayplan.cli.names import complete_resources
from bayplan.cli.targets import Target, on_cluster, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.cli.resources import Found
    from bayplan.cli.targets import Session
    from bayplan.cluster.kinds import Kind
    from bayplan.cluster.objects import Object
    from bayplan.model.errors import NotFound


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags ask for."""

    words: tuple[str, ...]
    everywhere: bool
    labels: str
    fields: str
    watch: bool
    watch_only: bool
    output: str | None
    sort_by: str | None
    no_headers: bool
    show_labels: bool
    show_managed_fields: bool
    ignore_not_found: bool


class _Batch(msgspec.Struct, frozen=True):
    kind: Kind
    items: list[Object]
    revision: str = ""


@click.command()
@click.argument("words", nargs=-1, metavar="TYPE [NAME ...] | TYPE/NAME ...", shell_complete=complete_resources)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="In all namespaces.")
@click.option(
    "-l", "--selector", "labels", default="", metavar="LABELS", help="Only with these labels: app=web,tier!=db."
)
@click.option(
    "--field-selector", "fields", default="", metavar="FIELDS", help="Only with these fields: status.phase=Running."
)
@click.option("-w", "--watch", is_flag=True, help="Then go on with every change.")
@click.option("--watch-only", is_flag=True, help="Only the changes.")
@output_option("wide", "json", "yaml", "name", "csv")
@click.option("--sort-by", metavar="PATH", help="Sort by a field: .metadata.creationTimestamp.")
@click.option("--no-headers", is_flag=True, help="Without the line of column names.")
@click.option("--show-labels", is_flag=True, help="With the labels as the last column.")
@click.option("--show-managed-fields", is_flag=True, help="With metadata.managedFields in JSON and YAML.")
@click.option("--ignore-not-found", is_flag=True, help="A name that is not there is no error.")
@on_cluster
def get(target: Target, **flags: Any) -> int:
    """Show objects as kubectl does; `-o wide` and CSV show a pod's GPUs too.

    \b
    bayplan get pods                          the pods of the namespace
    bayplan get pods -A -l app=web -o wide    everywhere, those of one app, with nodes and GPUs
    bayplan get deploy/web sts/db -o yaml     two objects whole
    bayplan get nodes -w                      all nodes, then every change
    """
    wish = Wish(**flags)
    return target.run(lambda session: _get(session, wish))


async def _get(session: Session, wish: Wish) -> int:
    from bayplan.cli.resources import find

    found = await find(session, wish.words)
    named = any(each.names for each in found)
    if named and (wish.labels or wish.fields or wish.everywhere):
        raise click.UsageError("names and -l, --field-selector or -A do not go together")
    if wish.watch or wish.watch_only:
        from bayplan.cli.watching import watch

        if len(found) > 1 or len(found[0].names) > 1:
            raise click.UsageError("-w follows one object or one type")
        return await watch(session, found[0], wish)
    batches, missing = [], []
    for each in found:
        batch, absent = await _fetch(session, each, wish)
        batches.append(batch)
        missing += absent
    text = shown(session, batches, wish, single=named and len(found) == 1 and len(found[0].names) == 1)
    click.echo(text, nl=False)
    if not text and not missing and not (named and wish.ignore_not_found):
        _say_none(session, found, wish)
    for error in missing:
        tell(f"error: {error.message}")
    return 1 if missing else 0


async def _fetch(session: Session, found: Found, wish: Wish) -> tuple[_Batch, list[NotFound]]:
    from bayplan.cli.resources import list_all
    from bayplan.model.errors import NotFound

    namespace = found.home(session.namespace)
    if not found.names:
        where = None if wish.everywhere else namespace or None
        items, revision = await list_all(session, found.kind, where, labels=wish.labels, fields=wish.fields)
        return _Batch(found.kind, items, revision), []
    items, missing = [], []
    for name in found.names:
        try:
            items.append(await session.cluster.get(found.kind, name, namespace))
        except NotFound as error:
            if not wish.ignore_not_found:
                missing.append(error)
    return _Batch(found.kind, items), missing


def shown(session: Session, batches: Sequence[_Batch], wish: Wish, *, single: bool) -> str:
    """What is found, as the flags want it. A single object that was named is shown without a list around it."""
    from bayplan.cli.printers import render
    from bayplan.cli.resources import called

    if wish.sort_by:
        from bayplan.cli.sorting import sort_objects

        batches = [msgspec.structs.replace(batch, items=sort_objects(batch.items, wish.sort_by)) for batch in batches]
    if wish.output in ("json", "yaml"):
        return _documents([item for batch in batches for item in batch.items], wish, single=single)
    if wish.output == "name":
        return "".join(f"{called(batch.kind, item.name)}\n" for batch in batches for item in batch.items)
    from bayplan.cli.rows import Style, listing

    style = Style(wish.output in ("wide", "csv"), wish.everywhere, wish.show_labels, prefix=len(batches) > 1)
    now = session.now()
    tables = [
        render(listing(batch.kind, batch.items, now, style), wish.output, headers=not wish.no_headers)
        for batch in batches
        if batch.items
    ]
    return "\n".join(tables)


def _documents(items: Sequence[Object], wish: Wish, *, single: bool) -> str:
    from bayplan.cli.printers import document
    from bayplan.cli.rows import clean

    documents = [clean(item.doc(), managed_fields=wish.show_managed_fields) for item in items]
    if single:
        return document(documents[0], wish.output or "") if documents else ""
    whole = {"apiVersion": "v1", "items": documents, "kind": "List", "metadata": {"resourceVersion": ""}}
    return document(whole, wish.output or "")


def _say_none(session: Session, found: Sequence[Found], wish: Wish) -> None:
    namespaced = not wish.everywhere and any(each.kind.namespaced for each in found)
    tell(f"No resources found in {session.namespace} namespace." if namespaced else "No resources found")
