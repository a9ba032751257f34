"""Which events a pod's versions must have brought, worked out a second time from the plain JSON.

It shares nothing with the differ but the written rule: a first sight tells phase and conditions, every later version
tells what moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.ledger.chaos.oracle import Version

Document = dict[str, Any]


class Event(NamedTuple):
    """What makes an event one of its kind."""

    revision: int
    type: str
    subject: str = ""


def events_of(versions: Sequence[Version], gone: bool) -> list[Event]:
    """The events of a pod of which just these versions were seen; `gone`: and that it disappeared."""
    found: list[Event] = []
    before: Document | None = None
    for version in versions:
        found += [Event(version.revision, *each) for each in _moves(before, version.object)]
        before = version.object
    if gone and versions:
        found.append(Event(versions[-1].revision, "Gone"))
    return found


def _moves(was: Document | None, now: Document) -> Iterator[tuple[str, str]]:
    old, new = (was or {}).get("status", {}), now.get("status", {})
    if was is None or old.get("phase", "") != new.get("phase", ""):
        yield "Phase", ""
    before, after = _conditions(old), _conditions(new)
    for kind in {*before, *after}:
        if before.get(kind) != after.get(kind):
            yield "Condition", kind
    if was is None:
        return
    known = {each["name"]: each for each in _containers(old)}
    for each in _containers(new):
        yield from _container(known.get(each["name"], {}), each)
    if now["spec"].get("nodeName") and not was["spec"].get("nodeName"):
        yield "Bound", ""
    if now["metadata"].get("deletionTimestamp") and not was["metadata"].get("deletionTimestamp"):
        yield "Deleting", ""


def _conditions(status: Document) -> dict[str, str]:
    return {each["type"]: each["status"] for each in status.get("conditions", ())}


def _containers(status: Document) -> list[Document]:
    return [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]


def _runs(status: Document) -> dict[str, tuple[Any, ...]]:
    """The runs that are over, by where the status tells of them."""
    found = {}
    for place in ("state", "lastState"):
        over = status.get(place, {}).get("terminated")
        if over:
            found[place] = tuple(over.get(name) for name in ("containerID", "startedAt", "finishedAt", "exitCode"))
    return found


def _container(was: Document, now: Document) -> Iterator[tuple[str, str]]:
    name, restarts = now["name"], now.get("restartCount", 0)
    if restarts > was.get("restartCount", 0):
        yield "Restart", name
    told = set(_runs(was).values())
    fresh = {place: run for place, run in _runs(now).items() if run not in told}
    if len(set(fresh.values())) == 2:
        yield "Exit", f"{name} (run {max(restarts, 1)})"
    if fresh:
        yield "Exit", name
