"""Lists and watches as they come over the wire: split into objects whose bytes stay bytes.

A list is split at its items, a watch at its lines; nothing but metadata is decoded until somebody asks. What cannot be
read does not keep the rest from being read: it is left out and put on a list, `odd`, for a report.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from bayplan.cluster.kinds import NODE, POD, Kind
from bayplan.cluster.live.faults import error_of
from bayplan.cluster.objects import Object, Salvaged, Section, parts_of, version_of
from bayplan.cluster.port import Page, WatchEvent
from bayplan.cluster.salvage import UNREADABLE, loose, salvaged
from bayplan.model.errors import ServerError
from bayplan.model.meta import ObjectMeta

Odd = list[str]
"""What was wrong with which object."""
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


class _Plain(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True, rename="camel"):
    """An object that has nothing but these, as most have: metadata is decoded in the same go."""

    metadata: ObjectMeta
    kind: msgspec.Raw = msgspec.Raw()
    api_version: msgspec.Raw = msgspec.Raw()
    spec: msgspec.Raw = msgspec.Raw()
    status: msgspec.Raw = msgspec.Raw()

    def whole(self, kind: Kind) -> Object:
        """As the house passes it around."""
        sections = {}
        if spec := bytes(self.spec):
            sections["spec"] = Section(spec)
        if status := bytes(self.status):
            sections["status"] = Section(status)
        own = self.metadata.managed_fields.copy()  # else it would keep the line
        msgspec.structs.force_setattr(self.metadata, "managed_fields", own)
        return Object(kind, self.metadata, sections, version_of(self.metadata.resource_version))


class _PlainLine(msgspec.Struct, frozen=True, gc=False):
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: _Plain


class _MarkMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


_READ_LIST = msgspec.json.Decoder(_List)
_READ_LINE = msgspec.json.Decoder(_Line)
_READ_PLAIN = msgspec.json.Decoder(_PlainLine)
_PLAIN_KINDS = frozenset((NODE, POD))
"""Those of which there are many changes. A line of another kind would be gone through twice."""
_READ_MARK = msgspec.json.Decoder(_MarkMeta)
_INITIAL_END = "k8s.io/initial-events-end"
_SHOWN = 100
_TEXT = "text that is no Unicode"


def read_object(kind: Kind, body: bytes) -> Object:
    """The object that an answer holds. Raises ServerError for what is none."""
    try:
        return Object.from_raw(kind, body)
    except UNREADABLE as error:
        raise ServerError(f"the server's {kind.name} cannot be read: {error}") from error


def read_page(kind: Kind, body: bytes, odd: Odd, *, metadata_only: bool = False) -> Page:
    """The part of a list that an answer holds. Raises ServerError for what is no list."""
    try:
        found = _READ_LIST.decode(body)
    except UNREADABLE as error:
        found = _loose_list(kind, body, odd, error)
    items = tuple([_object(kind, parts, odd) for parts in found.items or ()])
    if metadata_only:
        items = tuple([item.bare() for item in items])
    meta = found.metadata
    return Page(items, meta.resource_version, meta.next, meta.remaining_item_count or 0)


def read_event(kind: Kind, line: bytes, odd: Odd, *, metadata_only: bool = False) -> WatchEvent | None:
    """The event that a line holds, if it holds one. Raises the error that an ERROR event stands for."""
    if kind in _PLAIN_KINDS and not metadata_only:
        try:
            plain = _READ_PLAIN.decode(line)
            return _change(plain.type, plain.object.whole(kind))
        except UNREADABLE:
            pass  # it is another line than most, which is what the rest is for
    try:
        found = _READ_LINE.decode(line)
    except UNREADABLE:
        loosely = _loose_line(line, odd)
        if loosely is None:
            return None
        found = loosely
    match found.type:
        case "ADDED" | "MODIFIED" | "DELETED" as change:
            item = _object(kind, found.object, odd)
            return _change(change, item.bare() if metadata_only else item)
        case "BOOKMARK":
            meta = _mark(found.object.get("metadata", msgspec.Raw(b"{}")), odd)
            ends = meta.annotations.get(_INITIAL_END) == "true"
            return (InitialEnd if ends else WatchEvent)(type="BOOKMARK", revision=meta.resource_version)
        case "ERROR":
            raise error_of(0, msgspec.json.encode(found.object))
    odd.append(f"an event of type {found.type:.{_SHOWN}}")
    return None


def _change(type_: Literal["ADDED", "MODIFIED", "DELETED"], item: Object) -> WatchEvent:
    return WatchEvent(type_, item.meta.resource_version if item.version else "", item)


def _object(kind: Kind, parts: Parts, odd: Odd) -> Object:
    item = Object.from_parts(kind, parts)
    if type(item) is Salvaged:
        odd += [f"{item.namespace}/{item.name}: {fault}" for fault in item.faults]
    return item


def _mark(raw: msgspec.Raw, odd: Odd) -> _MarkMeta:
    try:
        return _READ_MARK.decode(raw)
    except UNREADABLE:
        meta, faults = salvaged(raw, _READ_MARK, "a bookmark's metadata")
        odd += faults
        return meta


def _loose_list(kind: Kind, body: bytes, odd: Odd, why: Exception) -> _List:
    """A list of which something is not as it should be: without it."""
    try:
        found = loose(body)
        items, meta = found.get("items") or [], msgspec.convert(found.get("metadata") or {}, _ListMeta)
        odd += [f"an item that is {item!s:.{_SHOWN}}" for item in items if not isinstance(item, dict)]
        odd += [f"{_name(item)}: {_TEXT}" for item in items if isinstance(item, dict) and "\ufffd" in str(item)]
        return _List(meta, tuple(parts_of(item) for item in items if isinstance(item, dict)))
    except (*UNREADABLE, AttributeError, TypeError):
        raise ServerError(f"the server's list of {kind.resource} cannot be read: {why}") from why


def _loose_line(line: bytes, odd: Odd) -> _Line | None:
    try:
        match loose(line):
            case {"type": str(kind), "object": dict(item)}:
                odd.append(f"{_name(item)}: {_TEXT}")
                return _Line(kind, parts_of(item))
    except UNREADABLE:
        pass  # said below
    odd.append(f"a line that is no event: {line[:_SHOWN].decode(errors='replace')}")
    return None


def _name(document: dict[str, object]) -> str:
    meta = document.get("metadata")
    return f"{meta.get('namespace', '')}/{meta.get('name', '')}" if isinstance(meta, dict) else "an object"


class Lines:
    """Pieces of any size in, whole lines out. A line may be megabytes long, so pieces are joined only once."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this piece completes."""
        found = piece.split(b"\n")
        self._rest.append(found[0])
        if len(found) == 1:
            return []
        found[0] = b"".join(self._rest)
        self._rest = [found.pop()]
        return [line for line in found if line]
