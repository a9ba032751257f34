"""Who held how many GPUs for how long: from binding to release, whatever they did with them.

A pod with two resources, or one that was resized, has several periods; a workload is the root of a pod's owners. Every
period counts once, in one line: lines add up to the whole, steps add up to their line, clusters to all clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import sqlalchemy as sa

from bayplan.ledger.questions.asking import EVERYTHING, Scope, holding, read
from bayplan.ledger.questions.windows import Sums, Window
from bayplan.ledger.rows import GpuPeriod, GpuPod, GpuWorkload
from bayplan.ledger.store.reading import TABLES, Readable, fetch
from bayplan.model.clock import Instant
from bayplan.model.errors import PermanentError

UNKNOWN, NONE = "<unknown>", "<none>"
LABEL = "label:"


class DimensionError(PermanentError):
    """GPU-hours are asked for by something that the ledger does not know."""

    code = "BP-D041"


class Held(msgspec.Struct, frozen=True, gc=False):
    """A period of GPUs, and whose it was."""

    gpus: int
    start: Instant
    end: Instant | None
    cluster: str
    node: str
    model: str
    namespace: str | None
    """None, and so the rest: the pod's own row is missing."""
    user: str | None
    pod: str | None
    workload: str | None
    """Its uid; empty: nobody made the pod."""
    labels: str | None


class UsageLine(msgspec.Struct, frozen=True):
    """GPU-nanoseconds under one key: as many names as there are dimensions."""

    key: tuple[str, ...]
    amounts: tuple[int, ...]
    """A step each."""

    @property
    def total(self) -> int:
        """Over all steps."""
        return sum(self.amounts)


class Usage(msgspec.Struct, frozen=True):
    """GPU-hours by one dimension or several; the largest first."""

    by: tuple[str, ...]
    window: Window
    lines: tuple[UsageLine, ...]

    @property
    def total(self) -> int:
        """Over all lines."""
        return sum(line.total for line in self.lines)


Names = Mapping[tuple[str, str], str]
"""Workloads as people call them, by cluster and uid."""
_Dimension = Callable[[Held, Names], str]

_DIMENSIONS: dict[str, _Dimension] = {
    "cluster": lambda held, _: held.cluster,
    "namespace": lambda held, _: UNKNOWN if held.namespace is None else held.namespace,
    "user": lambda held, _: held.user or UNKNOWN,
    "workload": lambda held, names: _workload(held, names),
    "model": lambda held, _: held.model or UNKNOWN,
    "node": lambda held, _: held.node or UNKNOWN,
}
DIMENSIONS = (*_DIMENSIONS, f"{LABEL}KEY")


def _workload(held: Held, names: Names) -> str:
    if held.pod is None:
        return UNKNOWN
    if not held.workload:
        return f"{held.namespace}/Pod/{held.pod}"
    return names.get((held.cluster, held.workload), f"{held.namespace}/{UNKNOWN}/{held.workload}")


def _label(key: str) -> _Dimension:
    def value(held: Held, _: Names) -> str:
        if held.labels is None:
            return UNKNOWN
        return str(msgspec.json.decode(held.labels).get(key, NONE))

    return value


def dimension(name: str) -> _Dimension:
    """What a period counts under. Raises DimensionError."""
    if name.startswith(LABEL) and name != LABEL:
        return _label(name.removeprefix(LABEL))
    if name not in _DIMENSIONS:
        raise DimensionError(f"{name}: nothing that GPU-hours are counted by", hint=f"one of {', '.join(DIMENSIONS)}")
    return _DIMENSIONS[name]


def tally(
    periods: Iterable[Held],
    by: Sequence[str],
    window: Window,
    names: Names | None = None,
    scope: Scope = EVERYTHING,
) -> Usage:
    """The sums; a cluster counts up to its present, where `scope` has one. Raises DimensionError."""
    parts = [dimension(each) for each in by]
    sums = Sums(window)
    for held in periods:
        end = scope.ended(held.cluster, held.end)
        sums.add(tuple([part(held, names or {}) for part in parts]), held.gpus, held.start, end)
    lines = [UsageLine(key, amounts) for key, amounts in sums.totals().items()]
    return Usage(tuple(by), window, tuple(sorted(lines, key=lambda line: -line.total)))


async def usage(store: Readable, by: Sequence[str], window: Window, scope: Scope = EVERYTHING) -> Usage:
    """GPU-hours within a window; periods that have not ended count up to its end, or to the present of their cluster.

    Raises DimensionError, StoreUnavailableError, StoreRefusedError.
    """
    for each in by:
        dimension(each)
    names = await workload_names(store, scope) if "workload" in by else {}
    return tally(await _held(store, window, scope), by, window, names, scope)


async def workload_names(store: Readable, scope: Scope) -> Names:
    """`vision/Job/trainer`."""
    rows: list[GpuWorkload] = await read(store, GpuWorkload, Scope(scope.cluster))
    return {(row.cluster, row.uid): f"{row.namespace}/{row.kind}/{row.name}" for row in rows}


async def _held(store: Readable, window: Window, scope: Scope) -> list[Held]:
    period, pod = TABLES[GpuPeriod], TABLES[GpuPod]
    columns = (
        period.c.gpus,
        period.c.start_at,
        period.c.end_at,
        period.c.cluster,
        period.c.node_name,
        period.c.gpu_model,
        pod.c.namespace,
        pod.c.user,
        pod.c.name,
        sa.case((pod.c.root_uid != "", pod.c.root_uid), else_=pod.c.owner_uid),
        pod.c.labels,
    )
    same = sa.and_(pod.c.cluster == period.c.cluster, pod.c.uid == period.c.pod_uid)
    narrowed = scope.of(GpuPeriod) + Scope(namespace=scope.namespace).of(GpuPod)
    query = sa.select(*columns).select_from(period.outerjoin(pod, same))
    rows = await fetch(store, query.where(*holding(GpuPeriod, window.since, window.until), *narrowed))
    return [Held(*row) for row in rows]
