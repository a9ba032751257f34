"""What a version of a node adds: its state where it changed, a period for each number of GPUs it offered, and one for
what it had for pods beside them.

A node that is not ready or cordoned still has its devices: they are idle, not away. Capacity counts, not allocatable:
a sick device stands in the rack and is paid for. Heartbeats change nothing and write nothing. The history of a node
outlives it: its row stays, with an end.
"""

from __future__ import annotations

import msgspec

from bayplan.cluster.objects import Object
from bayplan.ledger.differ.gpus import GpuVendors, allocatable, capacity
from bayplan.ledger.differ.life import End, seen_end
from bayplan.ledger.differ.periods import closed, followed
from bayplan.ledger.differ.reading import Odd, anonymous, identity, section, sound, version
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.rows import GpuNode, NodePeriod, NodeRoomPeriod, Rows
from bayplan.ledger.store.port import Remembered
from bayplan.model.clock import Instant
from bayplan.model.meta import condition
from bayplan.model.nodes import NodeSpec, NodeStatus
from bayplan.model.resources import CPU, MEMORY, PODS, Amounts

_ENCODE = msgspec.json.Encoder(order="deterministic").encode


class KnownNode(msgspec.Struct, frozen=True):
    """All that the ledger must know of a node."""

    row: GpuNode
    resource_version: int
    """Of the latest version, which may have been a mere heartbeat."""
    periods: dict[str, NodePeriod] = {}
    """Those that are open, by resource."""
    labels: dict[str, str] = {}
    faults: tuple[Odd, ...] = ()
    odd: tuple[Odd, ...] = ()
    """Of the faults those that are new with the latest version."""
    room: NodeRoomPeriod | None = None
    """What it has for pods beside GPUs, since when; the open one. None: an earlier run kept none, and nobody told what
    its pods took until now.
    """
    has_gpus: bool = False
    """Or had: from then on its room is stored, and what pods take of it."""

    def model_of(self, resource: str, vendors: GpuVendors) -> str:
        """The model of its devices of a resource; of those that labels name, even while it offers none of them."""
        period = self.periods.get(resource)
        return vendors.model(resource, self.labels) or (period.gpu_model if period else "")

    def pieces_of(self, resource: str, vendors: GpuVendors) -> int:
        """Into how many pieces its devices of a resource are cut."""
        return vendors.pieces(resource, self.labels)


def changed(known: KnownNode | None, obj: Object, seen: Seen) -> tuple[KnownNode, Rows]:
    """What is known after a version, and what it adds."""
    rows = Rows()
    if known is not None and version(obj) <= known.resource_version:
        return known, rows
    faults: list[Odd] = []
    status = section(obj, "status", NodeStatus, faults)
    gpus = {**capacity(status.capacity, seen.vendors, faults, obj.meta.labels), **_sliced(known, obj.name, seen)}
    faults += anonymous(obj)
    row = _row(known, obj, status, gpus, seen, faults)
    periods = _periods(known, row, obj.meta.labels, gpus, seen, rows)
    if known is not None and _same(known.row, row):
        row = known.row
    else:
        rows.add(row)
    has_gpus = bool(gpus) or (known is not None and known.has_gpus)
    room = _room(known, row, allocatable(status.allocatable, faults), seen, rows)
    if room is not None and has_gpus and not (known is not None and known.has_gpus):
        rows.add(room)
    odd = tuple(each for each in faults if known is None or each not in known.faults)
    return KnownNode(row, version(obj), periods, obj.meta.labels, tuple(faults), odd, room, has_gpus), rows


def refreshed(known: KnownNode, seen: Seen) -> tuple[KnownNode, Rows]:
    """What ResourceSlices add that came to be known, or changed, after the node."""
    rows = Rows()
    own = {name: period.gpus for name, period in known.periods.items() if seen.vendors.of(name) is not None}
    gpus = {**own, **_sliced(known, known.row.name, seen)}
    periods = _periods(known, known.row, known.labels, gpus, seen, rows)
    models = [period.gpu_model for _, period in sorted(periods.items())]
    row = msgspec.structs.replace(
        known.row, gpu_capacity=sum(gpus.values()), gpu_model=next(filter(None, models), known.row.gpu_model)
    )
    if row != known.row:
        rows.add(row)
    has_gpus = known.has_gpus or bool(gpus)
    if known.room is not None and has_gpus and not known.has_gpus:
        rows.add(known.room)
    now = msgspec.structs.replace(known, row=row, periods=periods, odd=(), has_gpus=has_gpus)
    return now, rows


def gone(known: KnownNode, seen: Seen, final: Object | None = None) -> Rows:
    """What a node's disappearance adds."""
    rows = Rows()
    if final is not None and final.sections:
        known, rows = changed(known, final, seen)
    resource_version = max(known.resource_version, version(final) if final is not None else 0)
    end = seen_end(seen)
    after = None if end.after is None else min(max(end.after, known.row.created_at), end.at)
    for period in (*known.periods.values(), known.room if known.has_gpus else None):
        if period is not None:
            rows.add(closed(period, end, resource_version))
    rows.add(
        msgspec.structs.replace(
            known.row,
            resource_version=resource_version,
            updated_at=seen.at,
            ready=False,
            end_at=end.at,
            end_inferred=after is not None,
            end_after=after,
        )
    )
    return rows


