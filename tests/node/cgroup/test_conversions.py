"""CPU numbers in other units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.cgroup import conversions as c


@pytest.mark.parametrize(("weight", "shares"), [(1, 10), (100, 1024), (10_000, 102_400), (50, 512), (33, 338)])
def test_the_kernels_weights_and_shares(weight: int, shares: int) -> None:
    assert (c.weight_to_shares(weight), c.shares_to_weight(shares)) == (shares, weight)


@given(st.integers(1, 10_000))
def test_a_weight_in_shares_is_that_weight_again(weight: int) -> None:
    assert c.shares_to_weight(c.weight_to_shares(weight)) == weight


@pytest.mark.parametrize(
    ("milli", "shares"),
    [
        pytest.param(0, 2, id="no request is the least, not the default"),
        pytest.param(1, 2, id="less than the least is the least"),
        pytest.param(1000, 1024, id="a CPU"),
        pytest.param(333, 340, id="rounded down"),
        pytest.param(999_000, 262_144, id="no more than the most"),
    ],
)
def test_shares_of_a_request(milli: int, shares: int) -> None:
    assert c.milli_to_shares(milli) == shares


@pytest.mark.parametrize(
    ("milli", "period", "quota"),
    [
        pytest.param(0, 100_000, None, id="no limit"),
        pytest.param(5, 100_000, 1000, id="at least a millisecond"),
        pytest.param(1500, 100_000, 150_000, id="a CPU and a half"),
        pytest.param(200, 5_000, 1000, id="another period"),
    ],
)
def test_the_quota_of_a_limit(milli: int, period: int, quota: int | None) -> None:
    assert c.milli_to_quota(milli, period) == quota


@pytest.mark.parametrize(
    ("shares", "weight"),
    [
        (1, 1),
        (2, 1),
        (3, 2),
        (1024, 100),
        (2048, 174),
        (262_143, 10_000),
        (300_000, 10_000),
    ],
)
def test_the_weights_that_runtimes_write(shares: int, weight: int) -> None:
    """The values are those of the tests of opencontainers/cgroups 0.0.6."""
    assert c.runtime_weight(shares) == weight


@given(st.integers(2, 262_143))
def test_more_shares_are_never_less_weight(shares: int) -> None:
    assert c.runtime_weight(shares) <= c.runtime_weight(shares + 1)
    assert 1 <= c.runtime_weight(shares) <= 10_000
