"""What came of a run, in figures and for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from bayplan.model.ages import human_duration
from bayplan.model.clock import seconds
from bayplan.simulate.eventlog import Sample
from bayplan.simulate.vms.agreement import Agreement

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 48


class Waits(msgspec.Struct, frozen=True):
    """Seconds from creation to placement."""

    p50: float
    p90: float
    p99: float
    longest: float


class Summary(msgspec.Struct, frozen=True, rename="camel"):
    """The account of a run."""

    scenario: str
    policy: str
    engine: str
    seed: int
    duration: float
    """Seconds of the cluster's time that the run was to take, and how many it did."""
    reached: float
    complete: bool
    nodes: int
    created: int
    placed: int
    pending: int
    running: int
    succeeded: int
    failed: int
    waits: Waits | None
    cpu: float
    """Of all that nodes have, the share that was requested, on average over the samples; so memory and gpu."""
    memory: float
    gpu: float
    fragmentation: float
    gpu_hours: dict[str, float]
    """By namespace."""
    idle_gpu_hours: float
    events: dict[str, int]
    """How often each event happened."""
    migrations: int
    migrations_refused: int
    agreement: Agreement | None
    """Wished against chosen, where there are wishes."""
    denied: dict[str, int]
    """What the API server refused, by action and reason."""
    why_pending: dict[str, int]
    """Pods that wait at the end, by what the scheduler said."""
    samples: tuple[Sample, ...]

    def document(self) -> dict[str, Any]:
        """In JSON's types."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        if self.agreement is not None:
            plain["agreement"]["share"] = round(self.agreement.share, 6)
        return plain


def text(summary: Summary) -> list[str]:
    """For people."""
    span = human_duration(seconds(summary.reached))
    if not summary.complete:
        span += f" of {human_duration(seconds(summary.duration))}, then interrupted"
    lines = [
        f"{summary.scenario}: {span} of cluster time on {summary.nodes} nodes, policy {summary.policy}, "
        f"seed {summary.seed}, {summary.engine}",
        f"pods      created {summary.created}  placed {summary.placed}  pending {summary.pending}  "
        f"running {summary.running}  succeeded {summary.succeeded}  failed {summary.failed}",
        f"wait      {_waits(summary.waits)}",
    ]
    for name, values in (
        ("cpu", [each.cpu for each in summary.samples]),
        ("memory", [each.memory for each in summary.samples]),
        ("gpu", [each.gpu for each in summary.samples]),
        ("fragments", [each.fragmentation for each in summary.samples]),
        ("cpu used", [each.used_cpu for each in summary.samples]),
        ("mem. used", [each.used_memory for each in summary.samples]),
        ("gpu used", [each.used_gpu for each in summary.samples]),
    ):
        if any(values):
            lines.append(f"{name:<9} {bars(values)}  mean {_mean(values):.0%}, most {max(values):.0%}")
    waiting = [each.pending for each in summary.samples]
    if any(waiting):
        highest = max(waiting)
        lines.append(f"{'pending':<9} {bars([each / highest for each in waiting])}  most {highest}")
    lines += _gpu_hours(summary)
    lines += _counts("events", summary.events)
    if summary.migrations or summary.migrations_refused:
        lines.append(f"moves     {summary.migrations} migrations, {summary.migrations_refused} refused")
    if summary.agreement is not None:
        lines += ["wishes    " + summary.agreement.text().replace("\n", "\n          ")]
    lines += _counts("denied", summary.denied)
    for message, count in summary.why_pending.items():
        lines.append(f"waiting   {count}: {message}")
    return lines


def _waits(waits: Waits | None) -> str:
    if waits is None:
        return "no pod was placed"
    names = ("p50", "p90", "p99", "longest")
    return "  ".join(f"{name} {human_duration(seconds(getattr(waits, name)))}" for name in names)


def _gpu_hours(summary: Summary) -> list[str]:
    held = sum(summary.gpu_hours.values())
    total = held + summary.idle_gpu_hours
    if not total:
        return []
    teams = ", ".join(f"{name} {hours:.1f}" for name, hours in summary.gpu_hours.items() if hours)
    return [f"gpu-hours {held:.1f} of {total:.1f} ({held / total:.0%})" + (f": {teams}" if teams else "")]


def _counts(what: str, counts: dict[str, int]) -> list[str]:
    told = ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts.items())
    return [f"{what:<9} {told}"] if told else []


def bars(values: Sequence[float]) -> str:
    """Shares as small bars, at most so many; a share above nothing is seen."""
    step = max(1, -(-len(values) // _WIDTH))
    means = [_mean(values[at : at + step]) for at in range(0, len(values), step)]
    return "".join(_BARS[min(len(_BARS) - 1, max(share > 0, round(share * (len(_BARS) - 1))))] for share in means)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def mean_of(samples: Iterable[Sample], what: str) -> float:
    """The mean of one figure of the samples."""
    return round(_mean([getattr(each, what) for each in samples]), 6)


def most_common(counts: Counter[str], most: int = 5) -> dict[str, int]:
    """The most frequent ones, equals by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most])
