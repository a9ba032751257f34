"""What the ledger keeps: one struct a table, a field a column. Everything else is derived from these.

Every row is keyed by the cluster's id and the object's uid, never by a name alone. Times are microseconds since 1970
(`Instant`), GPUs are thousandths, so that shares and sums are exact. A row is one of three sorts:

    state    the latest wins: an upsert that an older resourceVersion never undoes
    fact     happened once: inserted, and ignored where it is there already (so a replay adds nothing)
    period   opened, later closed: an upsert by its start; a closed one is opened again only by a newer version
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.ledger.rows.objects import (
    Disruption,
    Gap,
    GpuNode,
    GpuPod,
    GpuPodsEvent,
    GpuUse,
    GpuWorkload,
    PodResource,
    PodSnapshot,
    SpecBlob,
    StreamPosition,
    WorkloadPodReference,
    WorkloadSnapshot,
)
from bayplan.ledger.rows.periods import (
    GpuPeriod,
    NodePeriod,
    NodeRoomPeriod,
    PendingPeriod,
    Period,
    PodRoomPeriod,
    RunningPeriod,
)
from bayplan.ledger.rows.row import MILLI, Hash, Name, Row, Sort, Word

__all__ = [
    "MILLI",
    "ROWS",
    "Disruption",
    "Gap",
    "GpuNode",
    "GpuPeriod",
    "GpuPod",
    "GpuPodsEvent",
    "GpuUse",
    "GpuWorkload",
    "Hash",
    "Name",
    "NodePeriod",
    "NodeRoomPeriod",
    "PendingPeriod",
    "Period",
    "PodResource",
    "PodRoomPeriod",
    "PodSnapshot",
    "Row",
    "Rows",
    "RunningPeriod",
    "Sort",
    "SpecBlob",
    "StreamPosition",
    "Word",
    "WorkloadPodReference",
    "WorkloadSnapshot",
]

ROWS: tuple[type[Row], ...] = (
    SpecBlob,
    GpuNode,
    NodePeriod,
    GpuWorkload,
    WorkloadSnapshot,
    GpuPod,
    PodResource,
    PodSnapshot,
    GpuPodsEvent,
    WorkloadPodReference,
    GpuPeriod,
    RunningPeriod,
    PendingPeriod,
    NodeRoomPeriod,
    PodRoomPeriod,
    Disruption,
    GpuUse,
    Gap,
    StreamPosition,
)
"""Every table, in the order in which they are written."""


class Rows:
    """What one transaction writes, by table, each in the order in which it came to be."""

    __slots__ = ("by_type",)

    def __init__(self) -> None:
        self.by_type: dict[type[Row], list[Row]] = {}

    def add(self, *rows: Row) -> None:
        """Take rows in."""
        for row in rows:
            self.by_type.setdefault(type(row), []).append(row)

    def extend(self, other: Rows) -> None:
        """Take all of another's in."""
        for kind, rows in other.by_type.items():
            self.by_type.setdefault(kind, []).extend(rows)

    def count(self, kind: type[Row]) -> int:
        """How many there are of a table."""
        return len(self.by_type.get(kind, ()))

    def __iter__(self) -> Iterator[Row]:
        for kind in ROWS:
            yield from self.by_type.get(kind, ())

    def __len__(self) -> int:
        return sum(map(len, self.by_type.values()))
