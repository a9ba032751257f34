"""What the agent sees, for Prometheus: cAdvisor's names and labels for what cAdvisor counts, `bayplan_` for the rest.

Read anew at every scrape, so the values are those of the kernel's files at that moment, and a group that is gone has no
series. The number of series is bounded by the observer's `most_groups`. docs/agent.md lists every metric; a test
compares that list with this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from bayplan.agent.observe import Reading, Watched, waiting_share
from bayplan.node.throttling.samples import Rates

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from bayplan.agent.observe import Observer

LABELS = ("id", "name", "image", "pod", "namespace", "container", "pod_uid")
"""cAdvisor's six, in the kubelet's form, and the pod's UID, which a group's path tells even where no name is known."""

_NS = 1_000_000_000
_US = 1_000_000


class _Counter(msgspec.Struct, frozen=True):
    """A counter by group; None: the group has none."""

    name: str
    help: str
    value: Callable[[Reading], float | None]


def _limited(value: Callable[[Reading], float]) -> Callable[[Reading], float | None]:
    """cAdvisor leaves these out where there is no limit."""
    return lambda reading: None if reading.bandwidth.quota_us is None else value(reading)


COUNTERS = (
    _Counter(
        "container_cpu_cfs_periods_total",
        "Number of elapsed enforcement period intervals.",
        _limited(lambda reading: reading.counters.periods),
    ),
    _Counter(
        "container_cpu_cfs_throttled_periods_total",
        "Number of throttled period intervals.",
        _limited(lambda reading: reading.counters.throttled_periods),
    ),
    _Counter(
        "container_cpu_cfs_throttled_seconds_total",
        "Total time duration the container has been throttled.",
        _limited(lambda reading: reading.counters.throttled_ns / _NS),
    ),
    _Counter(
        "container_cpu_cfs_burst_periods_total",
        "Number of periods when burst occurs.",
        _limited(lambda reading: reading.counters.bursts),
    ),
    _Counter(
        "container_cpu_cfs_burst_seconds_total",
        "Total time duration the container has been bursted.",
        _limited(lambda reading: reading.counters.burst_ns / _NS),
    ),
    _Counter(
        "container_pressure_cpu_waiting_seconds_total",
        "Total time duration tasks in the container have waited due to CPU congestion.",
        lambda reading: None if reading.pressure is None else reading.pressure.some_total_us / _US,
    ),
    _Counter(
        "container_pressure_cpu_stalled_seconds_total",
        "Total time duration no tasks in the container could make progress due to CPU congestion.",
        lambda reading: None if reading.pressure is None else reading.pressure.full_total_us / _US,
    ),
    _Counter(
        "bayplan_container_run_queue_seconds_total",
        "Time that all threads of the container have waited for a CPU, throttled time included.",
        lambda reading: reading.run_queue_ns / _NS,
    ),
)
GAUGES = (
    _Counter("container_spec_cpu_period", "CPU period of the container.", lambda reading: reading.bandwidth.period_us),
    _Counter("container_spec_cpu_quota", "CPU quota of the container.", lambda reading: reading.bandwidth.quota_us),
    _Counter("container_processes", "Number of processes in the container.", lambda reading: reading.processes),
)
_RATIO = "bayplan_container_throttle_ratio"
_WAITING = "bayplan_container_waiting_ratio"
_BURSTS = "bayplan_container_bursts_per_hour"


class ThrottlingCollector(Collector):
    """Turns what an observer sees into metrics."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def describe(self) -> Iterable[Metric]:
        return ()  # else registering would scrape

    def collect(self) -> Iterator[Metric]:
        with self._observer.looking:
            return iter([*self._collect()])

    def _collect(self) -> Iterator[Metric]:
        seen = [(each, each.reading, labels_of(each)) for each in self._observer.look() if each.reading is not None]
        usage = CounterMetricFamily(
            "container_cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.", labels=(*LABELS, "cpu")
        )
        for _, reading, labels in seen:
            usage.add_metric((*labels, "total"), reading.counters.usage_ns / _NS)
        yield usage
        for family, metrics in ((CounterMetricFamily, COUNTERS), (GaugeMetricFamily, GAUGES)):
            for metric in metrics:
                made = family(metric.name, metric.help, labels=LABELS)
                for _, reading, labels in seen:
                    if (value := metric.value(reading)) is not None:
                        made.add_metric(labels, value)
                yield made
        yield from _rates([(each, labels) for each, _, labels in seen])
        yield _alerts([(each, labels) for each, _, labels in seen])
        yield from self._own()

    def _own(self) -> Iterator[Metric]:
        """The machine's pressure, and what looking costs."""
        pressure = self._observer.proc.pressure()
        if pressure is not None:
            yield CounterMetricFamily(
                "node_pressure_cpu_waiting_seconds_total",
                "Total time in seconds that processes have waited for CPU time",
                pressure.some_total_us / _US,
            )
        observer = self._observer
        for name, text, value in (
            ("bayplan_observed_groups", "Groups at the last look.", len(observer.watched)),
            ("bayplan_skipped_groups", "Groups left out because there are too many.", observer.skipped_groups),
            ("bayplan_unasked_groups", "Groups whose threads were too many to be asked.", observer.unasked_groups),
            ("bayplan_unreadable_groups", "Groups that could not be read or named.", observer.unreadable_groups),
            ("bayplan_look_seconds", "How long the last look took.", observer.last_look_seconds),
        ):
            yield GaugeMetricFamily(name, text, value)


def labels_of(watched: Watched) -> tuple[str, ...]:
    """The values of LABELS for a group."""
    name = watched.name
    image = ""  # a path does not tell it
    return (watched.path, watched.container_id, image, name.pod, name.namespace, name.container, watched.pod_uid)


def _rates(seen: list[tuple[Watched, tuple[str, ...]]]) -> Iterator[Metric]:
    gauges: tuple[tuple[str, str, Callable[[Rates], float]], ...] = (
        (_RATIO, "Throttled periods of all periods of a window.", lambda rates: rates.throttle_rate),
        (_WAITING, "Of the time threads ran or wanted to, the share they waited, in a window.", waiting_share),
    )
    for name, text, value in gauges:
        made = GaugeMetricFamily(name, text, labels=(*LABELS, "window"))
        for watched, labels in seen:
            for window in ("10s", "1m", "5m"):
                made.add_metric((*labels, window), value(watched.history.rates(window)))
        yield made
    bursts = GaugeMetricFamily(_BURSTS, "Periods that used more than their quota, an hour.", labels=LABELS)
    for watched, labels in seen:
        bursts.add_metric(labels, watched.history.rates("1h").bursts_per_hour)
    yield bursts


def _alerts(seen: list[tuple[Watched, tuple[str, ...]]]) -> Metric:
    made = GaugeMetricFamily(
        "bayplan_alert", "1 while an alert is pending or firing.", labels=(*LABELS, "alert", "state")
    )
    for watched, labels in seen:
        for name, state in watched.active().items():
            made.add_metric((*labels, name, str(state)), 1)
    return made


METRICS = (
    "container_cpu_usage_seconds_total",
    *(metric.name for metric in (*COUNTERS, *GAUGES)),
    _RATIO,
    _WAITING,
    _BURSTS,
    "bayplan_alert",
    "node_pressure_cpu_waiting_seconds_total",
    "bayplan_observed_groups",
    "bayplan_skipped_groups",
    "bayplan_unasked_groups",
    "bayplan_unreadable_groups",
    "bayplan_look_seconds",
)
"""Every metric of the agent, for docs/agent.md."""
