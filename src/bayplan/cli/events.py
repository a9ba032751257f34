"""`bayplan events`: what happened lately, the latest last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.invocation import output_option
from bayplan.cli.targets import Target, on_cluster, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.cli.printers import Listing
    from bayplan.cli.targets import Session
    from bayplan.cluster.objects import Object
    from bayplan.model.clock import Instant


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags ask for."""

    about: str | None
    types: tuple[str, ...]
    everywhere: bool
    watch: bool
    output: str | None
    no_headers: bool


def _types(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    known = {"normal": "Normal", "warning": "Warning"}
    words = [word for word in (value or "").split(",") if word]
    if any(word.lower() not in known for word in words):
        raise click.BadParameter(f'expected Normal or Warning; got "{value}"')
    return tuple(known[word.lower()] for word in words)


@click.command()
@click.option("--for", "about", metavar="TYPE/NAME", help="Of one object.")
@click.option("--types", callback=_types, metavar="TYPES", help="Normal, Warning, or both.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="In all namespaces.")
@click.option("-w", "--watch", is_flag=True, help="Then go on with every new one.")
@output_option("json", "yaml", "csv")
@click.option("--no-headers", is_flag=True, help="Without the line of column names.")
@on_cluster
def events(target: Target, **flags: Any) -> None:
    """Show what happened lately.

    \b
    bayplan events --types=Warning -A
    bayplan events --for pod/web-0 -w
    """
    wish = Wish(**flags)
    target.run(lambda session: _events(session, wish))


async def _events(session: Session, wish: Wish) -> None:
    from bayplan.cli.describe.page import seen_last
    from bayplan.cli.printers import Aligned, document, render, table_lines
    from bayplan.cli.resources import list_all
    from bayplan.cli.rows import clean
    from bayplan.cli.watching import changes
    from bayplan.cluster.kinds import EVENT

    namespace, fields = await _where(session, wish)
    found, revision = await list_all(session, EVENT, namespace, fields=fields)
    items = sorted((item for item in found if _wanted(item, wish)), key=lambda item: seen_last(item.doc()))
    if wish.output in ("json", "yaml"):
        documents = [clean(item.doc()) for item in items]
        whole = {"apiVersion": "v1", "items": documents, "kind": "List", "metadata": {"resourceVersion": ""}}
        click.echo(document(whole, wish.output), nl=False)
        return
    if wish.output == "csv":
        click.echo(render(_listing(items, session.now(), wish), "csv", headers=not wish.no_headers), nl=False)
        return
    if not items and not wish.watch:
        tell("No events found." if wish.everywhere else f"No events found in {session.namespace} namespace.")
        return
    aligned = Aligned()
    click.echo(
        aligned.text(table_lines(_listing(items, session.now(), wish), wide=False, headers=not wish.no_headers)),
        nl=False,
    )
    if wish.watch:
        async for change, item in changes(session, EVENT, namespace, since=revision, fields=fields):
            if change != "DELETED" and _wanted(item, wish):  # an event that expires is no news
                click.echo(
                    aligned.text(table_lines(_listing([item], session.now(), wish), wide=False, headers=False)),
                    nl=False,
                )


async def _where(session: Session, wish: Wish) -> tuple[str | None, str]:
    """The namespace and the field selector. Events on things of the whole cluster are in `default`."""
    from bayplan.cli.resources import find

    if not wish.about:
        return None if wish.everywhere else session.namespace, ""
    found = await find(session, [wish.about])
    if len(found) != 1 or len(found[0].names) != 1:
        raise click.BadParameter(f'expected TYPE/NAME; got "{wish.about}"', param_hint="--for")
    kind = found[0].kind
    fields = f"involvedObject.kind={kind.name},involvedObject.name={found[0].names[0]}"
    return None if wish.everywhere or not kind.namespaced else session.namespace, fields


def _wanted(item: Object, wish: Wish) -> bool:
    return not wish.types or item.doc().get("type") in wish.types


def _listing(items: Sequence[Object], now: Instant, wish: Wish) -> Listing:
    from bayplan.cli.describe.page import seen_often
    from bayplan.cli.printers import Column, Listing, Row

    names = ["Namespace"] if wish.everywhere else []
    rows = []
    for item in items:
        event = item.doc()
        about = event.get("involvedObject") or {}
        cells = [
            seen_often(event, now),
            event.get("type", ""),
            event.get("reason", ""),
            f"{about.get('kind', '')}/{about.get('name', '')}",
            (event.get("message") or "").strip(),
        ]
        rows.append(Row([item.namespace, *cells] if wish.everywhere else cells, item.name, event))
    return Listing([*map(Column, (*names, "Last Seen", "Type", "Reason", "Object", "Message"))], rows)
