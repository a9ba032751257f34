"""Lists and watches as they come over the wire: split into objects whose bytes stay bytes.

A list is split at its items, a watch at its lines; nothing but metadata is decoded until somebody asks.
"""

from __future__ import annotations

import msgspec

from bayplan.cluster.kinds import Kind
from bayplan.cluster.live.faults import error_of
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Page, WatchEvent
from bayplan.model.errors import ServerError

Parts = dict[str, msgspec.Raw]
"""An object's top-level fields, still JSON: the whole answer is gone through once."""


class InitialEnd(WatchEvent, frozen=True, kw_only=True):
    """The bookmark that ends the present objects of a streamed list: all that comes later is news."""


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    next: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: tuple[Parts, ...] | None = None


class _Line(msgspec.Struct, frozen=True):
    type: str
    object: Parts


class _MarkMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _Refusal(msgspec.Struct, frozen=True):
    object: msgspec.Raw


_READ_LIST = msgspec.json.Decoder(_List)
_READ_LINE = msgspec.json.Decoder(_Line)
_READ_MARK = msgspec.json.Decoder(_MarkMeta)
_READ_REFUSAL = msgspec.json.Decoder(_Refusal)
_INITIAL_END = "k8s.io/initial-events-end"


def read_object(kind: Kind, body: bytes) -> Object:
    """The object that an answer holds. Raises ServerError for what is none."""
    try:
        return Object.from_raw(kind, body)
    except msgspec.DecodeError as error:
        raise ServerError(f"the server's {kind.name} cannot be read: {error}") from error


def read_page(kind: Kind, body: bytes) -> Page:
    """The part of a list that an answer holds. Raises ServerError for what is no list."""
    try:
        found = _READ_LIST.decode(body)
        items = tuple([Object.from_parts(kind, parts) for parts in found.items or ()])
    except msgspec.DecodeError as error:
        raise ServerError(f"the server's list of {kind.resource} cannot be read: {error}") from error
    meta = found.metadata
    return Page(items, meta.resource_version, meta.next, meta.remaining_item_count or 0)


def read_event(kind: Kind, line: bytes) -> WatchEvent:
    """The event that a line holds. Raises the error that an ERROR event stands for."""
    try:
        found = _READ_LINE.decode(line)
        match found.type:
            case "ADDED" | "MODIFIED" | "DELETED" as change:
                item = Object.from_parts(kind, found.object)
                return WatchEvent(change, item.meta.resource_version, item)
            case "BOOKMARK":
                meta = _READ_MARK.decode(found.object.get("metadata", b"{}"))
                ends = meta.annotations.get(_INITIAL_END) == "true"
                return (InitialEnd if ends else WatchEvent)(type="BOOKMARK", revision=meta.resource_version)
    except msgspec.DecodeError as error:
        raise ServerError(f"the server's watch of {kind.resource} cannot be read: {error}") from error
    raise error_of(0, _READ_REFUSAL.decode(line).object)


class Lines:
    """Pieces of any size in, whole lines out. A line may be megabytes long, so pieces are joined only once."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this piece completes."""
        end = piece.rfind(b"\n")
        if end < 0:
            self._rest.append(piece)
            return []
        whole = b"".join((*self._rest, piece[:end]))
        self._rest = [piece[end + 1 :]] if end + 1 < len(piece) else []
        return [line for line in whole.split(b"\n") if line]
