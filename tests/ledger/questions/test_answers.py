"""The questions, asked of a day that is known by heart, and each answer's rules by themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.ledger.questions import gone, pending
from bayplan.ledger.questions.amounts import HOUR as GPU_HOUR
from bayplan.ledger.questions.asking import (
    SILENCE,
    NoLedgerError,
    Scope,
    UnknownClusterError,
    clusters,
    open_ledger,
    presents,
    require_cluster,
)
from bayplan.ledger.questions.idle import idle, idle_at
from bayplan.ledger.questions.naming import AmbiguousNameError, UnknownNameError, find_pod, find_workload
from bayplan.ledger.questions.present import events_between, nodes_at, pods_at, workloads_at
from bayplan.ledger.questions.stranded import Beside
from bayplan.ledger.questions.timeline import Doing, segments, timeline
from bayplan.ledger.questions.usage import usage
from bayplan.ledger.questions.windows import Window
from bayplan.ledger.rows import Disruption
from bayplan.ledger.store.sql import SqlStore
from bayplan.model.clock import Instant
from tests.ledger.books import (
    CLUSTER,
    HOUR,
    a_day,
    elsewhere,
    event,
    held,
    hour,
    node,
    pod,
    ran,
    waited,
    workload,
    written,
)

DAY = Window(hour(0), hour(24))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    opened = await written(str(tmp_path / "ledger.db"), a_day())
    yield opened
    await opened.close()


@pytest.fixture
async def twice(tmp_path: Path) -> AsyncIterator[SqlStore]:
    """The same day in two clusters."""
    opened = await written(str(tmp_path / "two.db"), [*a_day(), *elsewhere(a_day(), "west")])
    yield opened
    await opened.close()


# --- at a time


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        pytest.param(hour(0.5), [], id="before anything was seen"),
        pytest.param(hour(1), [("trainer-0", "Pending", "")], id="at the instant of a version, that version"),
        pytest.param(hour(2.2), [("trainer-0", "Pending", "a100-1")], id="bound, and not running yet"),
        pytest.param(hour(5), [("serve-0", "Running", "a100-1"), ("trainer-0", "Running", "a100-1")], id="two run"),
        pytest.param(
            hour(13), [("notebook", "Running", "h100-1"), ("serve-1", "Running", "a100-1")], id="two are gone"
        ),
    ],
)
async def test_pods_are_rebuilt_as_they_were(store: SqlStore, at: Instant, shown: list[tuple[str, str, str]]) -> None:
    docs = [each.object.doc() for each in await pods_at(store, at)]
    assert [(doc["metadata"]["name"], doc["status"]["phase"], doc["spec"].get("nodeName", "")) for doc in docs] == shown


async def test_a_namespace_narrows(store: SqlStore) -> None:
    assert [each.object.name for each in await pods_at(store, hour(5), Scope(namespace="prod"))] == ["serve-0"]


async def test_a_workload_of_the_past_is_judged_by_its_pods_then(store: SqlStore) -> None:
    waiting, running = await workloads_at(store, hour(1.5)), await workloads_at(store, hour(5))
    assert [(each.status, each.pods, each.gpus) for each in (*waiting, *running)] == [
        ("Pending", 1, 0),
        ("Running", 1, 8000),
    ]
    assert await workloads_at(store, hour(10)) == []


async def test_a_node_of_the_past_is_told_as_far_as_it_is_known(store: SqlStore) -> None:
    (early,) = await nodes_at(store, hour(5))
    assert (early.row.name, early.capacity, early.allocated) == ("a100-1", 16_000, 10_000)
    young = next(each for each in await nodes_at(store, hour(6.5)) if each.row.name == "h100-1")
    late = next(each for each in await nodes_at(store, hour(9)) if each.row.name == "h100-1")
    assert (young.hurdle, late.hurdle) == ("not ready", "cordoned")


async def test_a_node_whose_room_is_not_kept_is_told_by_its_latest_state(tmp_path: Path) -> None:
    plain = node("cpu-1", "", 0, schedulable=False, updated_at=hour(7))
    store = await written(str(tmp_path / "ledger.db"), [plain])
    found = [each.hurdle for at in (6.5, 9) for each in await nodes_at(store, hour(at))]
    assert found == [None, "cordoned"]
    await store.close()


async def test_events_come_in_order_and_from_the_window_alone(store: SqlStore) -> None:
    found = await events_between(store, hour(1), hour(2.5))
    assert [each.event.event_type for each in found] == ["Condition", "Bound", "Phase"]
    assert {each.pod for each in found} == {"trainer-0"}


# --- sums


@pytest.mark.parametrize(
    ("by", "lines"),
    [
        pytest.param("namespace", {"vision": 64, "prod": 64, "lab": 32}, id="by namespace"),
        pytest.param("user", {"alice": 64, "bob": 64, "unknown": 32}, id="by user"),
        pytest.param("model", {"A100": 128, "H100": 32}, id="by model"),
        pytest.param("node", {"a100-1": 128, "h100-1": 32}, id="by node"),
        pytest.param("label:team", {"<none>": 96, "vision": 64}, id="by a label"),
        pytest.param("cluster", {CLUSTER: 160}, id="by cluster"),
        pytest.param(
            "workload",
            {"vision/Job/trainer": 64, "prod/Pod/serve-1": 48, "lab/Pod/notebook": 32, "prod/Pod/serve-0": 16},
            id="by workload; a pod that nobody made is its own",
        ),
    ],
)
async def test_gpu_hours_of_the_day(store: SqlStore, by: str, lines: dict[str, int]) -> None:
    found = await usage(store, [by], DAY)
    assert {line.key[0]: line.total for line in found.lines} == {key: n * GPU_HOUR for key, n in lines.items()}


async def test_every_question_takes_a_cluster_or_all_and_sums_equal_the_parts(twice: SqlStore) -> None:
    assert await clusters(twice) == ["east", "west"]
    both = await usage(twice, ["user"], DAY)
    parts = [await usage(twice, ["user"], DAY, Scope(name)) for name in ("east", "west")]
    assert both.total == sum(part.total for part in parts) == 320 * GPU_HOUR
    places = [await idle_at(twice, hour(23), scope) for scope in (Scope(), Scope("east"), Scope("west"))]
    assert [sum(each.idle for each in part) for part in places] == [36_000, 18_000, 18_000]
    assert [len(await pods_at(twice, hour(5), scope)) for scope in (Scope(), Scope("west"))] == [4, 2]


async def test_only_one_namespace_is_counted(store: SqlStore) -> None:
    assert (await usage(store, ["user"], DAY, Scope(CLUSTER, "prod"))).total == 64 * GPU_HOUR


async def test_idle_gpus_are_stranded_by_the_state_of_their_node_and_by_what_is_left_beside_them(
    store: SqlStore,
) -> None:
    now = {each.place.node: (each.idle, each.stranded, each.why) for each in await idle_at(store, hour(23))}
    assert now == {"a100-1": (12_000, 3000, "no CPU"), "h100-1": (6000, 6000, "cordoned")}
    more = {each.place.node: each.stranded for each in await idle_at(store, hour(23), beside=Beside(cpu=4000))}
    assert more == {"a100-1": 10_000, "h100-1": 6000}
    before = {each.place.node: (each.stranded, each.why) for each in await idle_at(store, hour(6.5))}
    assert before == {"a100-1": (0, ""), "h100-1": (8000, "not ready")}
    lines = (await idle(store, Window(hour(0), hour(24), 12 * HOUR))).lines
    assert {line.place.node: line.stranded for line in lines} == {
        "a100-1": (0, 36 * GPU_HOUR),
        "h100-1": (40 * GPU_HOUR, 72 * GPU_HOUR),
    }


# --- why


async def test_the_history_of_waiting(store: SqlStore) -> None:
    why = await pending.why_pending(store, await find_pod(store, "trainer-0"), hour(24))
    assert [(each.reason, (each.end or 0) - each.start) for each in why.waits] == [
        ("", HOUR // 4),
        ("Unschedulable", 3 * HOUR // 4),
    ]
    assert why.lasted == HOUR


@pytest.mark.parametrize(
    ("subject", "waits", "sentence"),
    [
        pytest.param(
            pod("p", bound_at=None),
            [waited("p", hour(0), None, "Unschedulable", "no room")],
            "vision/p has been waiting for 120m: no room",
            id="it waits",
        ),
        pytest.param(
            pod("p", bound_at=None),
            [waited("p", hour(0), None)],
            "vision/p has been waiting for 120m: nobody has tried to place it yet",
            id="nobody has tried",
        ),
        pytest.param(
            pod("p", end_at=hour(1)),
            [waited("p", hour(0), hour(1), "Unschedulable", "no room")],
            "vision/p waited 60m and never got a place: it ended at 2026-01-01T01:00:00Z.",
            id="it never got a place",
        ),
        pytest.param(
            workload("train"),
            [waited("train-job", hour(0), hour(1), "QuotaExceeded", "exceeded quota: gpus")],
            "vision/train (Job) could not make its pods for 60m: exceeded quota: gpus",
            id="a quota forbids a workload's pods",
        ),
        pytest.param(
            workload("train"),
            [],
            "vision/train (Job) has no GPU pods that the ledger knows, and no quota kept it from making them.",
            id="nothing is known of a workload's pods",
        ),
    ],
)
def test_why_pending_in_a_sentence(subject: Any, waits: list[Any], sentence: str) -> None:
    assert pending.told(subject, waits, hour(2)).sentence == sentence


@pytest.mark.parametrize(
    ("quota", "bound", "sentence"),
    [
        pytest.param([], False, "has 1 of 2 GPU pods waiting, up to 60m: no room", id="a pod waits"),
        pytest.param([], True, "waits for nothing; the longest wait of its 2 GPU pod(s) was 60m.", id="none waits"),
        pytest.param(
            [waited("train-job", hour(0), hour(1), "QuotaExceeded", "exceeded quota: gpus")],
            False,
            "could not make its pods for 60m: exceeded quota: gpus; has 1 of 2 GPU pods waiting, up to 60m: no room",
            id="a quota forbade some, and one waits",
        ),
    ],
)
def test_why_the_pods_of_a_workload_wait(quota: list[Any], bound: bool, sentence: str) -> None:
    late = pod("late", bound_at=hour(1) if bound else None)
    waits = [waited("late", hour(1), hour(2) if bound else None, "Unschedulable", "no room")]
    pods = (pending.told(late, waits, hour(2)), pending.told(pod("quick", bound_at=hour(0)), [], hour(2)))
    why = msgspec.structs.replace(pending.told(workload("train"), quota, hour(2)), pods=pods)
    assert why.sentence == f"vision/train (Job) {sentence}"


def _disruption(rule: str, **more: Any) -> Disruption:
    return Disruption(cluster=CLUSTER, pod_uid="p", rule=rule, at=hour(1), **more)


_GONE = "its object disappeared at 2026-01-01T02:00:00Z"


@pytest.mark.parametrize(
    ("row", "disruptions", "events", "sentence"),
    [
        pytest.param(
            pod("p", gone_at=hour(2)),
            [_disruption("PreemptionByScheduler", by="sched", message="m"), _disruption("Preempted", for_pod="a/b")],
            [],
            f"was preempted by sched to make room for a/b at 2026-01-01T01:00:00Z (PreemptionByScheduler: m); {_GONE}",
            id="preempted: the condition says the rule, the Event for whom",
        ),
        pytest.param(
            pod("p", gone_at=hour(2)),
            [_disruption("EvictionByEvictionAPI")],
            [],
            "was evicted through the eviction API (a drain, for one) at 2026-01-01T01:00:00Z "
            f"(EvictionByEvictionAPI); {_GONE}",
            id="drained: the API does not say who",
        ),
        pytest.param(
            pod("p", phase="Failed", end_at=hour(1)),
            [],
            [event("p", "Exit", hour(1), subject="main", exit_code=137, reason="OOMKilled")],
            "failed at 2026-01-01T01:00:00Z: container main exited with 137, OOMKilled; its object is still there",
            id="failed, with the exit that did it",
        ),
        pytest.param(
            pod("p", phase="Failed", reason="Evicted", end_at=hour(1), gone_at=hour(2)),
            [],
            [],
            f"failed at 2026-01-01T01:00:00Z (Evicted); {_GONE}",
            id="failed, and no container says why",
        ),
        pytest.param(
            pod("p", phase="Succeeded", end_at=hour(1), gone_at=hour(2)),
            [],
            [],
            f"finished its work at 2026-01-01T01:00:00Z; {_GONE}",
            id="finished",
        ),
        pytest.param(
            pod("p", gone_at=hour(2)),
            [],
            [event("p", "Deleting", hour(1))],
            f"was deleted by request at 2026-01-01T01:00:00Z, while it was Running; {_GONE}",
            id="deleted by request",
        ),
        pytest.param(
            pod("p", gone_at=hour(2), end_at=hour(2), end_inferred=True, end_after=hour(1)),
            [],
            [],
            "was Running, and nobody said why it went; "
            "it disappeared unseen between 2026-01-01T01:00:00Z and 2026-01-01T02:00:00Z",
            id="gone while nobody looked",
        ),
        pytest.param(pod("p", node_name="n0"), [], [], "is not gone: it is Running on n0", id="not gone at all"),
    ],
)
def test_why_gone_in_a_sentence(row: Any, disruptions: list[Any], events: list[Any], sentence: str) -> None:
    assert gone.told(row, disruptions, events).sentence == f"vision/p {sentence}."


# --- names


async def test_a_name_means_its_latest_holder(tmp_path: Path) -> None:
    rows = [pod("web-0", uid="old", gone_at=hour(1)), pod("web-0", uid="new", created_at=hour(1))]
    store = await written(str(tmp_path / "ledger.db"), [*rows])
    assert [(await find_pod(store, word)).uid for word in ("web-0", "vision/web-0", "pod/web-0", "old")] == [
        "new",
        "new",
        "new",
        "old",
    ]
    await store.close()


async def test_a_name_in_several_places_is_not_guessed_at(twice: SqlStore) -> None:
    with pytest.raises(AmbiguousNameError, match="east vision, west vision"):
        await find_pod(twice, "trainer-0")
    assert (await find_pod(twice, "trainer-0", Scope("west"))).cluster == "west"


async def test_a_workload_is_found_by_kind_and_name_and_a_pod_stands_for_itself(store: SqlStore) -> None:
    found = [await find_workload(store, word) for word in ("trainer", "job/trainer", "vision/trainer", "notebook")]
    assert [each.uid for each in found] == ["trainer-job", "trainer-job", "trainer-job", "notebook"]
    with pytest.raises(UnknownNameError, match="no such workload or GPU pod"):
        await find_workload(store, "deployment/trainer")


# --- timeline


def test_a_life_is_one_piece_after_another() -> None:
    found = segments(
        [waited("p", hour(0), hour(1)), waited("p", hour(1), hour(2))],
        [held("p", hour(2), hour(8))],
        [ran("p", hour(3), hour(5)), ran("p", hour(6))],
        hour(7),
    )
    assert [(each.doing, each.start, each.end) for each in found] == [
        (Doing.WAITING, hour(0), hour(2)),
        (Doing.HOLDING, hour(2), hour(3)),
        (Doing.RUNNING, hour(3), hour(5)),
        (Doing.HOLDING, hour(5), hour(6)),
        (Doing.RUNNING, hour(6), hour(7)),
    ]


async def test_a_workload_s_timeline_has_its_pods_and_their_events(store: SqlStore) -> None:
    found = await timeline(store, await find_workload(store, "trainer"), hour(24))
    assert (found.start, found.end) == (hour(1), hour(11))
    assert [(lane.pod.name, len(lane.segments)) for lane in found.lanes] == [("trainer-0", 3)]
    assert [each.event.event_type for each in found.events][-1] == "Gone"


# --- the time, the place


async def test_the_present_is_ours_while_the_ledger_is_written(store: SqlStore) -> None:
    ours = Instant(hour(24) + SILENCE)
    assert (await presents(store, ours))[CLUSTER].now == ours
    late = (await presents(store, Instant(ours + 1)))[CLUSTER]
    assert (late.now, late.silent) == (hour(24), True)


async def test_a_cluster_without_a_last_word_has_our_present(tmp_path: Path) -> None:
    store = await written(str(tmp_path / "ledger.db"), [pod("a")])
    time = (await presents(store, hour(1)))[CLUSTER]
    assert (time.now, time.last_word, time.silent) == (hour(1), None, False)
    await store.close()


async def test_what_is_not_there_is_said_and_not_made(store: SqlStore, tmp_path: Path) -> None:
    with pytest.raises(UnknownClusterError, match="north"):
        await require_cluster(store, "north")
    with pytest.raises(NoLedgerError, match="no such file"):
        await open_ledger(f"sqlite:///{tmp_path / 'none.db'}")
    assert not (tmp_path / "none.db").exists()
