"""What answers about idle GPUs are made of: periods cut down to the columns that sums need, read for a time.

Some columns are read twice as fast as whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import sqlalchemy as sa

from bayplan.ledger.questions.asking import Scope, holding
from bayplan.ledger.rows import GpuPeriod, NodePeriod, NodeRoomPeriod, PodRoomPeriod, Row
from bayplan.ledger.store.reading import TABLES, Readable, fetch
from bayplan.model.clock import Instant


class Place(msgspec.Struct, frozen=True, order=True):
    """The devices of one resource on one node."""

    cluster: str
    node: str
    resource: str


class Span(msgspec.Struct, frozen=True, gc=False):
    """What held on a node for a while."""

    cluster: str
    node_name: str
    start_at: Instant
    end_at: Instant | None


class DeviceSpan(Span, frozen=True, gc=False):
    """So many GPUs, offered by a node or held by a pod there."""

    resource: str
    gpu_model: str
    gpus: int

    @property
    def place(self) -> Place:
        """Where they are."""
        return Place(self.cluster, self.node_name, self.resource)


class RoomSpan(Span, frozen=True, gc=False):
    """What a node had for pods beside its GPUs: see NodeRoomPeriod."""

    cpu: int
    memory: int
    pods: int
    hurdle: str


class TakenSpan(Span, frozen=True, gc=False):
    """What a pod took of it."""

    cpu: int
    memory: int


class Story(msgspec.Struct, frozen=True):
    """All that is known of nodes with GPUs in a time."""

    capacity: Sequence[DeviceSpan] = ()
    held: Sequence[DeviceSpan] = ()
    rooms: Sequence[RoomSpan] = ()
    taken: Sequence[TakenSpan] = ()


S = TypeVar("S", bound=Span)


async def read_story(store: Readable, scope: Scope, since: Instant, until: Instant) -> Story:
    """Of one cluster or all, as `holding` says. Raises StoreUnavailableError, StoreRefusedError."""

    async def spans(kind: type[Row], span: type[S]) -> list[S]:
        columns = [TABLES[kind].c[name] for name in span.__struct_fields__]
        where = [*Scope(scope.cluster).of(kind), *holding(kind, since, until)]
        return [span(*row) for row in await fetch(store, sa.select(*columns).where(*where))]

    return Story(
        await spans(NodePeriod, DeviceSpan),
        await spans(GpuPeriod, DeviceSpan),
        await spans(NodeRoomPeriod, RoomSpan),
        await spans(PodRoomPeriod, TakenSpan),
    )
