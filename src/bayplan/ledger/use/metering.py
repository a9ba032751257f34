"""The loop beside the recorder: every interval, what Prometheus measured since the last time goes into the ledger.

Prometheus keeps what it measured for days, so nothing is lost by asking later: after an outage of either side, or of
this process, the hole is filled from the last time that is stored, a bounded reach back. While batches wait in the
spool nothing is asked: the spool is for what nobody else keeps. Nor is a time asked for before the story of pods is
told until then: whose a measurement is would not be known. Times are multiples of the interval, one row a device and
interval, so what is asked twice is stored once. No failure here ever ends the recording.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

import msgspec
import sqlalchemy as sa
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from bayplan.cluster.kinds import POD
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.rows import GpuPod, GpuUse, Rows, StreamPosition
from bayplan.ledger.store.reading import TABLES, fetch
from bayplan.ledger.store.retention import prune_use
from bayplan.ledger.store.sql import SqlStore
from bayplan.ledger.use.reading import Holders, Holding, Measured, Reading, Series, measured
from bayplan.model.clock import SECOND, Clock, Instant
from bayplan.model.errors import BayplanError
from bayplan.service.logging import get_logger

log = get_logger(__name__)

_SETTLING = 4
"""A quarter of an interval passes before a time is asked for: by then scrapes and pods of that time are in."""
_MOST_VALUES = 50_000
_MOST_TIMES = 1000
_BATCH = 5000
"""Rows of one transaction; the recorder's own batches come in between."""
_PRUNE_EVERY = 3600 * SECOND


