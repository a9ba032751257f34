"""Reading documents that may hold anything: a missing field, or one of a wrong type, is a field that says nothing."""

from __future__ import annotations

from typing import Any

from bayplan.ledger.differ import reading
from bayplan.model.clock import Instant

LONGEST = 1024
"""Characters of a reason that are kept: some controllers put a whole traceback there."""


class Document:
    """A workload's spec and status, by paths such as `status.readyReplicas`."""

    __slots__ = ("_conditions", "_root")

    def __init__(self, spec: Any = None, status: Any = None) -> None:
        self._root = {"spec": spec, "status": status}
        self._conditions: dict[str, dict[str, Any]] | None = None

    def value(self, path: str) -> Any:
        """What stands there, or None."""
        found: Any = self._root
        for step in path.split("."):
            if not isinstance(found, dict):
                return None
            found = found.get(step)
        return found

    def text(self, path: str) -> str:
        """The text there, or an empty one."""
        found = self.value(path)
        return found[:LONGEST] if isinstance(found, str) else ""

    def number(self, path: str) -> int | None:
        """The whole number there, or None."""
        return whole(self.value(path))

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of the list there."""
        found = self.value(path)
        return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []

    def time(self, path: str) -> Instant | None:
        """The instant there, or None."""
        return instant(self.value(path))

    def condition(self, kind: str) -> dict[str, Any]:
        """The condition of that type; an empty one where there is none."""
        if self._conditions is None:
            self._conditions = {}
            for one in self.items("status.conditions"):
                if isinstance(name := one.get("type"), str):
                    self._conditions[name] = one
        return self._conditions.get(kind, {})

    def says(self, kind: str) -> str:
        """`True`, `False` or `Unknown`, as the condition of that type says; empty where there is none."""
        said = self.condition(kind).get("status")
        return said if isinstance(said, str) else ""

    def why(self, kind: str) -> str:
        """The reason and message of a condition."""
        one = self.condition(kind)
        parts = (one.get("reason"), one.get("message"))
        return ": ".join(part for part in parts if isinstance(part, str) and part)[:LONGEST] or kind


def whole(value: Any) -> int | None:
    """A whole number, or None. JSON's true is no number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def instant(value: Any) -> Instant | None:
    """The instant that a text names, or None."""
    return reading.instant(value) if isinstance(value, str) else None
