"""A quota's refusals are instants; between them a workload waits, until its next pod is made or it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.cli.ledger.timeline import rendered
from bayplan.cli.ledger.why import _rendered, _waits
from bayplan.ledger.questions.pending import why_pending
from bayplan.ledger.questions.refusals import Maker, joined, waits
from bayplan.ledger.questions.timeline import Doing, timeline
from bayplan.ledger.rows import PendingPeriod, Row, WorkloadPodReference
from bayplan.model.clock import SECOND, Instant
from tests.ledger.books import CLUSTER, MIDNIGHT, held, pod, waited, workload, written

MINUTE = 60 * SECOND


def minute(number: float) -> Instant:
    return Instant(MIDNIGHT + round(number * MINUTE))


def refused(first: float, last: float | None = None, quota: str = "team", pod: str = "a") -> PendingPeriod:
    """An Event of a refusal at that minute; of several until `last`."""
    words = f'Error creating: pods "{pod}" is forbidden: exceeded quota: {quota}, requested: requests.nvidia.com/gpu=8'
    found = waited("train-job", minute(first), minute(first if last is None else last), "QuotaExceeded", words)
    return msgspec.structs.replace(found, resource_version=round(100 * (first if last is None else last)))


@pytest.mark.parametrize(
    ("periods", "made", "ended", "found"),
    [
        pytest.param([refused(0), refused(1), refused(17)], [20], None, [(0, 20)], id="until its next pod is made"),
        pytest.param([refused(0), refused(1), refused(17)], [], 21, [(0, 21)], id="until it ends"),
        pytest.param([refused(90), refused(91)], [], None, [(90, None)], id="it still waits"),
        pytest.param([refused(0), refused(4)], [2, 6], None, [(0, 2), (4, 6)], id="its next refusal is another wait"),
        pytest.param([refused(0), refused(2), refused(9)], [2, 12], None, [(0, 12)], id="refused again as a pod comes"),
        pytest.param([refused(0, 10), refused(3)], [15], None, [(0, 15)], id="of many Events one, and one beside it"),
        pytest.param([refused(0, 40)], [45], None, [(0, 45)], id="an Event that is counted up goes on between"),
        pytest.param([refused(3), refused(0), refused(1)], [4], None, [(0, 4)], id="told in another order"),
        pytest.param([refused(0), refused(5)], [5], None, [(0, 5)], id="a pod within the second of the last refusal"),
        pytest.param([refused(5), refused(30)], [5, 6, 31], None, [(30, 31)], id="no time at all is not told of"),
        pytest.param([refused(5)], [5], None, [(5, 5)], id="no time at all, and nothing else"),
        pytest.param([refused(0), refused(1)], [90], None, [(0, 1)], id="after a silence nobody wanted it any more"),
        pytest.param([refused(0), refused(1)], [], None, [(0, 1)], id="a silence that lasts"),
        pytest.param([refused(10)], [], 5, [(10, 10)], id="told after its end"),
        pytest.param(
            [refused(0), refused(5, quota="gpus"), refused(8)],
            [10],
            None,
            [(0, 5), (5, 8), (8, 10)],
            id="one quota after another",
        ),
        pytest.param(
            [refused(0, 10), refused(5, quota="gpus")], [12], None, [(0, 5), (5, 12)], id="another quota while one is"
        ),
    ],
)
def test_a_workload_waits_from_a_refusal_to_its_next_pod(
    periods: list[PendingPeriod], made: list[int], ended: int | None, found: list[tuple[int, int | None]]
) -> None:
    maker = Maker(tuple(map(minute, made)), None if ended is None else minute(ended))
    answer = joined(waits(periods, maker, minute(100)))
    expected = [(minute(start), None if end is None else minute(end)) for start, end in found]
    assert [(each.start_at, each.end_at) for each in answer] == expected


def test_the_latest_words_stand() -> None:
    found = joined(waits([refused(0, 9, pod="c"), refused(1, pod="b")], Maker((minute(10),)), minute(100)))
    assert ['pods "c"' in each.message for each in found] == [True]


def _link(above: str, uid: str, depth: int) -> Row:
    return WorkloadPodReference(cluster=CLUSTER, workload_uid=above, pod_uid=uid, depth=depth, created_at=minute(0))


def _story(owner: str = "train-job", **more: Any) -> list[Row]:
    """Refused from minute 10 on; its pods come at minutes 40 and 60, and the second one waits for five."""
    pods = [
        pod(
            f"train-{number}",
            owner_uid=owner,
            created_at=minute(made),
            bound_at=minute(bound),
            end_at=minute(90),
            node_name="n",
        )
        for number, made, bound in ((0, 40, 40), (1, 60, 65))
    ]
    refusals = [refused(10), refused(10.5), refused(27, 38), refused(40), refused(55)]
    return [
        workload("train", created_at=minute(9), **more),
        *pods,
        *(_link("train-job", each.uid, 1 if owner == "train-job" else 2) for each in pods),
        *(msgspec.structs.replace(each, pod_uid=owner) for each in refusals),
        waited("train-1", minute(60), minute(65), "Unschedulable", "no room"),
        held("train-0", minute(40), minute(90)),
        held("train-1", minute(65), minute(90)),
    ]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(_story(), id="of its own"),
        pytest.param(
            [*_story("train-set", kind="Deployment"), workload("set", uid="train-set", parent_uid="train-job")],
            id="of the one below it that makes its pods",
        ),
    ],
)
async def test_the_wait_is_told_whole_and_in_order_of_time(tmp_path: Path, rows: list[Row]) -> None:
    store = await written(str(tmp_path / "ledger.db"), rows)
    why = await why_pending(store, workload("train"), minute(100))
    assert [(each.start, each.end) for each in why.waits] == [(minute(10), minute(60))]
    assert "could not make its pods for 50m: Error creating" in why.sentence
    table = [line.split()[:2] for line in _rendered(why, None, _waits).splitlines()[3:]]
    assert table == [["train", "2026-01-01T00:10:00Z"], ["train-1", "2026-01-01T01:00:00Z"]]
    await store.close()


async def test_a_timeline_begins_with_the_first_refusal(tmp_path: Path) -> None:
    store = await written(str(tmp_path / "ledger.db"), _story())
    found = await timeline(store, workload("train"), minute(100))
    assert (found.start, found.end) == (minute(10), minute(90))
    assert [(each.doing, each.start, each.end) for each in found.refused] == [(Doing.WAITING, minute(10), minute(60))]
    assert rendered(found, None, 59).splitlines()[3:6] == [
        f"train    {'░' * 25}{' ' * 15}  no quota",
        f"train-0  {' ' * 15}{'▒' * 25}  8 GPU",
        f"train-1  {' ' * 25}{'░' * 2}{'▒' * 13}  8 GPU",
    ]
    await store.close()


async def test_a_workload_that_never_made_a_pod_has_a_timeline_too(tmp_path: Path) -> None:
    store = await written(str(tmp_path / "ledger.db"), [workload("train"), refused(10), refused(20)])
    found = await timeline(store, workload("train"), minute(30))
    assert (found.start, found.end) == (minute(10), minute(30))
    assert "no quota" in rendered(found, None, 60)
    await store.close()
