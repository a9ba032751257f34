"""A store in memory that takes rows by the same rule as the databases, and fails when told to."""

from __future__ import annotations

from typing import Any, TypeVar

from bayplan.ledger.rows import (
    ROWS,
    GpuNode,
    GpuPod,
    GpuWorkload,
    Period,
    PodSnapshot,
    Row,
    Rows,
    SpecBlob,
    StreamPosition,
    WorkloadPodReference,
)
from bayplan.ledger.snapshots import squeezed, unpack
from bayplan.ledger.store.merging import Values, folded, supersedes
from bayplan.ledger.store.port import Remembered, StoreUnavailableError

R = TypeVar("R", bound=Row)


class MemoryStore:
    """A ledger that ends with the process."""

    def __init__(self) -> None:
        self.tables: dict[type[Row], dict[tuple[Any, ...], Values]] = {kind: {} for kind in ROWS}
        self.commits = 0
        self.down = False
        self.answers_lost = 0
        """How many of the next commits are kept, but end in an error."""

    async def commit(self, rows: Rows) -> None:
        """See the port."""
        if self.down:
            raise StoreUnavailableError("the database is down")
        for kind, held in squeezed(rows).by_type.items():
            replaces, table = supersedes(kind), self.tables[kind]
            places = [kind.__struct_fields__.index(name) for name in kind.key]
            for values in folded(kind, held):
                key = tuple(values[place] for place in places)
                if key not in table or replaces(table[key], values):
                    table[key] = values
        self.commits += 1
        if self.answers_lost:
            self.answers_lost -= 1
            raise StoreUnavailableError("the connection ended before the answer")

    def rows(self, kind: type[R]) -> list[R]:
        """All rows of a table, by key."""
        return [_row(kind, values) for _, values in sorted(self.tables[kind].items())]

    async def remembered(self, cluster: str) -> Remembered:
        """See the port."""
        if self.down:
            raise StoreUnavailableError("the database is down")

        def of(kind: type[R]) -> list[R]:
            return [row for row in self.rows(kind) if row.cluster == cluster]

        pods = tuple(pod for pod in of(GpuPod) if pod.gone_at is None)
        present = {pod.uid for pod in pods}
        owners = {each.workload_uid for each in of(WorkloadPodReference) if each.pod_uid in present}
        blobs = {blob.hash: blob.data for blob in of(SpecBlob)}
        last = {each.pod_uid: each for each in of(PodSnapshot) if each.pod_uid in present}
        streams = of(StreamPosition)
        periods = [row for kind in ROWS if issubclass(kind, Period) for row in of(kind) if row.end_at is None]
        return Remembered(
            pods=pods,
            workloads=tuple(each for each in of(GpuWorkload) if each.end_at is None or each.uid in owners),
            nodes=tuple(node for node in of(GpuNode) if node.end_at is None),
            periods=tuple(periods),
            last={uid: unpack(each.state, blobs.get(each.spec_hash)) for uid, each in last.items()},
            streams={each.kind: each.revision for each in streams},
            told_at={each.kind: each.at for each in streams},
        )

    async def close(self) -> None:
        """See the port."""


def _row(kind: type[R], values: Values) -> R:
    return kind(**dict(zip(kind.__struct_fields__, values, strict=True)))
