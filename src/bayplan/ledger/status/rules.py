"""How rules are written: a kind's rules are read from the top, and the first that speaks decides.

A rule looks at the object alone. Where no rule of a kind speaks, the pods decide (`judge.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bayplan.ledger.status.document import Document, instant, whole
from bayplan.ledger.status.verdict import State, Verdict

Rule = Callable[[Document], Verdict | None]


def said(condition: str, state: State, *, status: str = "True", ended: str = "") -> Rule:
    """The condition has the status. `ended` is the path of the time of the end; else the condition's own time."""

    def rule(doc: Document) -> Verdict | None:
        if doc.says(condition) != status:
            return None
        if state not in (State.SUCCEEDED, State.FAILED):
            return Verdict(state, doc.why(condition))
        return ending(doc, state, doc.why(condition), ended, doc.condition(condition).get("lastTransitionTime"))

    return rule


def word(path: str, states: dict[str, State], *, why: str = "status.message", ended: str = "") -> Rule:
    """The text there is one of these words."""

    def rule(doc: Document) -> Verdict | None:
        found = doc.text(path)
        if (state := states.get(found)) is None:
            return None
        reason = ": ".join(part for part in (found, doc.text(why)) if part)
        if state not in (State.SUCCEEDED, State.FAILED):
            return Verdict(state, reason)
        return ending(doc, state, reason, ended, None)

    return rule


def ending(doc: Document, state: State, reason: str, path: str, otherwise: Any) -> Verdict:
    """An end, at the time that stands at the path, else at the other."""
    said_at = doc.time(path) if path else None
    return Verdict(state, reason, True, instant(otherwise) if said_at is None else said_at)


def switched(path: str, reason: str = "") -> Rule:
    """The flag there is set: it is to hold nothing."""
    return lambda doc: Verdict(State.SUSPENDED, reason or f"{path} is set") if doc.value(path) is True else None


def serving(wanted: str, ready: str, *, default: int | None = 1, unit: str = "replicas") -> Rule:
    """So many are wanted, so many are ready. Where neither the object nor a default says how many: Pending."""

    def rule(doc: Document) -> Verdict:
        asked = doc.number(wanted)
        asked = default if asked is None else asked
        if asked is None:
            return Verdict(State.PENDING, "not observed yet")
        if asked <= 0:
            return Verdict(State.SUSPENDED, f"0 {unit} wanted")
        return part(doc.number(ready) or 0, asked, unit)

    return rule


def part(ready: int, asked: int, unit: str) -> Verdict:
    """All, some or none are ready."""
    state = State.RUNNING if ready >= asked else State.DEGRADED if ready > 0 else State.PENDING
    return Verdict(state, f"{ready} of {asked} {unit} ready")


def troubled(condition: str, ready: str, *, status: str = "True") -> Rule:
    """The condition tells of trouble: Degraded where some are ready, else Pending, with its reason."""

    def rule(doc: Document) -> Verdict | None:
        if doc.says(condition) != status:
            return None
        return Verdict(State.DEGRADED if doc.number(ready) else State.PENDING, doc.why(condition))

    return rule


def total(items: list[dict[str, Any]], field: str, default: int = 0) -> int:
    """The sum of a field over objects."""
    return sum(default if (found := whole(item.get(field))) is None else found for item in items)
