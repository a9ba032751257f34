"""The PSI curves: the house's own never falls, the older one is as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.simulate.vms.pressure import cpu_pressure, memory_pressure, monotone, seed

wishes = st.floats(0, 10)


@given(wishes, wishes)
def test_more_load_is_never_less_pressure(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert 0 <= cpu_pressure(less) <= cpu_pressure(more) <= 1
    assert 0 <= memory_pressure(less) <= memory_pressure(more) <= 1


@given(st.floats(0, 0.999))
def test_there_are_no_steps(used: float) -> None:
    assert monotone(used + 0.001) - monotone(used) < 0.02


@pytest.mark.parametrize(
    ("wanted", "cpu", "memory"),
    [
        pytest.param(0, 0, 0, id="an idle node"),
        pytest.param(0.6999, 0.048993, 0.048993, id="just below 70%"),
        pytest.param(0.7, 0, 0, id="the step down at 70%"),
        pytest.param(0.75, 0.05, 0.05, id="75%"),
        pytest.param(0.9, 0.2, 0.2, id="90%"),
        pytest.param(1, 0.8, 0.8, id="all of it"),
        pytest.param(1.2, 0.9, 0.8, id="more CPU than there is"),
        pytest.param(3, 1, 0.8, id="far more"),
    ],
)
def test_the_curve_of_earlier_simulators(wanted: float, cpu: float, memory: float) -> None:
    assert cpu_pressure(wanted, seed) == pytest.approx(cpu)
    assert memory_pressure(wanted, seed) == pytest.approx(memory)


@pytest.mark.parametrize("wanted", [0.0, 0.3, 0.69, 0.9, 0.95, 1.0, 1.5])
def test_outside_of_70_to_90_both_curves_agree(wanted: float) -> None:
    assert cpu_pressure(wanted) == pytest.approx(cpu_pressure(wanted, seed))
