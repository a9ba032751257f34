"""A Kubernetes object as the house passes it around: metadata decoded, everything else encoded until it is wanted.

An object is its metadata plus *sections*, one for each other top-level field (`spec`, `status`, `data`, ...). A section
is its JSON bytes and, once somebody asked, the struct decoded from them. Sections are never changed, so all versions of
an object share those that did not change, and all pods stamped from one template share one spec: its bytes are held
once and decoded once.
"""

from __future__ import annotations

import functools
import typing
from typing import Any, TypeVar

import msgspec

from bayplan.cluster.kinds import Kind, is_built_in
from bayplan.cluster.salvage import UNREADABLE, loose, salvaged
from bayplan.model import objects as views
from bayplan.model.meta import KubernetesObject, ObjectMeta

V = TypeVar("V", bound=KubernetesObject)

_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder().decode
_META = msgspec.json.Decoder(ObjectMeta)
_SPLIT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TYPE_FIELDS = frozenset(("kind", "apiVersion", "metadata"))


class Section:
    """The bytes of one top-level field, decoded at most once."""

    __slots__ = ("_view", "raw")

    def __init__(self, raw: bytes, view: msgspec.Struct | None = None) -> None:
        self.raw = raw
        self._view = view

    def view(self, kind: type[Any]) -> Any:
        """The section as a struct. A section is only ever asked for one type."""
        if self._view is None:
            self._view = views.decode(self.raw, kind)
        return self._view

    def plain(self) -> Any:
        """The section as plain JSON values of the caller's own."""
        return _plain(self.raw)


@functools.cache
def _view_class(kind: Kind) -> tuple[type[KubernetesObject], dict[str, type] | None]:
    """The struct of a kind, and the types of its sections where they are structs themselves."""
    cls = views.KINDS.get(kind.name) if is_built_in(kind) else None
    if cls is None:
        raise KeyError(f"there is no view of {kind.name}")
    types = typing.get_type_hints(cls)
    types = {field.encode_name: types[field.name] for field in msgspec.structs.fields(cls) if field.name != "metadata"}
    if all(isinstance(each, type) and issubclass(each, msgspec.Struct) for each in types.values()):
        return cls, types
    return cls, None


class Object:
    """One version of one object. Never changed; equal versions of one object are the same version."""

    __slots__ = ("_view", "kind", "meta", "sections", "version")

    def __init__(self, kind: Kind, meta: ObjectMeta, sections: dict[str, Section], version: int) -> None:
        self.kind = kind
        self.meta = meta
        self.sections = sections
        self.version = version
        self._view: KubernetesObject | None = None

    @classmethod
    def from_raw(cls, kind: Kind, raw: bytes | msgspec.Raw) -> Object:
        """An object from its JSON. Raises what UNREADABLE names for what is no JSON object."""
        try:
            parts = _SPLIT.decode(raw)
        except UNREADABLE:
            parts = parts_of(loose(raw))
        return cls.from_parts(kind, parts)

    @classmethod
    def from_parts(cls, kind: Kind, parts: dict[str, msgspec.Raw]) -> Object:
        """An object from its top-level fields. Keeps nothing of the text that the parts were cut from.

        Metadata is read as far as it can be: where something was left out, the object is a `Salvaged` one.
        """
        sections = {name: Section(bytes(part)) for name, part in parts.items() if name not in _TYPE_FIELDS}
        try:
            meta = _META.decode(bytes(parts["metadata"])) if "metadata" in parts else ObjectMeta()
        except UNREADABLE:
            meta, faults = salvaged(parts["metadata"], _META, "metadata")
            if faults:
                return Salvaged(kind, meta, sections, faults)
        return cls(kind, meta, sections, version_of(meta.resource_version))

    @property
    def name(self) -> str:
        """metadata.name."""
        return self.meta.name

    @property
    def namespace(self) -> str:
        """metadata.namespace; empty for cluster-scoped kinds."""
        return self.meta.namespace

    @property
    def uid(self) -> str:
        """metadata.uid."""
        return self.meta.uid

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name: unique within a kind at any one time."""
        return (self.meta.namespace, self.meta.name)

    def as_kind(self, kind: Kind) -> Object:
        """The same object as another version of its kind shows it."""
        return self if self.kind is kind else Object(kind, self.meta, self.sections, self.version)

    def bare(self) -> Object:
        """The same version with nothing but its metadata."""
        return Object(self.kind, self.meta, {}, self.version)

    def view(self, expected: type[V]) -> V:
        """The object as the slim struct of its kind; `expected` says which, for the type checker and for safety."""
        view = self._view
        if view is None:
            view = self._view = self._decode()
        if not isinstance(view, expected):
            raise TypeError(f"{self!r} is not a {expected.__name__}")
        return view

    def _decode(self) -> KubernetesObject:
        cls, types = _view_class(self.kind)
        if types is None:
            return views.decode(self.raw(), cls)
        sections = self.sections
        given = {name: sections[name].view(kind) for name, kind in types.items() if name in sections}
        return cls(metadata=self.meta, **given)

    def raw(self) -> bytes:
        """The object as JSON, as the API server writes it."""
        head = f'{{"kind":"{self.kind.name}","apiVersion":"{self.kind.api_version}","metadata":'
        parts = [head.encode(), _ENCODE(self.meta)]
        for name, section in self.sections.items():
            parts += (b",", _ENCODE(name), b":", section.raw)
        parts.append(b"}")
        return b"".join(parts)

    def doc(self) -> dict[str, Any]:
        """The object as plain JSON values of the caller's own."""
        document: dict[str, Any] = _plain(self.raw())
        return document

    def __repr__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"<{self.kind.name} {where} at {self.version}>"


class Salvaged(Object):
    """An object of which not all could be read; `faults` says what was left out."""

    __slots__ = ("faults",)

    def __init__(self, kind: Kind, meta: ObjectMeta, sections: dict[str, Section], faults: list[str]) -> None:
        super().__init__(kind, meta, sections, version_of(meta.resource_version))
        self.faults = faults


def version_of(revision: str) -> int:
    """A resourceVersion as a number; 0 for what is none, or none that a server counts to."""
    return int(revision) if revision.isdecimal() and revision.isascii() and len(revision) < 20 else 0


def parts_of(document: Any) -> dict[str, msgspec.Raw]:
    """The top-level fields of a document, as `from_parts` takes them. Raises ValueError for what is no object."""
    if not isinstance(document, dict):
        raise ValueError(f"expected an object, got {type(document).__name__}")
    return {name: msgspec.Raw(_ENCODE(value)) for name, value in document.items()}


def _plain(raw: bytes) -> Any:
    try:
        return _DECODE(raw)
    except UNREADABLE:
        return loose(raw)


def sections_of(document: dict[str, Any]) -> dict[str, Section]:
    """The sections of a document: every top-level field but kind, apiVersion and metadata, encoded."""
    return {name: Section(_ENCODE(value)) for name, value in document.items() if name not in _TYPE_FIELDS}


def meta_of(document: dict[str, Any]) -> ObjectMeta:
    """The metadata of a document as a struct; complete, so it encodes to what was there."""
    return _META.decode(_ENCODE(document["metadata"]))
