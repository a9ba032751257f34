"""Several runs of each policy together: means with their standard errors, beside those of a published table."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from bayplan.simulate.means import mean_and_error
from bayplan.simulate.openb.run import Run
from bayplan.simulate.openb.trace import TraceError

_POLICY, _SEED = "sc_policy", "seed"


class Mean(msgspec.Struct, frozen=True):
    """Of several runs."""

    value: float
    error: float | None
    """The standard error; None for a single run."""
    runs: int


class Line(msgspec.Struct, frozen=True):
    """A policy: its means by how many GPUs were asked for, in percent of all."""

    policy: str
    means: dict[int, Mean]
    expected: dict[int, Mean] = {}


def lines(runs: Iterable[Run], expected: Mapping[str, Sequence[Run]] | None = None) -> list[Line]:
    """A line a policy, in the order in which they come."""
    by_policy: dict[str, list[Run]] = {}
    for run in runs:
        by_policy.setdefault(run.policy, []).append(run)
    known = expected or {}
    return [Line(policy, _means(group), _means(known.get(policy, ()))) for policy, group in by_policy.items()]


def _means(runs: Sequence[Run]) -> dict[int, Mean]:
    found: dict[int, list[float]] = {}
    for run in runs:
        for asked, used in run.allocated.items():
            found.setdefault(asked, []).append(used)
    return {asked: Mean(*mean_and_error(used), len(used)) for asked, used in sorted(found.items())}


def read_expected(path: Path) -> dict[str, list[Run]]:
    """A published table, by policy: columns `sc_policy`, `seed`, and a number for each percent asked for.

    Raises TraceError, which names file and line.
    """
    found: dict[str, list[Run]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in (_POLICY, _SEED) if name not in (reader.fieldnames or ())]
            if missing:
                raise TraceError(f"{path}:1: no column {missing[0]!r}")
            for row in reader:
                policy = row[_POLICY].rpartition("-")[2].lower()  # the paper numbers them: 06-FGD
                try:
                    allocated = {int(key): float(text) for key, text in row.items() if key.isdecimal() and text}
                    found.setdefault(policy, []).append(Run(policy, int(row[_SEED]), 0, 0, allocated))
                except ValueError as error:
                    raise TraceError(f"{path}:{reader.line_num}: {error}") from error
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path}: cannot be read: {error}") from error
    return found