class Source(Protocol):
    """Who measured."""

    async def values(self, query: str, times: range, oldest: int) -> list[Series]:
        """What a query gives at each instant. Raises TemporaryError, PermanentError."""
        ...


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, and when."""

    query: str
    memory_query: str = ""
    """Empty: memory is not asked for."""
    interval: int = 300 * SECOND
    reach: int = 6 * 3600 * SECOND
    """How far back a hole is filled."""
    retention: int = 0
    """How long measurements are kept; 0: for ever."""


class Meter(Collector):
    """What the loop has to say of itself, over all reigns of a process; also to Prometheus."""

    def __init__(self) -> None:
        self.rows = 0
        self.errors: Counter[str] = Counter()
        """By code."""
        self.failing = ""
        """The code of what is wrong at the moment."""
        self.told_until: Instant | None = None
        self.skipped: Counter[str] = Counter()
        """Values of the last look that told nothing, by why."""
        self.stored = 0
        """Values of the last look that became rows."""

    def collect(self) -> Iterator[Metric]:
        """The metrics as of now."""
        name = "bayplan_ledger_use"
        yield GaugeMetricFamily(
            f"{name}_up", "Whether the last look at the monitor succeeded.", float(not self.failing)
        )
        yield CounterMetricFamily(f"{name}_rows", "Measurements that were written.", self.rows)
        errors = CounterMetricFamily(f"{name}_errors", "Looks that failed, by code.", labels=("code",))
        for code, count in list(self.errors.items()):
            errors.add_metric((code,), count)
        yield errors
        values = GaugeMetricFamily(f"{name}_values", "Values of the last look, by what came of them.", labels=("what",))
        for what, number in [("stored", self.stored), *self.skipped.items()]:
            values.add_metric((what,), number)
        yield values
        if self.told_until is not None:
            text = "Until when measurements are stored, in seconds since 1970."
            yield GaugeMetricFamily(f"{name}_told_until_seconds", text, self.told_until / SECOND)


class Metering:
    """One reign's loop."""

    def __init__(
        self,
        source: Source,
        store: SqlStore,
        outlet: Outlet,
        *,
        reading: Reading,
        plan: Plan,
        clock: Clock,
        meter: Meter,
    ) -> None:
        self._source = source
        self._store = store
        self._outlet = outlet
        self._reading = msgspec.structs.replace(reading, fresh=plan.interval)
        self._plan = plan
        self._clock = clock
        self._meter = meter
        self._next: Instant | None = None
        self._times = 1
        """That one question asks for: more, the fewer devices there are."""
        self._prune_at = Instant(0)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                behind = not self._waits() and await self.look()
                await self._prune()
            except BayplanError as error:
                behind = False
                self._failed(error)
            if not behind:
                await self._clock.sleep_until(self._due())

    async def _prune(self) -> None:
        now = self._clock.now()
        if self._plan.retention and now >= self._prune_at:
            self._prune_at = Instant(now + _PRUNE_EVERY)
            before = Instant(now - self._plan.retention)
            deleted = await prune_use(
                self._store,
                self._reading.cluster,
                before,
                may_write=self._outlet.may_write,
            )
            log.debug("measurements pruned", rows=deleted)

    def _waits(self) -> bool:
        return self._outlet.away or bool(self._outlet.spool)

    def _due(self) -> Instant:
        interval = self._plan.interval
        settled = self._clock.now() - interval // _SETTLING
        return Instant((settled // interval + 1) * interval + interval // _SETTLING)

    async def look(self) -> bool:
        """Store the next times that are due; whether there are more.

        Raises what the source and the store raise; nothing is lost by it: the next look begins where this one did.
        """
        interval = self._plan.interval
        settled = min(self._clock.now() - interval // _SETTLING, await self._told_until())
        newest = Instant(settled // interval * interval)
        first = max(await self._begin(), newest - self._plan.reach // interval * interval)
        times = range(first, newest + 1, interval)[: self._times]
        if not times:
            return False
        found = await self._measured(times)
        for start in range(0, len(found.rows), _BATCH):
            rows = Rows()
            rows.add(*found.rows[start : start + _BATCH])
            await self._outlet.commit(rows)
        self._next = Instant(times[-1] + interval)
        self._succeeded(found, Instant(times[-1]))
        return times[-1] < newest

    async def _told_until(self) -> Instant:
        stream = TABLES[StreamPosition].c
        of_pods = sa.and_(stream.cluster == self._reading.cluster, stream.kind == POD.resource)
        found = await fetch(self._store, sa.select(stream.at).where(of_pods))
        return Instant(found[0][0] if found else 0)

    async def _begin(self) -> Instant:
        """The first time that is not stored, or stored in part."""
        if self._next is None:
            use, interval = TABLES[GpuUse].c, self._plan.interval
            last = sa.select(sa.func.max(use.at)).where(use.cluster == self._reading.cluster)
            ((stored,),) = await fetch(self._store, last)
            self._next = Instant((stored or 0) // interval * interval)
        return self._next

    async def _measured(self, times: range) -> Measured:
        oldest = self._reading.fresh
        use = await self._source.values(self._plan.query, times, oldest)
        memory = await self._source.values(self._plan.memory_query, times, oldest) if self._plan.memory_query else []
        self._times = max(1, min(_MOST_TIMES, _MOST_VALUES // max(1, len(use) + len(memory))))
        holders = Holders(await self._holdings(Instant(times[0]), Instant(times[-1])))
        # In a thread: thousands of series must not hold up the recorder.
        return await asyncio.to_thread(measured, use, memory, holders, self._reading)

    async def _holdings(self, since: Instant, until: Instant) -> list[Holding]:
        pod = TABLES[GpuPod].c
        columns = sa.select(pod.uid, pod.namespace, pod.name, pod.bound_at, pod.end_at)
        held = sa.and_(pod.bound_at <= until, sa.or_(pod.end_at.is_(None), pod.end_at > since))
        of_cluster = pod.cluster == self._reading.cluster
        return [Holding(*row) for row in await fetch(self._store, columns.where(of_cluster, held))]

    def _succeeded(self, found: Measured, until: Instant) -> None:
        meter = self._meter
        meter.rows += len(found.rows)
        meter.stored, meter.skipped, meter.told_until = len(found.rows), found.skipped, until
        if meter.failing:
            log.info("measurements come again", after=meter.failing)
        meter.failing = ""
        log.debug("measured", until=until, rows=len(found.rows), skipped=dict(found.skipped))

    def _failed(self, error: BayplanError) -> None:
        meter = self._meter
        meter.errors[error.code] += 1
        if meter.failing != error.code:
            log.warning("no measurements", code=error.code, why=error.message, hint=error.hint)
        meter.failing = error.code
