"""A workload waits where any of those below it does, whether they ever made a pod or not; each is asked for by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bayplan.ledger.questions import asking
from bayplan.ledger.questions.below import makers, pods_below
from bayplan.ledger.questions.pending import why_pending
from bayplan.ledger.questions.timeline import timeline
from bayplan.ledger.rows import GpuWorkload, PendingPeriod, Row, WorkloadPodReference
from bayplan.ledger.store import reading
from bayplan.ledger.store.reading import TABLES, rows_on
from bayplan.model.clock import Instant
from tests.ledger.books import CLUSTER, hour, pod, waited, workload, written

NOW = hour(3)
WEB = workload("web", uid="web", kind="Deployment")


def below(name: str, parent: str, kind: str = "ReplicaSet", **more: Any) -> GpuWorkload:
    return workload(name, uid=name, kind=kind, parent_uid=parent, **more)


def refused(uid: str, start: Instant, end: Instant | None = None) -> PendingPeriod:
    return waited(uid, start, end or start, "QuotaExceeded", "exceeded quota: team, requested: nvidia.com/gpu=8")


def link(uid: str) -> WorkloadPodReference:
    return WorkloadPodReference(cluster=CLUSTER, workload_uid="web", pod_uid=uid, depth=2, created_at=hour(0))


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        pytest.param([below("set", "web"), refused("set", hour(2.9))], (2.9, None), id="one below it, without a pod"),
        pytest.param(
            [below("set", "web"), below("job", "set"), refused("job", hour(2.9))], (2.9, None), id="two steps below it"
        ),
        pytest.param(
            [below("set", "web", end_at=hour(2)), refused("set", hour(1), hour(1.9))],
            (1, 2),
            id="one that is no more, up to its end",
        ),
        pytest.param(
            [
                *(below("old", "web"), pod("a", owner_uid="old", created_at=hour(1)), link("a")),
                *(below("new", "web"), refused("new", hour(2.9))),
            ],
            (2.9, None),
            id="one without a pod beside one with",
        ),
        pytest.param(
            [pod("a", owner_uid="set", created_at=hour(2)), link("a"), refused("set", hour(1), hour(1.9))],
            (1, 2),
            id="one that is known by its pods alone",
        ),
        pytest.param(
            [below("set", "web"), below("web", "set"), refused("set", hour(2.9))], (2.9, None), id="owners in a ring"
        ),
    ],
)
async def test_a_workload_waits_while_one_below_it_is_refused(
    tmp_path: Path, rows: list[Row], found: tuple[float, float | None]
) -> None:
    store = await written(str(tmp_path / "ledger.db"), [WEB, *rows])
    start, end = hour(found[0]), None if found[1] is None else hour(found[1])
    why = await why_pending(store, WEB, NOW)
    assert [(each.start, each.end) for each in why.waits] == [(start, end)]
    assert "could not make its pods" in why.sentence
    told = await timeline(store, WEB, NOW)
    assert [(each.start, each.end) for each in told.refused] == [(start, end or NOW)]
    await store.close()


async def test_another_s_refusal_is_not_its_own(tmp_path: Path) -> None:
    rows = [WEB, below("set", "web"), below("other-set", "other"), refused("other-set", hour(2.9))]
    store = await written(str(tmp_path / "ledger.db"), rows)
    assert "no quota kept it" in (await why_pending(store, WEB, NOW)).sentence
    assert await makers(store, WEB, ()) == {"web": None, "set": None}
    await store.close()


async def test_who_is_below_is_asked_for_by_uid_and_not_all_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[sa.Select[Any]] = []

    async def noted(connection: AsyncConnection, statement: sa.Select[Any]) -> list[Any]:
        asked.append(statement)
        return await rows_on(connection, statement)

    def of_waits() -> Sequence[str]:
        table = TABLES[PendingPeriod]
        return [str(each).upper() for each in asked if each.get_final_froms() == [table]]

    names = [f"pod-{number}" for number in range(5)]
    rows: list[Row] = [WEB, below("set", "web"), refused("set", hour(1))]
    for name in names:
        made = pod(name, owner_uid="set", created_at=hour(2), bound_at=None)
        rows += [made, link(name), waited(name, hour(2), None, "Unschedulable", "no room")]
    store = await written(str(tmp_path / "ledger.db"), rows)
    whole = await why_pending(store, WEB, NOW), await timeline(store, WEB, NOW)
    monkeypatch.setattr(asking, "AT_ONCE", 2)
    monkeypatch.setattr(reading, "rows_on", noted)
    assert (await why_pending(store, WEB, NOW), await timeline(store, WEB, NOW)) == whole
    assert [each.subject.name for each in whole[0].pods] == names
    assert len(of_waits()) == 2 * (3 + 1)  # five pods, two who may have made them
    assert [each for each in of_waits() if each.count("SELECT") > 1 or " OR " in each] == []
    assert [each.uid for each in await pods_below(store, WEB, hour(1.5))] == []
    await store.close()
