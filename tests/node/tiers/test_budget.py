"""A budget that learns from throttling: bounded, growing with it, forgetting it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.tiers.budget import LEAST, MOST, Budget

RATES = st.floats(0, 1)


def learned(rates: list[float]) -> Budget:
    budget = Budget()
    for rate in rates:
        budget = budget.learn(rate)
    return budget


@given(st.lists(RATES, max_size=50))
def test_it_is_bounded(rates: list[float]) -> None:
    budget = learned(rates)
    assert 1 <= budget.learned <= MOST
    assert LEAST <= budget.factor() <= MOST


@given(st.lists(st.tuples(RATES, RATES), max_size=50))
def test_more_throttling_never_means_less(pairs: list[tuple[float, float]]) -> None:
    low, high = learned([min(pair) for pair in pairs]), learned([max(pair) for pair in pairs])
    assert low.learned <= high.learned


@given(st.lists(RATES, max_size=20))
def test_it_forgets(rates: list[float]) -> None:
    assert learned([*rates, *[0.0] * 30]).learned == pytest.approx(1, abs=1e-4)


def test_it_learns_what_would_have_sufficed() -> None:
    """Throttled in every second period: about twice the quota was wanted."""
    assert learned([0.5] * 30).learned == pytest.approx(2, abs=1e-4)


def test_a_tier_may_grant_less() -> None:
    assert learned([1.0] * 30).factor(2.0) == 2.0
