"""What came of a run, in figures and for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from bayplan.model.ages import human_duration
from bayplan.model.clock import Instant, seconds
from bayplan.simulate.eventlog import Sample
from bayplan.simulate.levels import Level
from bayplan.simulate.tally import Tally
from bayplan.simulate.vms.agreement import Agreement

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 48
_LITTLE = 0.01
_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "longest": 1.0}
_SAMPLED = {
    "fragments": "fragmentation",
    "cpu used": "used_cpu",
    "mem. used": "used_memory",
    "gpu used": "used_gpu",
}


class Waits(msgspec.Struct, frozen=True, rename="camel"):
    """Seconds from creation to placement, of all pods."""

    p50: float
    p90: float
    p99: float
    longest: float
    unplaced: int = 0
    """Pods that have waited and have had no node; they count with what they waited until the end, or their own."""
    at_least: tuple[str, ...] = ()
    """The figures that are at least that, since such pods are among them."""


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
    """Of all that nodes have, the share that was requested, on average over time; so memory and gpu."""
    memory: float
    gpu: float
    levels: dict[str, Level]
    """Those and pending pods over time: `cpu`, `memory`, `gpu`, `pending`."""
    fragmentation: float
    """On average over the samples."""
    gpu_hours: dict[str, float]
    """By namespace."""
    idle_gpu_hours: float
    events: dict[str, int]
    """How often each event happened."""
    migrations: int
    migrations_refused: int
    why_refused: dict[str, int]
    """Those by their most frequent reasons."""
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
    reached, whole = (human_duration(seconds(span)) for span in (summary.reached, summary.duration))
    span = f"{reached} of cluster time" if summary.complete else f"{reached} of {whole} of cluster time, interrupted,"
    lines = [
        f"{summary.scenario}: {span} on {summary.nodes} nodes, policy {summary.policy}, "
        f"seed {summary.seed}, {summary.engine}",
        f"pods      created {summary.created}  placed {summary.placed}  pending {summary.pending}  "
        f"running {summary.running}  succeeded {summary.succeeded}  failed {summary.failed}",
        f"wait      {_waits(summary.waits)}",
    ]
    lines += [
        f"{name:<9} {bars(level.parts or [level.mean])}  mean {_percent(level.mean)}, most {_percent(level.most)}"
        for name, level in _shares(summary)
        if level.most
    ]
    if (waiting := summary.levels.get("pending")) is not None and waiting.most:
        shown = [each / waiting.most for each in waiting.parts or [waiting.most]]
        lines.append(f"{'pending':<9} {bars(shown)}  most {waiting.most:.0f}")
    lines += _gpu_hours(summary)
    lines += _counts("events", summary.events)
    if summary.migrations or summary.migrations_refused:
        lines.append(f"moves     {summary.migrations} migrations, {summary.migrations_refused} refused")
        lines += [f"          {count:>6}  {reason}" for reason, count in summary.why_refused.items()]
    if summary.agreement is not None:
        lines += ["wishes    " + summary.agreement.text().replace("\n", "\n          ")]
    lines += _counts("denied", summary.denied)
    for message, count in summary.why_pending.items():
        lines.append(f"waiting   {count}: {message}")
    return lines


def _waits(waits: Waits | None) -> str:
    if waits is None:
        return "no pod was placed"
    told = [
        f"{name} {'>= ' if name in waits.at_least else ''}{human_duration(seconds(getattr(waits, name)))}"
        for name in _SHARES
    ]
    return "  ".join([*told, f"({waits.unplaced} never placed)"] if waits.unplaced else told)


def waits_of(tally: Tally, now: Instant) -> Waits | None:
    """What an account says of waits, if anybody came."""
    found = dict(zip(_SHARES, tally.waited(now, *_SHARES.values()), strict=False))
    if not found:
        return None
    at_least = tuple(name for name, wait in found.items() if wait.at_least)
    figures = {name: round(wait.seconds, 6) for name, wait in found.items()}
    return Waits(**figures, unplaced=len(tally.unplaced(now)), at_least=at_least)


def _shares(summary: Summary) -> Iterator[tuple[str, Level]]:
    """Requested, known at all times; and what only samples know, each until the next."""
    for name in ("cpu", "memory", "gpu"):
        if name in summary.levels:
            yield name, summary.levels[name]
    for name, field in _SAMPLED.items():
        values = [getattr(each, field) for each in summary.samples]
        parts = tuple(getattr(one, field) for one, other in pairwise(summary.samples) if other.t > one.t)
        yield name, Level(mean_of(summary.samples, field), max(values, default=0.0), parts)


def _percent(share: float) -> str:
    """Whole percents, but a little is not nothing."""
    return f"{share:.2%}" if 0 < share < _LITTLE else f"{share:.0%}"


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


def mean_of(samples: Sequence[Sample], what: str) -> float:
    """The mean of one figure of the samples, as if each held until the next."""
    span = samples[-1].t - samples[0].t if samples else 0.0
    if not span:
        return round(_mean([getattr(each, what) for each in samples]), 6)
    area: float = sum(getattr(one, what) * (other.t - one.t) for one, other in pairwise(samples))
    return round(area / span, 6)


def most_common(counts: Counter[str], most: int = 5) -> dict[str, int]:
    """The most frequent ones, equals by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most])
