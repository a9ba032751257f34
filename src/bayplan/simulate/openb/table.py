"""Several runs of each policy together: means with their standard errors, beside those of a published table."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

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
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in (_POLICY, _SEED) if name not in (reader.fieldnames or ())]
            if missing:
                raise TraceError(f"{path}:1: no column {missing[0]!r}")
            for row in reader:
                try:
                    run = _published(row)
                except ValueError as error:
                    raise TraceError(f"{path}:{reader.line_num}: {error}") from error
                found.setdefault(run.policy, []).append(run)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path}: cannot be read: {error}") from error
    return found


def _published(row: dict[Any, Any]) -> Run:
    """A row as the csv module reads it: cells that are not there are None, and those beyond the columns have no key."""
    if None in row:
        raise ValueError(f"{len(row[None])} cells more than there are columns")
    if None in row.values():
        missing = next(key for key, text in row.items() if text is None)
        raise ValueError(f"{missing}: the row ends before it")
    if not (row[_SEED].isascii() and row[_SEED].isdecimal()):
        raise ValueError(f"{_SEED}: expected a whole number, not {row[_SEED]!r}")
    policy = row[_POLICY].rpartition("-")[2].lower()  # the paper numbers them: 06-FGD
    if not policy:
        raise ValueError(f"{_POLICY}: is empty")
    allocated = {int(key): _percent(key, text) for key, text in row.items() if key.isdecimal() and text}
    return Run(policy, int(row[_SEED]), 0, 0, allocated)


def _percent(column: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{column}: expected a number, not {text!r}")
    return found
