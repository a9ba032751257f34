"""Who holds GPUs and does not use them: by measurements alone, and no data is no data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bayplan.ledger.questions.amounts import HOUR as GPU_HOUR
from bayplan.ledger.questions.asking import Scope
from bayplan.ledger.questions.held import HOLE, HeldRule, Holder, held_unused
from bayplan.ledger.rows import Row
from bayplan.ledger.store.sql import SqlStore
from bayplan.model.clock import SECOND, Instant
from tests.ledger.books import HOUR, a_day, elsewhere, held, hour, pod, used, written

MINUTE = 60 * SECOND
ANY = HeldRule(lasting=0)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    opened = await written(str(tmp_path / "ledger.db"), a_day())
    yield opened
    await opened.close()


def samples(*values: float | None) -> list[tuple[Instant, float]]:
    """One every five minutes up to hour 10; None: nobody measured."""
    first = hour(10) - 5 * MINUTE * (len(values) - 1)
    return [(Instant(first + i * 5 * MINUTE), each) for i, each in enumerate(values) if each is not None]


async def answer(path: Path, devices: Mapping[str, Sequence[tuple[Instant, float]]], gpus: int = 1000) -> list[Holder]:
    rows: list[Row] = [pod("p"), held("p", hour(0), gpus=gpus), pod("gone"), held("gone", hour(0), hour(5))]
    rows += [used("p", at, value, device) for device, told in devices.items() for at, value in told]
    rows += [used("gone", hour(10), 0.0)]
    store = await written(str(path), rows)
    try:
        return await held_unused(store, hour(10), hour(0), ANY)
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("values", "minutes"),
    [
        pytest.param((0.0, 0.0, 0.0), 10, id="from the first measurement to the last"),
        pytest.param((0.0, 0.9, 0.0, 0.05), 5, id="only after it was used last"),
        pytest.param((0.0, 0.1), None, id="the threshold itself is use"),
        pytest.param((0.0, 0.0, None, None, 0.0, 0.0), 5, id="a hole is no idleness"),
        pytest.param((0.9, None, None, 0.0, 0.0), 5, id="a hole after it was used"),
    ],
)
async def test_a_device_is_unused_as_long_as_measurements_say_so(
    values: tuple[float | None, ...], minutes: int | None, tmp_path: Path
) -> None:
    found = await answer(tmp_path / "ledger.db", {"gpu-0": samples(*values)})
    wasted = [each.wasted for each in found]
    assert wasted == ([] if minutes is None else [minutes * GPU_HOUR // 60])


@pytest.mark.parametrize(
    "values",
    [
        pytest.param((0.0, 0.0, None, None, None), id="nobody measures any more"),
        pytest.param((0.9, 0.9, None, None, None), id="nobody measures any more what was in use"),
        pytest.param((), id="nobody ever measured"),
    ],
)
async def test_what_nobody_measures_is_no_data(values: tuple[float | None, ...], tmp_path: Path) -> None:
    (found,) = await answer(tmp_path / "ledger.db", {"gpu-0": samples(*values)})
    assert (found.unused, found.unmeasured) == (0, 1000)
    assert (found.since, found.utilisation, found.wasted, found.cost, found.memory) == (None,) * 5


async def test_each_device_is_judged_by_itself(tmp_path: Path) -> None:
    devices = {"gpu-0": samples(0.0, 0.0, 0.0), "gpu-1": samples(0.5, 0.5, 0.5), "gpu-2": samples(0.5, 0.02, 0.02)}
    (found,) = await answer(tmp_path / "ledger.db", devices, gpus=4000)
    assert (found.unused, found.unmeasured, found.wasted) == (2000, 1000, 15 * GPU_HOUR // 60)
    assert (found.since, found.utilisation) == (hour(10) - 10 * MINUTE, 0.01)


def _stretch(told: Sequence[tuple[Instant, float]]) -> int | None:
    """How long a device is below the threshold, looked at one by one from the end."""
    if not told or hour(10) - told[-1][0] > HOLE:
        return None
    start, any_ = told[-1][0], False
    for at, value in reversed(told):
        if value >= ANY.below or start - at > HOLE:
            break
        start, any_ = at, True
    return told[-1][0] - start if any_ else None


_TOLD = st.lists(
    st.tuples(st.integers(0, 90), st.sampled_from([0.0, 0.05, 0.1, 0.7])), max_size=12, unique_by=lambda each: each[0]
)


@given(st.lists(_TOLD, max_size=3))
@hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_database_finds_what_one_finds_going_backwards(
    tmp_path_factory: pytest.TempPathFactory, devices: list[list[tuple[int, float]]]
) -> None:
    told = {
        f"gpu-{i}": sorted((Instant(hour(10) - minute * MINUTE), value) for minute, value in each)
        for i, each in enumerate(devices)
    }
    found = asyncio.run(answer(tmp_path_factory.mktemp("held") / "ledger.db", told, gpus=len(devices) * 1000 or 1000))
    spans = [span for each in told.values() if (span := _stretch(each)) is not None]
    assert [each.wasted for each in found if each.unused] == ([sum(spans) * 1000] if spans else [])
    assert sum(each.unused for each in found) == 1000 * len(spans)


async def test_who_holds_and_does_not_use_is_ranked_and_no_data_is_no_data(store: SqlStore) -> None:
    prices = {"H100": Decimal("3.5"), "A100": Decimal(2)}
    notebook, serve = await held_unused(store, hour(24), hour(0), HeldRule(), prices)
    assert (notebook.name, notebook.unused, notebook.unmeasured) == ("notebook", 1000, 1000)
    assert (notebook.wasted, notebook.cost) == (4 * GPU_HOUR, Decimal("14.00"))
    assert (serve.name, serve.unused, serve.unmeasured, serve.utilisation) == ("serve-1", 0, 4000, None)
    assert (serve.since, serve.wasted, serve.cost) == (None, None, None)


async def test_who_has_not_held_long_enough_is_not_told_to_waste(store: SqlStore) -> None:
    notebook = (await held_unused(store, hour(24), hour(0), HeldRule(lasting=5 * HOUR)))[-1]
    assert (notebook.name, notebook.unused, notebook.wasted) == ("notebook", 0, None)


async def test_clusters_and_namespaces_are_told_apart(tmp_path: Path) -> None:
    twice = await written(str(tmp_path / "two.db"), [*a_day(), *elsewhere(a_day(), "west")])
    everywhere = await held_unused(twice, hour(24), hour(0), HeldRule())
    west = await held_unused(twice, hour(24), hour(0), HeldRule(), scope=Scope("west", "lab"))
    await twice.close()
    assert [(each.cluster, each.name) for each in everywhere if each.unused] == [
        ("east", "notebook"),
        ("west", "notebook"),
    ]
    assert [each for each in everywhere if (each.cluster, each.name) == ("west", "notebook")] == west
