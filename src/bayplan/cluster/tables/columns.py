"""A column is its name, what the API says of it, and the function that finds its cell in an object.

Documents are plain JSON values. A path such as `spec.replicas` may lead nowhere: what is absent has a text of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.model.ages import age
from bayplan.model.clock import Instant, parse_rfc3339
from bayplan.model.meta import LabelSelector
from bayplan.model.selectors import SelectorError, from_label_selector

NONE, UNSET = "<none>", "<unset>"

Doc = dict[str, Any]
Cell = str | float | bool | None
CellOf = Callable[[Doc, Instant], Cell]


class Column(msgspec.Struct, frozen=True):
    """One column of a kind. Priority 1 marks those that `-o wide` shows."""

    name: str
    cell: CellOf
    type: str = "string"
    format: str = ""
    priority: int = 0

    def definition(self) -> Doc:
        """The column as a Table declares it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": "",
            "priority": self.priority,
        }


Columns = tuple[Column, ...]


def at(document: Doc, path: str) -> Any:
    """The value that a path leads to; None where it leads nowhere."""
    value: Any = document
    for step in path.split("."):
        value = value.get(step) if value else None
    return value


def field(path: str, absent: Cell = "") -> CellOf:
    """The value at a path; an empty one counts as absent."""
    return lambda document, _now: at(document, path) or absent


def count(path: str) -> CellOf:
    """The number at a path, or how many entries there are."""

    def cell(document: Doc, _now: Instant) -> int:
        value = at(document, path) or 0
        return value if isinstance(value, int) else len(value)

    return cell


def since(path: str, absent: str = "<unknown>") -> CellOf:
    """How long ago the time at a path was."""
    return lambda document, now: age(parse_rfc3339(time), now) if (time := at(document, path)) else absent


def deleted(document: Doc) -> bool:
    """Whether its deletion was asked for."""
    return bool(at(document, "metadata.deletionTimestamp"))


def condition_status(document: Doc, kind: str) -> str | None:
    """The status of the first condition of this type; None if there is none."""
    conditions = at(document, "status.conditions") or ()
    return next((each.get("status") for each in conditions if each.get("type") == kind), None)


def labels_text(labels: Mapping[str, str] | None) -> str:
    """`a=2,z=1`."""
    return ",".join(sorted(f"{key}={value}" for key, value in (labels or {}).items())) or NONE


def selector_text(selector: Doc | None, broken: str = "<error>") -> str:
    """`app=a,tier in (x,y),!zz`; empty where it selects everything or nothing."""
    try:
        return str(from_label_selector(None if selector is None else msgspec.convert(selector, LabelSelector)))
    except SelectorError:
        return broken


def labels_at(path: str) -> CellOf:
    """The labels at a path."""
    return lambda document, _now: labels_text(at(document, path))


def shortened(parts: Sequence[str], most: int, separator: str = ",") -> str:
    """The first parts, and how many more there are."""
    more = f" + {len(parts) - most} more..." if len(parts) > most else ""
    return separator.join(parts[:most]) + more


def template_columns(path: str, selector: str = "") -> Columns:
    """The wide columns of what makes pods: `path` leads to the pod spec, `selector` to the label selector if shown."""
    columns = (
        Column("Containers", _joined(f"{path}.containers", "name"), priority=1),
        Column("Images", _joined(f"{path}.containers", "image"), priority=1),
    )
    if not selector:
        return columns
    return (*columns, Column("Selector", lambda each, _now: selector_text(at(each, selector)) or NONE, priority=1))


def _joined(path: str, key: str) -> CellOf:
    def cell(document: Doc, _now: Instant) -> str:
        entries: Iterable[Doc] = at(document, path) or ()
        return ",".join(each.get(key) or "" for each in entries)

    return cell


NAME = Column("Name", field("metadata.name"), format="name")
AGE = Column("Age", since("metadata.creationTimestamp"))
GENERIC: Columns = (NAME, Column("Created At", field("metadata.creationTimestamp"), "date"))
"""For kinds that have no columns of their own."""
