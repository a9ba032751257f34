"""What bursts did, for Prometheus: the four series of `ThrottleMetrics`, by group that may burst.

They count what the burst agent saw at its own looks, some twenty a second, since it watches the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from bayplan.node.tiers.metrics import BOUNDS_NS, Histogram

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from bayplan.agent.burst import BurstAgent

_NS = 1_000_000_000
_COUNTERS = (
    ("bayplan_burst_periods_total", "Periods seen.", "periods_total"),
    ("bayplan_burst_throttled_periods_total", "Periods seen that were throttled.", "throttled_periods"),
    ("bayplan_burst_activations_total", "Bursts given.", "burst_activations"),
)
_HELD_BACK = "bayplan_burst_throttled_seconds"
BURST_METRICS = (*(name for name, _, _ in _COUNTERS), _HELD_BACK)
"""Every metric of bursts, for docs/agent.md."""


class BurstCollector(Collector):
    """Turns what a burst agent saw into metrics."""

    def __init__(self, agent: BurstAgent) -> None:
        self._agent = agent

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        watched = [*self._agent.watched.values()]  # at once: the agent goes on meanwhile
        for name, text, field in _COUNTERS:
            counter = CounterMetricFamily(name, text, labels=("id",))
            for each in watched:
                counter.add_metric((each.path,), getattr(each.metrics, field))
            yield counter
        held = HistogramMetricFamily(_HELD_BACK, "Time held back in a throttled period.", labels=("id",))
        for each in watched:
            histogram = each.metrics.throttled_time_ns
            held.add_metric((each.path,), _buckets(histogram), histogram.sum / _NS)
        yield held


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    ends = [*(f"{bound / _NS:g}" for bound in BOUNDS_NS), "+Inf"]
    return [*zip(ends, map(float, accumulate(histogram.counts)), strict=True)]
