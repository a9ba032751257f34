"""Policies compared: means, margins, pairs and words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.simulate.comparing import Interval, Measure, compared, interval, verdict
from bayplan.simulate.summary import Summary

_ZERO: dict[type, Any] = {int: 0, float: 0.0, str: "", bool: True, dict: {}, tuple: ()}


def summary(**given: Any) -> Summary:
    """A summary of zeros, but for what is given."""
    plain: dict[str, Any] = {}
    for field in msgspec.structs.fields(Summary):
        kind = getattr(field.type, "__origin__", field.type)
        plain[field.name] = _ZERO.get(kind)
    return Summary(**{**plain, **given})


PENDING = Measure("pending", "pods", False, lambda run: float(run.pending))
PLACED = Measure("placed", "pods", True, lambda run: float(run.placed))


@pytest.mark.parametrize(
    ("values", "mean", "margin"),
    [
        pytest.param([4.0], 4.0, None, id="of one run nobody knows the margin"),
        pytest.param([1.0, 3.0], 2.0, 12.706, id="two runs have a wide margin"),
        pytest.param([5.0] * 10, 5.0, 0.0, id="equal runs have none"),
        pytest.param([float(i % 2) for i in range(100)], 0.5, 1.96 * 0.05025, id="many runs go by the normal curve"),
    ],
)
def test_the_margin_of_a_mean(values: list[float], mean: float, margin: float | None) -> None:
    found = interval(values)
    assert found.mean == pytest.approx(mean)
    assert found.margin == (None if margin is None else pytest.approx(margin, rel=1e-3))


def test_pairs_see_what_means_would_not() -> None:
    """The seeds differ far more than the policies do, but under one policy each has two more than under the other."""
    base = [10, 200, 3000, 40000]
    runs = {"a": [summary(pending=each) for each in base], "b": [summary(pending=each + 2) for each in base]}
    (line,) = compared(runs, [PENDING])
    assert line.differences["b"] == Interval(2.0, 0.0)
    assert verdict([line], ["a", "b"]) == ["b against a: worse in pending (+2.00 ± 0.00 pods)."]


def test_what_chance_explains_is_no_difference() -> None:
    runs = {"a": [summary(placed=each) for each in (5, 9, 7)], "b": [summary(placed=each) for each in (9, 5, 8)]}
    assert verdict(compared(runs, [PLACED]), ["a", "b"]) == [
        "b against a: no difference that chance would not explain."
    ]


def test_one_seed_tells_nothing() -> None:
    runs = {"a": [summary(placed=5)], "b": [summary(placed=9)]}
    assert verdict(compared(runs, [PLACED]), ["a", "b"]) == ["b against a: one seed tells nothing; give more."]


def test_better_and_worse_go_by_what_is_wanted() -> None:
    runs = {
        "a": [summary(placed=5, pending=4), summary(placed=6, pending=5)],
        "b": [summary(placed=9, pending=9), summary(placed=10, pending=10)],
    }
    told = verdict(compared(runs, [PENDING, PLACED]), ["a", "b"])
    assert told == ["b against a: better in placed (+4.00 ± 0.00 pods); worse in pending (+5.00 ± 0.00 pods)."]


def test_what_some_runs_say_nothing_about_is_left_out() -> None:
    runs = {"a": [summary(placed=5)], "b": [summary(placed=5)]}
    assert [line.measure for line in compared(runs)] == ["placed"]
