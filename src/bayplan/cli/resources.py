"""Which objects a command line names: `TYPE`, `TYPE NAME ...`, `TYPE/NAME ...`, with commas between types.

Words are read before anything is asked; then each becomes a kind, from our own table or, for kinds that are not in it,
from what the server says of itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cluster.kinds import Kind, kind_named
from bayplan.model.errors import NotFound

if TYPE_CHECKING:
    from bayplan.cli.targets import Session
    from bayplan.cluster.objects import Object
    from bayplan.cluster.port import Page

_ALL = (
    "pods",
    "replicationcontrollers",
    "services",
    "daemonsets",
    "deployments",
    "replicasets",
    "statefulsets",
    "horizontalpodautoscalers",
    "cronjobs",
    "jobs",
)
"""The category `all`, in kubectl's order."""
_CHUNK = 500
"""Objects a page, as kubectl asks for them."""


class Wanted(msgspec.Struct, frozen=True):
    """A type's word and the names asked for; none means all objects of the type."""

    word: str
    names: tuple[str, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """A kind and the names asked for."""

    kind: Kind
    names: tuple[str, ...] = ()

    def home(self, namespace: str) -> str:
        """Where its objects live: nowhere in particular for kinds of the whole cluster."""
        return namespace if self.kind.namespaced else ""


def read_words(words: Sequence[str]) -> list[Wanted]:
    """What the words of a command line name. Raises UsageError."""
    if not words:
        raise click.UsageError("expected a type and names, or TYPE/NAME: bayplan get pods; bayplan get pod/web")
    slashed = ["/" in word for word in words]
    if all(slashed):
        return [_one(word) for word in words]
    if any(slashed):
        raise click.UsageError(
            f'"{words[slashed.index(True)]}" names its type: expected TYPE/NAME everywhere, or TYPE NAME NAME'
        )
    types = [each for word in words[0].split(",") if word for each in (_ALL if word == "all" else (word,))]
    return [Wanted(each, tuple(words[1:])) for each in types]


def _one(word: str) -> Wanted:
    kind, _, name = word.partition("/")
    if not kind or not name or "/" in name:
        raise click.UsageError(f'expected TYPE/NAME; got "{word}"')
    return Wanted(kind, (name,))


async def find(session: Session, words: Sequence[str]) -> list[Found]:
    """The kinds and names that words mean. Raises NotFound for a type that neither we nor the server know."""
    found: list[Found] = []
    for wanted in read_words(words):
        kind = await find_kind(session, wanted.word)
        if found and found[-1].kind == kind and wanted.names:
            found[-1] = Found(kind, (*found[-1].names, *wanted.names))
        else:
            found.append(Found(kind, wanted.names))
    return found


async def find_kind(session: Session, word: str) -> Kind:
    """The kind that a word means."""
    try:
        return kind_named(word)
    except NotFound as unknown:
        from bayplan.cli.discovery import discover

        kind = await discover(session.cluster.access, word)
        if kind is None:
            raise NotFound(unknown.message, hint="bayplan get --help; is the word misspelt?") from unknown
        return kind


async def list_all(
    session: Session, kind: Kind, namespace: str | None, *, labels: str = "", fields: str = ""
) -> tuple[list[Object], str]:
    """All objects of a kind, page by page, and the revision to watch from."""
    items: list[Object] = []
    revision = ""
    async for page in _pages(session, kind, namespace, labels=labels, fields=fields):
        items += page.items
        revision = page.revision
    return items, revision


async def _pages(session: Session, kind: Kind, namespace: str | None, **selectors: Any) -> AsyncIterator[Page]:
    after = ""
    while True:
        page = await session.cluster.list(kind, namespace, limit=_CHUNK, after=after, **selectors)
        yield page
        after = page.next
        if not after:
            return


async def objects_of(session: Session, found: Found, *, labels: str = "", everywhere: bool = False) -> list[Object]:
    """The objects that were named, or all that match. Raises NotFound for a name that is not there."""
    namespace = found.home(session.namespace)
    if found.names:
        return [await session.cluster.get(found.kind, name, namespace) for name in found.names]
    items, _ = await list_all(session, found.kind, None if everywhere else namespace or None, labels=labels)
    return items


def called(kind: Kind, name: str) -> str:
    """`pod/web`, `deployment.apps/web`: an object in kubectl's messages."""
    return f"{kind.qualified.lower()}/{name}"