def remember(kept: Remembered) -> dict[str, KnownNode]:
    """The nodes that have not gone, by uid."""
    periods: dict[str, dict[str, NodePeriod]] = {}
    rooms: dict[str, NodeRoomPeriod] = {}
    for period in kept.periods:
        if isinstance(period, NodePeriod):
            periods.setdefault(period.node_uid, {})[period.resource] = period
        elif isinstance(period, NodeRoomPeriod):
            rooms[period.node_uid] = period
    return {
        row.uid: KnownNode(
            row,
            row.resource_version,
            periods.get(row.uid, {}),
            msgspec.json.decode(row.labels),
            room=rooms.get(row.uid),
            has_gpus=row.uid in rooms,
        )
        for row in kept.nodes
        if row.end_at is None
    }


def _row(
    known: KnownNode | None, obj: Object, status: NodeStatus, gpus: dict[str, int], seen: Seen, faults: list[Odd]
) -> GpuNode:
    spec = section(obj, "spec", NodeSpec, faults)
    ready = condition(status.conditions, "Ready")
    labels = obj.meta.labels
    held = known.periods if known else {}
    models = [_model(obj.name, resource, labels, seen, held.get(resource)) for resource in sorted(gpus)]
    created = known.row.created_at if known else sound(obj.meta.creation_timestamp, seen.at) or seen.at
    return GpuNode(
        cluster=seen.cluster,
        uid=identity(obj),
        resource_version=version(obj),
        name=obj.name,
        gpu_model=next(filter(None, models), ""),
        gpu_capacity=sum(gpus.values()),
        ready=ready is not None and ready.status == "True",
        schedulable=not spec.unschedulable,
        labels=_ENCODE(labels).decode(),
        kubelet_version=status.node_info.kubelet_version,
        created_at=created,
        updated_at=seen.at,
    )


def _sliced(known: KnownNode | None, node: str, seen: Seen) -> dict[str, int]:
    """What a node offers by ResourceSlices; while they are not known, what it was known to."""
    if seen.pools is not None:
        return seen.pools.capacity.get(node, {})
    held = known.periods if known is not None else {}
    return {name: period.gpus for name, period in held.items() if seen.vendors.of(name) is None}


def _model(node: str, resource: str, labels: dict[str, str], seen: Seen, period: NodePeriod | None) -> str:
    sliced = seen.pools.models.get((node, resource), "") if seen.pools is not None else ""
    return seen.vendors.model(resource, labels) or sliced or (period.gpu_model if period else "")


def _same(was: GpuNode, now: GpuNode) -> bool:
    return was == msgspec.structs.replace(now, resource_version=was.resource_version, updated_at=was.updated_at)


def _periods(
    known: KnownNode | None, row: GpuNode, labels: dict[str, str], gpus: dict[str, int], seen: Seen, rows: Rows
) -> dict[str, NodePeriod]:
    """A node seen for the first time has had its devices since it was made: its pods may be as old."""
    held = known.periods if known else {}
    still: dict[str, NodePeriod] = {}
    for resource in {**held, **gpus}:
        period, offered = held.get(resource), gpus.get(resource, 0)
        model = _model(row.name, resource, labels, seen, period)
        if period is not None and period.gpus == offered and period.gpu_model == model:
            still[resource] = period
            continue
        named = period is not None and period.gpus == offered and not period.gpu_model
        start = row.created_at if known is None else seen.at
        if period is None and seen.pools is not None and (sliced := seen.pools.since.get((row.name, resource))):
            start = min(max(sliced, row.created_at), seen.at)
        begin = period.start_at if period is not None and (named or seen.at <= period.start_at) else start
        if period is not None and begin != period.start_at:
            rows.add(closed(period, seen_end(seen), row.resource_version))
        elif period is not None and not offered:
            rows.add(closed(period, End(begin), row.resource_version))
        if offered:
            still[resource] = _period(row, resource, offered, model, begin)
            rows.add(still[resource])
    return still


def _room(known: KnownNode | None, row: GpuNode, has: Amounts, seen: Seen, rows: Rows) -> NodeRoomPeriod | None:
    """What it has for pods, and what keeps them away; where it is stored already, what changes goes to `rows`.

    A node seen for the first time has had its room since it was made; since when pods are kept away nothing tells.
    """
    held = known.room if known is not None else None
    if known is not None and held is None:
        return None
    room = NodeRoomPeriod(
        cluster=row.cluster,
        node_uid=row.uid,
        node_name=row.name,
        start_at=row.created_at if known is None and not row.hurdle else seen.at,
        resource_version=row.resource_version,
        cpu=has[CPU],
        memory=has[MEMORY],
        pods=has[PODS],
        hurdle=row.hurdle,
    )
    if held is not None and held == msgspec.structs.replace(
        room, start_at=held.start_at, resource_version=held.resource_version
    ):
        return held
    return followed(held, room, seen_end(seen), rows if known is not None and known.has_gpus else Rows())


def _period(row: GpuNode, resource: str, gpus: int, model: str, start: Instant) -> NodePeriod:
    return NodePeriod(
        cluster=row.cluster,
        node_uid=row.uid,
        node_name=row.name,
        resource=resource,
        start_at=start,
        resource_version=row.resource_version,
        gpus=gpus,
        gpu_model=model,
    )
