"""A cluster that fell silent counts up to its own last word, asked about alone or with others that go on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.ledger.questions.amounts import HOUR as GPU_HOUR
from bayplan.ledger.questions.asking import SILENCE, Scope, presents
from bayplan.ledger.questions.held import HeldRule, held_unused
from bayplan.ledger.questions.idle import idle, idle_at
from bayplan.ledger.questions.present import nodes_at, pods_at, workloads_at
from bayplan.ledger.questions.usage import Held, tally, usage
from bayplan.ledger.questions.windows import Window
from bayplan.ledger.rows import Row, StreamPosition
from bayplan.ledger.store.sql import SqlStore
from bayplan.model.clock import Instant
from tests.ledger.books import HOUR, a_day, elsewhere, hour, stream, written

LAST = {"east": hour(24), "west": hour(13)}


def two_clusters() -> list[Row]:
    """The same day; of west nothing was heard after one o'clock."""
    west = [row for row in elsewhere(a_day(), "west") if not isinstance(row, StreamPosition)]
    return [*a_day(), *west, stream("pods", LAST["west"], "west"), stream("nodes", hour(12), "west")]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    opened = await written(str(tmp_path / "ledger.db"), two_clusters())
    yield opened
    await opened.close()


async def test_every_cluster_has_its_own_present(store: SqlStore) -> None:
    late = Instant(hour(24) + SILENCE + 1)
    assert {name: each.now for name, each in (await presents(store, late)).items()} == LAST
    ours = Instant(hour(24) + SILENCE)
    found = await presents(store, ours)
    assert [(found[name].now, found[name].silent) for name in LAST] == [(ours, False), (hour(13), True)]


@pytest.mark.parametrize(
    ("since", "until", "hours"),
    [
        pytest.param(0, 24, 64 + 16 + 4 + 10, id="the whole day"),
        pytest.param(11, 14, 2 + 4 + 4, id="around its last word"),
        pytest.param(13, 24, 0, id="after its last word"),
        pytest.param(0, 12, 64 + 16 + 8, id="before its last word"),
    ],
)
async def test_a_silent_cluster_counts_up_to_its_last_word(store: SqlStore, since: int, until: int, hours: int) -> None:
    window = Window(hour(since), hour(until))
    whole = {line.key[0]: line.total for line in (await usage(store, ["cluster"], window, Scope(last=LAST))).lines}
    parts = {name: (await usage(store, ["cluster"], window, Scope(name, last=LAST))).total for name in LAST}
    assert {name: whole.get(name, 0) for name in LAST} == parts
    assert parts["west"] == hours * GPU_HOUR


async def test_idle_time_of_all_is_that_of_each_step_by_step(store: SqlStore) -> None:
    window = Window(hour(0), hour(24), HOUR)
    whole = await idle(store, window, Scope(last=LAST))
    parts = [line for name in LAST for line in (await idle(store, window, Scope(name, last=LAST))).lines]
    assert list(whole.lines) == parts
    west = next(line for line in whole.lines if (line.place.cluster, line.place.node) == ("west", "a100-1"))
    assert (sum(west.capacity), west.capacity[13:]) == (13 * 16 * GPU_HOUR, (0,) * 11)
    assert west.stranded[13:] == (0,) * 11


async def test_what_is_there_is_that_of_each_at_its_own_time(store: SqlStore) -> None:
    late, rule = hour(24), HeldRule()
    for asked in (idle_at, pods_at, workloads_at, nodes_at):
        whole = await asked(store, late, Scope(last=LAST))
        parts = [each for name in LAST for each in await asked(store, late, Scope(name, last=LAST))]
        assert repr(whole) == repr(parts)
        assert repr(parts) == repr([each for name in LAST for each in await asked(store, LAST[name], Scope(name))])
    holders = await held_unused(store, late, hour(0), rule, scope=Scope(last=LAST))
    measured = {(each.cluster, each.name): each.unmeasured for each in holders}
    assert (measured["east", "notebook"], measured["west", "notebook"]) == (1000, 2000)


times = st.integers(0, 100).map(Instant)
names = st.sampled_from(["a", "b", "c"])


@given(
    periods=st.lists(st.tuples(names, times, st.none() | times, st.integers(1, 9)), max_size=12),
    last=st.dictionaries(names, times),
    edges=st.tuples(times, times).filter(lambda pair: pair[0] < pair[1]),
    step=st.none() | st.integers(1, 20),
)
def test_the_whole_is_the_sum_of_the_parts_for_any_clusters_and_any_window(
    periods: list[tuple[str, Instant, Instant | None, int]],
    last: Mapping[str, Instant],
    edges: tuple[Instant, Instant],
    step: int | None,
) -> None:
    def sums(cluster: str | None, window: Window, scope: Scope) -> dict[tuple[str, ...], tuple[int, ...]]:
        held = [
            Held(gpus, start, end, name, "", "", "n", "", "p", "", "{}")
            for name, start, end, gpus in periods
            if cluster in (None, name)
        ]
        return {line.key: line.amounts for line in tally(held, ["cluster"], window, scope=scope).lines}

    window, scope = Window(*edges, step), Scope(last=last)
    assert sums(None, window, scope) == {
        key: amounts for name in "abc" for key, amounts in sums(name, window, scope).items()
    }
    for name, at in last.items():
        if edges[0] < at <= edges[1]:  # as if the window ended with its last word
            cut = sums(name, Window(edges[0], at), Scope())
            assert {key: sum(amounts) for key, amounts in sums(name, window, scope).items()} == {
                key: sum(amounts) for key, amounts in cut.items()
            }
