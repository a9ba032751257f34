"""Pods in versions, made from plain words; and a ledger in memory that takes rows by the rules of their sorts."""

from __future__ import annotations

import json
from typing import Any

from bayplan.cluster.kinds import EVENT, NODE, POD
from bayplan.cluster.objects import Object
from bayplan.ledger.differ import pods
from bayplan.ledger.differ.gpus import GpuVendors
from bayplan.ledger.differ.people import UserRule
from bayplan.ledger.differ.pods import KnownPod
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.rows import GpuNode, GpuPod, GpuPodsEvent, Period, Row, Rows, Sort
from bayplan.ledger.store.port import Remembered
from bayplan.model.clock import SECOND, Instant, rfc3339

Doc = dict[str, Any]
EPOCH = 1_767_225_600
GPU = "nvidia.com/gpu"
VENDORS = GpuVendors()


def at(second: float) -> Instant:
    """So many seconds after the beginning of the story."""
    return Instant(round((EPOCH + second) * SECOND))


def text(second: float) -> str:
    """The same as an object writes it."""
    return rfc3339(at(second))


def seen(second: float, **known: Any) -> Seen:
    """Somebody looked at that second."""
    given: Doc = {"cluster": "c1", "at": at(second), "vendors": VENDORS, **known}
    return Seen(**given)


def condition(kind: str, status: str, second: float | None = 0, reason: str = "", message: str = "") -> Doc:
    """A condition since that second."""
    found = {"type": kind, "status": status, "reason": reason, "message": message}
    return found if second is None else {**found, "lastTransitionTime": text(second)}


def running(second: float) -> Doc:
    """The state of a container that runs."""
    return {"running": {"startedAt": text(second)}}


def over(started: float, finished: float, code: int = 0, reason: str = "Completed", container: str = "") -> Doc:
    """The state of a container that has ended."""
    times = {"startedAt": text(started), "finishedAt": text(finished)}
    return {"terminated": {**times, "exitCode": code, "reason": reason, "containerID": container}}


def container(state: Doc, restarts: int = 0, last: Doc | None = None, name: str = "main") -> Doc:
    """The status of a container."""
    return {"name": name, "state": state, "lastState": last or {}, "restartCount": restarts}


def pod(
    version: int,
    phase: str = "Pending",
    *conditions: Doc,
    node: str = "",
    gpus: int | str = 1,
    containers: tuple[Doc, ...] = (),
    created: float = 0,
    uid: str = "u1",
    meta: Doc | None = None,
    spec: Doc | None = None,
    status: Doc | None = None,
) -> Object:
    """A version of a pod with one container that asks for GPUs."""
    asked = {GPU: str(gpus), "cpu": "4"}
    inner = {"containers": [{"name": "main", "image": "train:1", "resources": {"requests": asked}}], **(spec or {})}
    if node:
        inner["nodeName"] = node
    head = {"name": "p", "namespace": "n", "uid": uid, "resourceVersion": str(version)}
    outer = {"phase": phase, "conditions": list(conditions), "containerStatuses": list(containers), **(status or {})}
    document = {
        "metadata": {**head, "creationTimestamp": text(created), **(meta or {})},
        "spec": inner,
        "status": outer,
    }
    return Object.from_raw(POD, json.dumps(document).encode())


def node(
    version: int,
    capacity: Doc,
    labels: Doc | None = None,
    *,
    ready: str = "True",
    allocatable: Doc | None = None,
    **spec: Any,
) -> Object:
    """A version of a node."""
    head = {"name": "a", "uid": "n1", "resourceVersion": str(version), "creationTimestamp": text(0)}
    status = {"capacity": capacity, "allocatable": allocatable or {}, "conditions": [condition("Ready", ready)]}
    document = {"metadata": {**head, "labels": labels or {}}, "spec": spec, "status": status}
    return Object.from_raw(NODE, json.dumps(document).encode())


