"""The same day gives the same answers on every database."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from bayplan.ledger.questions.asking import SILENCE, Scope, clusters, open_ledger, presents
from bayplan.ledger.questions.doctor.examine import Examination, examine_database
from bayplan.ledger.questions.gone import why_gone
from bayplan.ledger.questions.held import HeldRule, held_unused
from bayplan.ledger.questions.idle import idle, idle_at
from bayplan.ledger.questions.naming import find_pod, find_workload
from bayplan.ledger.questions.pending import why_pending
from bayplan.ledger.questions.present import events_between, nodes_at, pods_at, workloads_at
from bayplan.ledger.questions.timeline import timeline
from bayplan.ledger.questions.usage import DIMENSIONS, usage
from bayplan.ledger.questions.windows import Window
from bayplan.ledger.rows import Row, Rows
from bayplan.ledger.store.sql import SqlStore
from bayplan.model.clock import Instant
from tests.ledger.books import HOUR, a_day, elsewhere, hour
from tests.ledger.databases import empty_database, prepared

__all__ = ["empty_database"]


async def _filled(url: str, rows: list[Row]) -> SqlStore:
    store = await open_ledger(await prepared(url))
    batch = Rows()
    batch.add(*rows)
    await store.commit(batch)
    return store


async def _answers(store: SqlStore) -> list[Any]:
    window = Window(hour(0), hour(24), HOUR)
    by = [each.replace("KEY", "team") for each in DIMENSIONS]
    west = Scope("west")
    return [
        await clusters(store),
        await presents(store, Instant(hour(24) + SILENCE + 1)),
        [[each.object.doc() for each in await pods_at(store, hour(number))] for number in (1, 5, 13)],
        await workloads_at(store, hour(5)),
        await nodes_at(store, hour(9)),
        await events_between(store, hour(0), hour(24), Scope(namespace="vision")),
        [await usage(store, [each], window, scope) for each in by for scope in (Scope(), west)],
        await idle_at(store, hour(23)),
        await idle(store, window, west),
        await held_unused(store, hour(24), hour(0), HeldRule(), {"H100": Decimal("3.5")}),
        await why_pending(store, await find_pod(store, "trainer-0", west), hour(24)),
        await why_gone(store, await find_pod(store, "serve-0", west)),
        await timeline(store, await find_workload(store, "job/trainer", west), hour(24)),
        await examine_database(store, Examination(now=hour(24))),
    ]


async def test_answers_do_not_depend_on_the_database(empty_database: str, tmp_path: Path) -> None:
    rows = [*a_day(), *elsewhere(a_day(), "west")]
    expected = await _filled(f"sqlite:///{tmp_path / 'ledger.db'}", rows)
    store = await _filled(empty_database, rows)
    for ours, theirs in zip(await _answers(store), await _answers(expected), strict=True):
        assert ours == theirs
    await store.close()
    await expected.close()
