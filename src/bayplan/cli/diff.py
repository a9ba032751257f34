"""What a change would do to an object, as the lines that go and the lines that come."""

from __future__ import annotations

import difflib
from typing import Any

from bayplan.cli.printers import document
from bayplan.cli.rows import clean
from bayplan.cli.three_way import ANNOTATION

_SERVERS = ("resourceVersion", "uid", "generation", "creationTimestamp", "managedFields", "selfLink")
_RED, _GREEN, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"


def difference(name: str, before: dict[str, Any] | None, after: dict[str, Any], *, colour: bool = False) -> str:
    """A unified diff of two states of an object; '' where they agree. What the server alone writes is left out."""
    old, new = ([] if each is None else _lines(each) for each in (before, after))
    lines = difflib.unified_diff(old, new, f"live/{name}" if before is not None else "/dev/null", f"applied/{name}")
    return "".join(_coloured(line) if colour else line for line in lines)


def _lines(each: dict[str, Any]) -> list[str]:
    shown = {key: value for key, value in each.items() if key != "status"}
    meta = {key: value for key, value in (shown.get("metadata") or {}).items() if key not in _SERVERS}
    annotations = {key: value for key, value in (meta.pop("annotations", None) or {}).items() if key != ANNOTATION}
    shown["metadata"] = {**meta, **({"annotations": annotations} if annotations else {})}
    return document(clean(shown), "yaml").splitlines(keepends=True)


def _coloured(line: str) -> str:
    if line.startswith(("---", "+++", "@@")) or line[:1] not in "+-":
        return line
    return f"{_RED if line[0] == '-' else _GREEN}{line.rstrip()}{_PLAIN}\n"