def event(reason: str, message: str = "", kind: str = "Pod", **fields: Any) -> Object:
    """A core Event about an object."""
    involved = {"kind": kind, "namespace": "n", "name": "p", "uid": "u1"}
    head = {"name": "e", "namespace": "n", "uid": "e1", "resourceVersion": "77"}
    document = {"metadata": head, "involvedObject": involved, "reason": reason, "message": message, **fields}
    return Object.from_raw(EVENT, json.dumps(document).encode())


class Ledger:
    """What a store would hold."""

    def __init__(self) -> None:
        self.tables: dict[type[Row], dict[tuple[Any, ...], Row]] = {}
        self.last: dict[str, bytes] = {}

    def take(self, rows: Rows) -> None:
        """Write rows as a store does."""
        for row in rows:
            table = self.tables.setdefault(type(row), {})
            key = tuple(getattr(row, name) for name in row.key)
            if key not in table or _supersedes(table[key], row):
                table[key] = row

    def all(self, kind: type[Any]) -> list[Any]:
        """The rows of a table, oldest first."""
        return list(self.tables.get(kind, {}).values())

    def remembered(self) -> Remembered:
        """What a ledger finds when it starts again."""
        periods = [row for table in self.tables.values() for row in table.values() if isinstance(row, Period)]
        return Remembered(
            pods=tuple(row for row in self.all(GpuPod) if row.gone_at is None),
            nodes=tuple(row for row in self.all(GpuNode) if row.end_at is None),
            periods=tuple(row for row in periods if row.end_at is None),
            last=dict(self.last),
        )


def _supersedes(old: Row, new: Row) -> bool:
    if new.sort is Sort.FACT:
        return False
    version: int = getattr(old, "resource_version")  # noqa: B009 - not every row has one
    newer: int = getattr(new, "resource_version")  # noqa: B009
    reopens = new.sort is Sort.PERIOD and getattr(old, "end_at") is not None and getattr(new, "end_at") is None  # noqa: B009
    return newer > version or (newer == version and not reopens)


class Watcher:
    """Follows one pod, and keeps what comes of it."""

    def __init__(self, people: UserRule | None = None, **known: Any) -> None:
        self.ledger = Ledger()
        self.pod: KnownPod | None = None
        self.people = people or UserRule()
        self.known = known

    def see(self, second: float, obj: Object, **known: Any) -> Rows:
        """A version was seen at that second."""
        rows = Rows()
        self.pod = pods.changed(self.pod, obj, seen(second, people=self.people, **{**self.known, **known}), rows)
        if len(rows):
            self.ledger.last[self.pod.facts.uid] = obj.raw()
        self.ledger.take(rows)
        return rows

    def lose(self, second: float, final: Object | None = None, **known: Any) -> Rows:
        """The pod was gone at that second."""
        assert self.pod is not None
        rows = pods.gone(self.pod, seen(second, people=self.people, **{**self.known, **known}), final)
        self.ledger.take(rows)
        return rows

    def refresh(self, second: float, **known: Any) -> None:
        """Others told more of it."""
        assert self.pod is not None
        self.pod, rows = pods.refreshed(self.pod, seen(second, people=self.people, **{**self.known, **known}))
        self.ledger.take(rows)

    def restart(self) -> None:
        """Forget everything that is not stored."""
        found = pods.remember(self.ledger.remembered(), VENDORS, self.people)
        self.pod = next(iter(found.values()), None)

    def all(self, kind: type[Any]) -> list[Any]:
        """The rows of a table."""
        return self.ledger.all(kind)


def told(rows: Rows) -> list[tuple[Any, ...]]:
    """The events among rows, as (type, subject, value, before, second)."""
    found = [row for row in rows if isinstance(row, GpuPodsEvent)]
    return [(e.event_type, e.subject, e.value, e.before, (e.at - at(0)) / SECOND) for e in found]


def spans(rows: list[Any], *fields: str) -> list[tuple[Any, ...]]:
    """Periods as (start second, end second, fields...)."""
    return [
        (
            (row.start_at - at(0)) / SECOND,
            None if row.end_at is None else (row.end_at - at(0)) / SECOND,
            *(getattr(row, field) for field in fields),
        )
        for row in sorted(rows, key=lambda row: row.start_at)
    ]
