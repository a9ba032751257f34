"""Clocks never go back; virtual time moves only when told to."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.clock import (
    MILLISECOND,
    SECOND,
    Instant,
    ScaledClock,
    SystemClock,
    VirtualClock,
    monotonic,
    parse_rfc3339,
    rfc3339,
    rfc3339_micro,
    seconds,
)


@pytest.mark.parametrize(
    ("text", "micro"),
    [
        pytest.param("1970-01-01T00:00:00Z", 0, id="the epoch"),
        pytest.param("2026-01-02T03:04:05Z", 1767323045 * SECOND, id="whole seconds"),
        pytest.param("2026-01-02T03:04:05.000006Z", 1767323045 * SECOND + 6, id="microseconds"),
        pytest.param("2026-01-02T03:04:05.000006999Z", 1767323045 * SECOND + 6, id="nanoseconds are cut"),
        pytest.param("2026-01-02T04:04:05+01:00", 1767323045 * SECOND, id="another zone"),
        pytest.param("1969-12-31T23:59:59.5Z", -SECOND // 2, id="before the epoch"),
    ],
)
def test_a_time_is_read(text: str, micro: int) -> None:
    assert parse_rfc3339(text) == micro


@pytest.mark.parametrize(
    "text",
    ["", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z", "20260102T030405Z", "2026-13-02T03:04:05Z"],
)
def test_what_is_no_rfc_3339_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_rfc3339(text)


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31), timezones=st.just(UTC)))
def test_a_written_time_reads_back(moment: datetime) -> None:
    at = parse_rfc3339(moment.isoformat(timespec="microseconds"))
    assert parse_rfc3339(rfc3339_micro(at)) == at
    assert parse_rfc3339(rfc3339(at)) == at // SECOND * SECOND


def test_spans_are_whole_microseconds() -> None:
    assert seconds(1.5) == 1_500 * MILLISECOND


async def test_virtual_sleepers_wake_in_order_and_none_too_early() -> None:
    clock = VirtualClock(Instant(0))
    woken: list[str] = []

    async def sleep(name: str, at: int) -> None:
        await clock.sleep_until(Instant(at))
        woken.append(name)

    tasks = [asyncio.create_task(sleep(name, at)) for name, at in (("late", 30), ("b", 20), ("a", 10), ("c", 20))]
    tasks.append(asyncio.create_task(sleep("gone", 15)))
    await asyncio.sleep(0)
    tasks.pop().cancel()
    await asyncio.sleep(0)
    clock.advance_to(Instant(20))
    await asyncio.sleep(0)
    assert woken == ["a", "b", "c"]
    assert clock.now() == 20
    clock.advance_to(Instant(30))
    await asyncio.gather(*tasks)
    assert woken == ["a", "b", "c", "late"]
    await clock.sleep_until(Instant(5))


def test_virtual_time_does_not_go_back() -> None:
    clock = VirtualClock()
    assert rfc3339(clock.now()) == "2026-01-01T00:00:00Z"
    with pytest.raises(ValueError, match="time does not go back"):
        clock.advance_to(Instant(clock.now() - 1))


async def test_the_system_clock_sleeps_until_the_instant_and_not_less() -> None:
    clock = SystemClock()
    until = Instant(clock.now() + 2 * MILLISECOND)
    await clock.sleep_until(until)
    assert clock.now() >= until
    assert monotonic() <= monotonic()


async def test_a_scaled_clock_begins_where_it_is_told_and_runs_faster() -> None:
    base = VirtualClock(Instant(5 * SECOND))
    clock = ScaledClock(Instant(1000 * SECOND), 60, base)
    assert clock.now() == 1000 * SECOND
    sleeper = asyncio.create_task(clock.sleep_until(Instant(1060 * SECOND)))
    await asyncio.sleep(0)
    base.advance_to(Instant(6 * SECOND - 1))
    await asyncio.sleep(0)
    assert not sleeper.done()
    base.advance_to(Instant(6 * SECOND))
    await sleeper
    assert clock.now() == 1060 * SECOND
    await clock.sleep_until(Instant(0))


async def test_a_scaled_clock_sleeps_on_the_machine_s_time() -> None:
    clock = ScaledClock(Instant(0), 1000)
    await clock.sleep_until(Instant(2 * SECOND))
    assert clock.now() >= 2 * SECOND
