"""Policies on one input: the same scenario with the same seeds under each, and what the difference is worth.

Runs with the same seed have the same arrivals, so they are compared pair by pair: chance that both share drops out. A
difference counts where its 95% confidence interval does not hold 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from bayplan.simulate.means import mean_and_error
from bayplan.simulate.policy import configuration
from bayplan.simulate.run import Order, rehearse
from bayplan.simulate.summary import Summary
from bayplan.simulate.twin.snapshot import read_snapshot

_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
      2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)  # fmt: skip
"""Student's t for 95%, both sides, from one degree of freedom on."""
_NORMAL = 1.96
_PERCENT = 100.0


class Measure(msgspec.Struct, frozen=True):
    """Something that a run is judged by."""

    name: str
    unit: str
    more_is_better: bool
    of: Callable[[Summary], float | None]
    """None: the run has nothing to say about it."""
    at_least: Callable[[Summary], bool] = lambda _: False
    """Whether it is more, and the run ended too early to say by how much."""


def _wait(share: str) -> Measure:
    return Measure(
        f"wait, {share}",
        "s",
        False,
        lambda run: getattr(run.waits, share) if run.waits else None,
        lambda run: run.waits is not None and share in run.waits.at_least,
    )


MEASURES = (
    Measure("pending at the end", "pods", False, lambda run: float(run.pending)),
    _wait("p50"),
    _wait("p90"),
    _wait("p99"),
    Measure("placed", "pods", True, lambda run: float(run.placed)),
    Measure("CPU requested", "%", True, lambda run: _PERCENT * run.cpu),
    Measure("GPU requested", "%", True, lambda run: _PERCENT * run.gpu),
    Measure("fragmentation", "%", False, lambda run: _PERCENT * run.fragmentation),
    Measure("GPU-hours idle", "h", False, lambda run: run.idle_gpu_hours),
    Measure("failed", "pods", False, lambda run: float(run.failed)),
)


class Interval(msgspec.Struct, frozen=True):
    """A mean, and how far the truth may be from it, 95 times of 100; None: of a single run nobody knows."""

    mean: float
    margin: float | None

    @property
    def is_clear(self) -> bool:
        """Whether it is on one side of 0."""
        return self.margin is not None and abs(self.mean) > self.margin


class Line(msgspec.Struct, frozen=True):
    """One measure: under each policy, and the difference that each makes to the first."""

    measure: str
    unit: str
    more_is_better: bool
    values: dict[str, Interval]
    differences: dict[str, Interval]
    at_least: tuple[str, ...] = ()
    """The policies under which it is at least that in some run: pods that were never placed waited on."""


def interval(values: Sequence[float]) -> Interval:
    """The mean of runs."""
    mean, error = mean_and_error(values)
    if error is None:
        return Interval(mean, None)
    t = _T[len(values) - 2] if len(values) - 2 < len(_T) else _NORMAL
    return Interval(mean, t * error)


def compared(runs: Mapping[str, Sequence[Summary]], measures: Sequence[Measure] = MEASURES) -> list[Line]:
    """A line for each measure about which all runs have something to say, and not all the same zero.

    Each policy's runs must be in the same order of seeds.
    """
    lines: list[Line] = []
    for measure in measures:
        found = {policy: [measure.of(run) for run in group] for policy, group in runs.items()}
        values = {policy: [each for each in group if each is not None] for policy, group in found.items()}
        if any(len(values[policy]) < len(found[policy]) for policy in found) or not any(map(any, values.values())):
            continue
        first, *others = values
        pairs = {policy: [b - a for a, b in zip(values[first], values[policy], strict=True)] for policy in others}
        lines.append(
            Line(
                measure.name,
                measure.unit,
                measure.more_is_better,
                {policy: interval(group) for policy, group in values.items()},
                {policy: interval(group) for policy, group in pairs.items()},
                tuple(policy for policy, group in runs.items() if any(map(measure.at_least, group))),
            )
        )
    return lines


def verdict(lines: Sequence[Line], policies: Sequence[str]) -> list[str]:
    """In words, one sentence for each policy but the first, and what is more than it is told to be."""
    first, *others = policies
    told = [f"{policy} against {first}: {_sentence([line for line in lines if policy in line.differences], policy)}."
            for policy in others]  # fmt: skip
    open_ended = [f"{line.measure} ({', '.join(line.at_least)})" for line in lines if line.at_least]
    if open_ended:
        told.append(f"at least that, since pods that were never placed waited to the end: {', '.join(open_ended)}.")
    return told


def _sentence(lines: Sequence[Line], policy: str) -> str:
    clear = [line for line in lines if line.differences[policy].is_clear]
    parts = []
    for word, wanted in (("better", True), ("worse", False)):
        told = [
            _told(line, policy)
            for line in clear
            if (line.differences[policy].mean > 0) == (line.more_is_better == wanted)
        ]
        if told:
            parts.append(f"{word} in {', '.join(told)}")
    if not parts:
        single = any(line.differences[policy].margin is None for line in lines)
        return "one seed tells nothing; give more" if single else "no difference that chance would not explain"
    return "; ".join(parts)


def _told(line: Line, policy: str) -> str:
    found = line.differences[policy]
    return f"{line.measure} ({found.mean:+.2f} ± {found.margin:.2f} {line.unit})"


# --- the runs


def under(order: Order, policy: str, seed: int, twin: Path | None = None) -> Summary:
    """A run as ordered, but under this policy and with this seed, on the twin of a file. Raises UnknownPolicyError."""
    there = None if twin is None else read_snapshot(twin)  # a snapshot cannot be sent to another process
    own = msgspec.structs.replace(order, policy=policy, seed=seed, twin=there)
    return asyncio.run(rehearse(own, scheduler=configuration(own.scenario, policy, seed, own.pods)))
