r"""Field selectors: `spec.nodeName=node-1,status.phase!=Running`.

Equality only; in values `\`, `,` and `=` are escaped by a backslash; a missing field is empty. Which fields a kind
offers is the API server's matter, not this module's.

Source of truth: k8s.io/apimachinery 0.36 pkg/fields.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from bayplan.model.selectors import SelectorError

if TYPE_CHECKING:
    from collections.abc import Mapping

_TERMS = re.compile(r"(?:\\.|[^,\\]|\\$)*", re.DOTALL)
_OPERATOR = re.compile("!=|==|=")
_ESCAPES = str.maketrans({"\\": "\\\\", ",": "\\,", "=": "\\="})


class FieldTerm(msgspec.Struct, frozen=True):
    """One comparison."""

    field: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.field}{'!=' if self.negated else '='}{self.value.translate(_ESCAPES)}"


class FieldSelector(msgspec.Struct, frozen=True):
    """Comparisons that must all hold; without any it matches everything. `str()` is the canonical text."""

    terms: tuple[FieldTerm, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether fields meet every term."""
        return all((fields.get(term.field, "") == term.value) is not term.negated for term in self.terms)

    def exact(self, field: str) -> str | None:
        """The one value that the field must have for a match; None if there is no such value."""
        for term in self.terms:
            if term.field == field and not term.negated:
                return term.value
        return None

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


def parse_field_selector(text: str) -> FieldSelector:
    """The selector that `text` names. Raises SelectorError with the API server's words."""
    found = []
    for part in sorted(filter(None, _split(text))):
        match = _OPERATOR.search(part)
        if match is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        field, value = part[: match.start()], _unescaped(part[match.end() :])
        if field or value:
            found.append(FieldTerm(field, value, match[0] == "!="))
    return FieldSelector(tuple(found))


def _split(text: str) -> list[str]:
    parts = []
    at = 0
    while at <= len(text):
        match = _TERMS.match(text, at)
        assert match is not None  # the expression matches the empty text
        parts.append(match[0])
        at = match.end() + 1
    return parts


def _unescaped(text: str) -> str:
    out = []
    characters = iter(text)
    for char in characters:
        if char == "\\":
            escaped = next(characters, "")
            if escaped not in ("\\", ",", "="):
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            out.append(escaped)
        elif char in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            out.append(char)
    return "".join(out)
