"""Which of its formats a kubelet's checkpoint is in. The files do not say: the checksum that fits tells.

Formats of 1.36 and before are one struct with a checksum of its text in Go. Since 1.37 the content is a text in the
field `data`, with a checksum of its own; the fields beside it are for older kubelets, and do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from bayplan.node.checkpoint.errors import CheckpointError, CorruptCheckpointError
from bayplan.node.checkpoint.go_dump import Field, checksum, number, struct

T = TypeVar("T")

_CHECKSUM = Field("Checksum", "", "checksum.Checksum", number)


class Form(NamedTuple):
    """A format: the names that its struct had in Go, and its fields but the checksum."""

    version: int
    names: tuple[str, ...]
    fields: tuple[Field, ...]
    may_lack: bool = False
    """Whether a checksum of 0 is accepted, as the kubelet does with its oldest files. They have no other fields: one
    that is not known may be what a checksum has become."""

    def accepts_none(self, document: dict[str, Any]) -> bool:
        """Whether the document may do without a checksum."""
        return self.may_lack and document.keys() <= {"checksum", *(field.key for field in self.fields)}

    def checksums(self, document: dict[str, Any]) -> list[int]:
        """What the checksum of a document in this format may be."""
        shown = struct(*self.fields, _CHECKSUM)(document)
        return [checksum(f"(*state.{name}){shown}") for name in self.names]


class Wrapped(msgspec.Struct, frozen=True):
    """The file since 1.37."""

    data: str = ""
    data_checksum: int = msgspec.field(default=0, name="dataChecksum")
    checksum: int = 0


def decoded(blob: bytes | str, kind: type[T], source: str) -> tuple[T, dict[str, Any]]:
    """A file's content, fitted to a struct and as it is. Raises CheckpointError."""
    try:
        document = msgspec.json.decode(blob)
        return msgspec.convert(document, kind, str_keys=True), document
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as broken:
        raise CheckpointError(source, f"not a checkpoint of the kubelet: {broken}") from broken


def unwrapped(wrapped: Wrapped, source: str) -> str | None:
    """The content of a file of 1.37 or later, None for an older one. Raises CorruptCheckpointError."""
    if not wrapped.data and not wrapped.data_checksum:
        return None
    found = checksum(f"(string){wrapped.data}")
    if found != wrapped.data_checksum:
        raise CorruptCheckpointError(source, wrapped.data_checksum, found)
    return wrapped.data


def fitting(document: dict[str, Any], forms: Sequence[Form], expected: int, source: str) -> Form:
    """The format whose checksum is the expected one. Raises CorruptCheckpointError."""
    found: list[int] = []
    for form in forms:
        if not expected and form.accepts_none(document):
            return form
        sums = form.checksums(document)
        if expected in sums:
            return form
        found += sums
    raise CorruptCheckpointError(source, expected, found[0])
