"""What a ledger says of itself to Prometheus: its lag, spool, batches and errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from bayplan.model.clock import SECOND, Clock

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from bayplan.ledger.process import Ledger


class LedgerCollector(Collector):
    """Read anew at every scrape; a replica that does not lead has little to say."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """The metrics as of now."""
        ledger = self._ledger
        yield _gauge("leader", "Whether this process holds the lease.", float(ledger.leads()))
        outlet, recorder = ledger.outlet, ledger.recorder
        if outlet is not None:
            yield _gauge("database_away", "Whether the database refused the last transaction.", float(outlet.away))
            yield _counter("transactions", "Transactions that were committed.", outlet.transactions)
            yield _counter("rows", "Rows that were written.", outlet.rows)
            errors = CounterMetricFamily("bayplan_ledger_errors", "Faults by code.", labels=("code",))
            for code, count in list(outlet.errors.items()):
                errors.add_metric((code,), count)
            yield errors
            if outlet.spool is not None:
                yield _gauge("spool_bytes", "Bytes that wait for the database.", outlet.spool.size)
                yield _gauge("spool_batches", "Batches that wait for the database.", len(outlet.spool))
                yield _counter("dropped_states", "Versions that a full spool let go.", outlet.spool.dropped)
        if recorder is not None:
            since = recorder.waiting_since
            lag = 0.0 if since is None else (self._clock.now() - since) / SECOND
            yield _gauge("lag_seconds", "How long the oldest batch that is not durable has waited.", lag)
            yield _gauge("listeners", "Kinds of owners that are followed.", recorder.listeners)
            yield _gauge("pods", "GPU pods that exist.", len(recorder.recording.pods))
            changes = CounterMetricFamily("bayplan_ledger_changes", "Changes taken in.", labels=("resource",))
            for resource, count in list(recorder.changes.items()):
                changes.add_metric((resource,), count)
            yield changes


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"bayplan_ledger_{name}", text, value=value)


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"bayplan_ledger_{name}", text, value=value)
