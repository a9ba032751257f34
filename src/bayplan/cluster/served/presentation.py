"""How an object or a list is shown: as it is, as a table, or as metadata alone; the client's Accept header says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import Kind
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Page
from bayplan.cluster.served.exchange import Exchange
from bayplan.cluster.tables.columns import Columns
from bayplan.cluster.tables.table import Include, table
from bayplan.model.clock import Instant
from bayplan.model.errors import BadRequest

_JSON = "application/json"


class Presentation:
    """One client's wish."""

    def __init__(
        self,
        form: Literal["", "Table", "PartialObjectMetadata"],
        now: Instant,
        include: Include,
        columns: Callable[[Kind], Columns],
    ) -> None:
        self._form = form
        self._now = now
        self._include = include
        self._columns = columns
        self.media = f"{_JSON};as={form};v=v1;g=meta.k8s.io" if form == "Table" else _JSON

    @classmethod
    def of(cls, exchange: Exchange, cluster: EmbeddedCluster) -> Presentation:
        """What the Accept header asks for; the first form that is known counts."""
        form: Literal["", "Table", "PartialObjectMetadata"] = ""
        for choice in exchange.headers.get("accept", "").split(","):
            if "as=Table" in choice:
                form = "Table"
            elif "as=PartialObjectMetadata" in choice:
                form = "PartialObjectMetadata"
            elif "json" not in choice and "*/*" not in choice:
                continue
            break
        include = exchange.query.get("includeObject") or Include.METADATA
        if include not in [*Include]:
            raise BadRequest(f'unrecognized includeObject value: "{include}"')
        return cls(form, cluster.clock.now(), Include(include), cluster.world.server.types.columns)

    def one(self, item: Object) -> bytes:
        """A single object."""
        if self._form == "Table":
            return self._table(item.kind, (item,), {"resourceVersion": item.meta.resource_version})
        if self._form == "PartialObjectMetadata":
            return _metadata(item)
        return item.raw()

    def page(self, kind: Kind, page: Page) -> bytes:
        """A list, or a page of one."""
        meta: dict[str, Any] = {"resourceVersion": page.revision}
        if page.next:
            meta |= {"continue": page.next, "remainingItemCount": page.remaining}
        if self._form == "Table":
            return self._table(kind, page.items, meta)
        name, version = self._type(kind)
        head = f'{{"kind":"{name}List","apiVersion":"{version}","metadata":'.encode()
        items = b",".join([self.one(item) for item in page.items])
        return b"".join((head, msgspec.json.encode(meta), b',"items":[', items, b"]}"))

    def event(self, type_: str, item: Object) -> bytes:
        """A line of a watch."""
        return b'{"type":"%s","object":%s}\n' % (type_.encode(), self.one(item))

    def bookmark(self, kind: Kind, revision: str, *, initial_end: bool = False) -> bytes:
        """A line that only tells how far the stream has come."""
        meta: dict[str, Any] = {"resourceVersion": revision, "creationTimestamp": None}
        if initial_end:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        name, version = self._type(kind)
        told = {"kind": name, "apiVersion": version, "metadata": meta}
        return msgspec.json.encode({"type": "BOOKMARK", "object": told}) + b"\n"

    def _type(self, kind: Kind) -> tuple[str, str]:
        """What the client sees the objects as: kind and apiVersion."""
        if self._form == "PartialObjectMetadata":
            return "PartialObjectMetadata", "meta.k8s.io/v1"
        return kind.name, kind.api_version

    @property
    def shared(self) -> bool:
        """Whether all clients with this wish are shown the same bytes."""
        return self._form == ""

    def _table(self, kind: Kind, items: tuple[Object, ...], metadata: dict[str, Any]) -> bytes:
        documents = (item.doc() for item in items)
        return msgspec.json.encode(
            table(kind, documents, self._now, self._include, metadata, columns=self._columns(kind))
        )


def _metadata(item: Object) -> bytes:
    head = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'
    return head + msgspec.json.encode(item.meta) + b"}"
