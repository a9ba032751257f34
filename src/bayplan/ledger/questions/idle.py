"""What nobody holds: capacity less what is allocated, on each node, at an instant or over time.

The difference is taken as it is. It is below zero where pods hold devices that their node has lost: capacity and
allocation come from two stories, and hiding a difference would hide a fault.

*Stranded* are idle GPUs that no pod can get: their node is cordoned or not ready, or has no CPU or memory left beside
them. The first two are in the ledger; what is left of CPU and memory is not, so there it says that it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import sqlalchemy as sa

from bayplan.ledger.questions.asking import EVERYTHING, Scope, holding, read
from bayplan.ledger.questions.windows import Sums, Window
from bayplan.ledger.rows import GpuNode, GpuPeriod, NodePeriod, Row
from bayplan.ledger.store.reading import TABLES, Readable, fetch
from bayplan.model.clock import Instant


class Place(msgspec.Struct, frozen=True, order=True):
    """The devices of one resource on one node."""

    cluster: str
    node: str
    resource: str


class Devices(msgspec.Struct, frozen=True):
    """The devices of a place at an instant, in thousandths."""

    place: Place
    model: str
    capacity: int
    allocated: int
    stranded: str | None = None
    """Why nobody can get what is idle; empty: nothing that the ledger keeps is in the way; None: nothing known."""

    @property
    def idle(self) -> int:
        """Capacity less what is allocated."""
        return self.capacity - self.allocated


class IdleLine(msgspec.Struct, frozen=True):
    """A place over time: GPU-nanoseconds, a step each."""

    place: Place
    model: str
    capacity: tuple[int, ...]
    allocated: tuple[int, ...]

    @property
    def idle(self) -> tuple[int, ...]:
        """Capacity less what was allocated."""
        return tuple(had - held for had, held in zip(self.capacity, self.allocated, strict=True))


class IdleTime(msgspec.Struct, frozen=True):
    """All places over time."""

    window: Window
    lines: tuple[IdleLine, ...]


class Span(msgspec.Struct, frozen=True, gc=False):
    """A period of either sort, as far as sums need it."""

    cluster: str
    node_name: str
    resource: str
    gpu_model: str
    gpus: int
    start_at: Instant
    end_at: Instant | None


AnyPeriod = NodePeriod | GpuPeriod | Span


def place_of(period: AnyPeriod) -> Place:
    """Where a period's devices are."""
    return Place(period.cluster, period.node_name, period.resource)


def devices_at(
    capacity: Sequence[AnyPeriod], held: Sequence[AnyPeriod], nodes: Iterable[GpuNode], at: Instant
) -> list[Devices]:
    """Every place with devices or holders at an instant."""
    offered, allocated = _at(capacity, at), _at(held, at)
    models = _models(capacity, held)
    hurdles = {(node.cluster, node.name): hurdle(node, at) for node in nodes if _was(node, at)}
    return [
        Devices(
            place,
            models[place],
            offered.get(place, 0),
            allocated.get(place, 0),
            hurdles.get((place.cluster, place.node)),
        )
        for place in sorted({*offered, *allocated})
    ]


def hurdle(node: GpuNode, at: Instant) -> str | None:
    """Why no pod can go to a node; None where only its later state is known."""
    if node.updated_at > at:
        return None
    reasons = [] if node.ready else ["not ready"]
    return ", ".join(reasons if node.schedulable else [*reasons, "cordoned"])


def _was(node: GpuNode, at: Instant) -> bool:
    return node.created_at <= at and (node.end_at is None or node.end_at > at)


def _at(periods: Iterable[AnyPeriod], at: Instant) -> dict[Place, int]:
    found: dict[Place, int] = {}
    for period in periods:
        if period.start_at <= at and (period.end_at is None or period.end_at > at):
            place = place_of(period)
            found[place] = found.get(place, 0) + period.gpus
    return found


def _models(*stories: Iterable[AnyPeriod]) -> dict[Place, str]:
    """The model of each place; the node's word before its pods'."""
    found: dict[Place, str] = {}
    for story in stories:
        for period in story:
            place = place_of(period)
            found[place] = found.get(place) or period.gpu_model
    return found


def over_time(capacity: Sequence[AnyPeriod], held: Sequence[AnyPeriod], window: Window) -> IdleTime:
    """Every place over a window."""
    had, taken = _sums(capacity, window), _sums(held, window)
    models = _models(capacity, held)
    nothing = (0,) * len(window)
    places = sorted({*had, *taken})
    return IdleTime(
        window,
        tuple(IdleLine(place, models[place], had.get(place, nothing), taken.get(place, nothing)) for place in places),
    )


def _sums(periods: Iterable[AnyPeriod], window: Window) -> Mapping[Place, tuple[int, ...]]:
    sums = Sums(window)
    for period in periods:
        sums.add((period.cluster, period.node_name, period.resource), period.gpus, period.start_at, period.end_at)
    return {Place(*key): amounts for key, amounts in sums.totals().items()}


def by_model(devices: Iterable[Devices]) -> dict[str, tuple[int, int]]:
    """Capacity and what is allocated of each model."""
    found: dict[str, tuple[int, int]] = {}
    for each in devices:
        capacity, allocated = found.get(each.model, (0, 0))
        found[each.model] = capacity + each.capacity, allocated + each.allocated
    return dict(sorted(found.items()))


async def idle_at(store: Readable, at: Instant, scope: Scope = EVERYTHING) -> list[Devices]:
    """The devices of every node at an instant. Raises StoreUnavailableError, StoreRefusedError."""
    nodes = await read(store, GpuNode, Scope(scope.cluster), TABLES[GpuNode].c.created_at <= at)
    capacity, held = await _spans(store, NodePeriod, scope, at, at), await _spans(store, GpuPeriod, scope, at, at)
    return devices_at(capacity, held, nodes, at)


async def idle(store: Readable, window: Window, scope: Scope = EVERYTHING) -> IdleTime:
    """The devices of every node over time. Raises StoreUnavailableError, StoreRefusedError."""
    capacity = await _spans(store, NodePeriod, scope, window.since, window.until)
    return over_time(capacity, await _spans(store, GpuPeriod, scope, window.since, window.until), window)


async def _spans(store: Readable, kind: type[Row], scope: Scope, since: Instant, until: Instant) -> list[Span]:
    """Some columns are read twice as fast as whole rows (100,000 periods: 2.6 s, not 5.4 s)."""
    columns = [TABLES[kind].c[name] for name in Span.__struct_fields__]
    where = [*Scope(scope.cluster).of(kind), *holding(kind, since, until)]
    return [Span(*row) for row in await fetch(store, sa.select(*columns).where(*where))]
