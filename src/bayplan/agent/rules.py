"""Rules for Prometheus: the seed's queries recorded, and alerts over them, as `bayplan agent rules` prints them."""

from __future__ import annotations

from typing import Any

from bayplan.agent.observe import BURSTING, THROTTLED, WAITING, Thresholds

_PERIODS = "container_cpu_cfs_periods_total"
_THROTTLED_PERIODS = "container_cpu_cfs_throttled_periods_total"
_RATIO = "id:container_cpu_cfs_throttled_periods:ratio_rate5m"
_SECONDS = "id:container_cpu_cfs_throttled_seconds:rate5m"
_WAITING_RATIO = "id:bayplan_container_run_queue:ratio_rate5m"
_KEPT = "id, pod, namespace, container"


def prometheus_rules(thresholds: Thresholds) -> dict[str, Any]:
    """A rules file, as a value."""
    hold = f"{thresholds.hold_us // 1_000_000}s"
    waited = f"sum by ({_KEPT}) (rate(bayplan_container_run_queue_seconds_total[5m]))"
    used = f"sum by ({_KEPT}) (rate(container_cpu_usage_seconds_total[5m]))"
    return {
        "groups": [
            {
                "name": "bayplan-throttling-records",
                "rules": [
                    {"record": _RATIO, "expr": f"rate({_THROTTLED_PERIODS}[5m]) / rate({_PERIODS}[5m])"},
                    {"record": _SECONDS, "expr": "rate(container_cpu_cfs_throttled_seconds_total[5m])"},
                    {"record": _WAITING_RATIO, "expr": f"{waited} / ({waited} + {used})"},
                ],
            },
            {
                "name": "bayplan-throttling-alerts",
                "rules": [
                    _alert(
                        THROTTLED,
                        f"{_RATIO} > {thresholds.throttled:g}",
                        hold,
                        "{{ $value | humanizePercentage }} of the CPU periods of {{ $labels.id }} are throttled",
                        "bayplan cpu explain throttling --group {{ $labels.id }} names the cause and what would end it",
                    ),
                    _alert(
                        WAITING,
                        f"{_WAITING_RATIO} > {thresholds.waiting:g}",
                        hold,
                        "threads of {{ $labels.id }} wait for a CPU {{ $value | humanizePercentage }} of the time",
                        "the node is busy or the container throttled: compare bayplan_container_throttle_ratio",
                    ),
                    _alert(
                        BURSTING,
                        f"3600 * rate(container_cpu_cfs_burst_periods_total[1h]) > {thresholds.bursts_per_hour:g}",
                        hold,
                        "{{ $labels.id }} bursts {{ $value | humanize }} times an hour",
                        "its quota is too low for what it does often: a burst is for the exception",
                    ),
                ],
            },
        ]
    }


def _alert(name: str, expression: str, hold: str, summary: str, description: str) -> dict[str, Any]:
    return {
        "alert": name,
        "expr": expression,
        "for": hold,
        "keep_firing_for": hold,
        "labels": {"severity": "warning"},
        "annotations": {"summary": summary, "description": description},
    }
