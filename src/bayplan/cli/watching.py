"""Following a cluster: every change of some objects, for as long as one looks, and `get -w` made of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from bayplan.cli.printers import Aligned, document, render, table_lines
from bayplan.cli.resources import list_all
from bayplan.cli.rows import Style, clean, listing
from bayplan.model.errors import Expired

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from bayplan.cli.get import Wish
    from bayplan.cli.resources import Found
    from bayplan.cli.targets import Session
    from bayplan.cluster.kinds import Kind
    from bayplan.cluster.objects import Object

_PAUSE = 1.0
"""Seconds between the end of a stream and the next: a server that ends them at once is not to be rushed."""


async def changes(
    session: Session, kind: Kind, namespace: str | None, *, since: str, labels: str = "", fields: str = ""
) -> AsyncIterator[tuple[str, Object]]:
    """Every change after a revision, with no end: ADDED, MODIFIED or DELETED, and the object.

    A stream that ends is taken up where it ended. When the past is gone, what changed meanwhile is listed, as MODIFIED.
    """
    while True:
        try:
            async for event in session.cluster.watch(
                kind, namespace, since=since, labels=labels, fields=fields, bookmarks=True
            ):
                since = event.revision
                if event.object is not None:
                    yield event.type, event.object
        except Expired:
            before = int(since) if since.isdigit() else 0
            items, since = await list_all(session, kind, namespace, labels=labels, fields=fields)
            for item in items:
                if item.version > before:
                    yield "MODIFIED", item
        await asyncio.sleep(_PAUSE)


async def watch(session: Session, found: Found, wish: Wish) -> int:
    """Show what there is, unless only changes are wanted, then every change."""
    namespace = None if wish.everywhere else found.home(session.namespace) or None
    fields = wish.fields
    if found.names:
        await session.cluster.get(found.kind, found.names[0], found.home(session.namespace))  # NotFound, if it is
        fields = f"metadata.name={found.names[0]}"
    stream = _Stream(session, found.kind, wish)
    items, revision = await list_all(session, found.kind, namespace, labels=wish.labels, fields=fields)
    if not wish.watch_only:
        stream.show(items)
    changed = changes(session, found.kind, namespace, since=revision, labels=wish.labels, fields=fields)
    async for _, item in changed:
        stream.show([item])
    return 0


class _Stream:
    """Objects printed as they come, in one table or as documents one after another."""

    def __init__(self, session: Session, kind: Kind, wish: Wish) -> None:
        self._session, self._kind, self._wish = session, kind, wish
        self._aligned = Aligned()
        self._headers = not wish.no_headers

    def show(self, items: Sequence[Object]) -> None:
        """Print them now."""
        if items:
            click.echo(self._text(items), nl=False)
            self._headers = False

    def _text(self, items: Sequence[Object]) -> str:
        wish = self._wish
        if wish.output in ("json", "yaml"):
            between = "---\n" if wish.output == "yaml" else ""
            texts = (
                document(clean(item.doc(), managed_fields=wish.show_managed_fields), wish.output) for item in items
            )
            return "".join(between + text for text in texts)
        style = Style(wish.output in ("wide", "csv"), wish.everywhere, wish.show_labels)
        rows = listing(self._kind, items, self._session.now(), style)
        if wish.output in ("name", "csv"):
            return render(rows, wish.output, headers=self._headers)
        return self._aligned.text(table_lines(rows, wide=wish.output == "wide", headers=self._headers))
