"""How documents of a kind are read, and which rules they obey.

A kind that every cluster has is read by the table of types; one that a cluster defines itself by the schema of its
definition. Whoever handles documents asks for the kind's form and need not know which it is.
"""

from __future__ import annotations

import functools
from typing import Any, Protocol

from bayplan.cluster.embedded.admission.body import read_object
from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.registry import strategy_of
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.schema.decode import clean_document
from bayplan.cluster.embedded.schema.table import TABLE
from bayplan.cluster.kinds import Kind


class Form(Protocol):
    """What is to be known of a kind to read and judge its documents."""

    @property
    def strategy(self) -> Strategy:
        """The rules."""
        ...

    @property
    def type_name(self) -> str:
        """The name of the type, by which server-side apply finds its shape."""
        ...

    @property
    def typed(self) -> bool:
        """Whether the type is in the table: only then is there a strategic merge patch."""
        ...

    def read(self, body: bytes, content_type: str, validation: str) -> tuple[Doc, list[str]]:
        """The clean document of a body, and warnings. Raises BadRequest, UnsupportedMediaType."""
        ...

    def clean(self, document: Any) -> tuple[Doc, list[str]]:
        """The same of plain values, as a patch leaves them, and what was unknown. Raises DecodeError."""
        ...

    def fits(self, document: Doc) -> bool:
        """Whether a clean document has the shape of its type, so that its fields can have owners."""
        ...


class TypedForm:
    """The form of a kind that every cluster has."""

    typed = True

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self.strategy = strategy_of(kind)
        self.type_name = TABLE.kinds[kind.name]

    def read(self, body: bytes, content_type: str, validation: str) -> tuple[Doc, list[str]]:
        """See Form."""
        return read_object(self._kind, body, content_type=content_type, validation=validation)

    def clean(self, document: Any) -> tuple[Doc, list[str]]:
        """See Form."""
        return clean_document(self.type_name, document)

    def fits(self, document: Doc) -> bool:  # noqa: ARG002 - it does, or it would not have been read
        """See Form."""
        return True


typed_form = functools.cache(TypedForm)
