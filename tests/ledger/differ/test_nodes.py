"""What nodes offered, and since when; who drove pods away; what a quota kept from being."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.objects import Object
from bayplan.ledger.differ import disruptions, nodes, quotas
from bayplan.ledger.rows import Disruption, GpuNode, NodePeriod
from tests.ledger.differ.lives import GPU, VENDORS, Ledger, Watcher, at, condition, event, node, pod, seen, spans

H100 = {"nvidia.com/gpu.product": "H100"}
EIGHT = {GPU: "8", "cpu": "96"}


def followed(
    *versions: tuple[float, Object], gone: float | None = None, restarts: bool = False, **known: Any
) -> Ledger:
    ledger = Ledger()
    state: nodes.KnownNode | None = None
    for second, version in versions:
        state, rows = nodes.changed(state, version, seen(second))
        ledger.take(rows)
        if restarts:
            state = nodes.remember(ledger.remembered())["n1"]
    if gone is not None:
        assert state is not None
        ledger.take(nodes.gone(state, seen(gone, **known)))
    return ledger


@pytest.mark.parametrize("restarts", [False, True], ids=["in one go", "with restarts"])
@pytest.mark.parametrize(
    ("story", "expected"),
    [
        pytest.param([(9, node(1, EIGHT, H100))], [(0, None, 8000, "H100")], id="devices are there since the node is"),
        pytest.param(
            [(1, node(1, {"cpu": "96"})), (30, node(2, EIGHT, H100))],
            [(30, None, 8000, "H100")],
            id="devices that come later come later",
        ),
        pytest.param(
            [(1, node(1, EIGHT, H100)), (30, node(2, {GPU: "7"}, H100))],
            [(0, 30, 8000, "H100"), (30, None, 7000, "H100")],
            id="another number is another period",
        ),
        pytest.param(
            [(1, node(1, EIGHT, H100)), (30, node(2, {"cpu": "96"}, H100))], [(0, 30, 8000, "H100")], id="none ends it"
        ),
        pytest.param(
            [(1, node(1, EIGHT)), (30, node(2, EIGHT, H100))],
            [(0, None, 8000, "H100")],
            id="a name that comes later was right before",
        ),
        pytest.param(
            [(1, node(1, EIGHT, H100)), (30, node(2, EIGHT, {"nvidia.com/gpu.product": "H200"}))],
            [(0, 30, 8000, "H100"), (30, None, 8000, "H200")],
            id="another model is another period",
        ),
        pytest.param(
            [(1, node(1, EIGHT, H100)), (30, node(2, EIGHT, H100, ready="Unknown", unschedulable=True))],
            [(0, None, 8000, "H100")],
            id="a node that is lost and cordoned still has its devices",
        ),
        pytest.param(
            [(1, node(5, EIGHT, H100)), (30, node(4, {GPU: "7"}, H100))],
            [(0, None, 8000, "H100")],
            id="an older version says nothing",
        ),
    ],
)
def test_node_periods(story: list[Any], expected: list[Any], restarts: bool) -> None:
    assert spans(followed(*story, restarts=restarts).all(NodePeriod), "gpus", "gpu_model") == expected


def test_a_heartbeat_writes_nothing() -> None:
    known, _ = nodes.changed(None, node(1, EIGHT, H100), seen(1))
    known, rows = nodes.changed(known, node(2, EIGHT, H100), seen(11))
    assert not len(rows)
    assert known.resource_version == 2


def test_the_history_of_a_node_survives_it() -> None:
    ledger = followed((1, node(1, EIGHT, H100)), gone=50)
    assert [(row.end_at, row.end_inferred, row.gpu_model) for row in ledger.all(GpuNode)] == [(at(50), False, "H100")]
    assert spans(ledger.all(NodePeriod)) == [(0, 50)]


def test_a_node_that_went_unseen_ended_between_bounds() -> None:
    ledger = followed((1, node(1, EIGHT, H100)), gone=50, inferred_after=at(20))
    for row in (*ledger.all(GpuNode), *ledger.all(NodePeriod)):
        assert (row.end_at, row.end_inferred, row.end_after) == (at(50), True, at(20))


def test_a_node_of_two_vendors_has_a_model_of_each() -> None:
    labels = {**H100, "gpu.intel.com/product": "Max_1100"}
    known, rows = nodes.changed(None, node(1, {GPU: "2", "gpu.intel.com/xe": "1"}, labels), seen(1))
    assert {row.resource: row.gpu_model for row in rows if isinstance(row, NodePeriod)} == {
        GPU: "H100",
        "gpu.intel.com/xe": "Max_1100",
    }
    assert known.model_of("gpu.intel.com/xe", VENDORS) == "Max_1100"


SCHEDULER = "default-scheduler: preempting to accommodate a higher priority pod"


@pytest.mark.parametrize(
    ("reason", "message", "by"),
    [
        pytest.param("PreemptionByScheduler", SCHEDULER, "default-scheduler", id="the scheduler, by its own name"),
        pytest.param("DeletionByTaintManager", "Taint manager: x", "taint-eviction-controller", id="a taint"),
        pytest.param("EvictionByEvictionAPI", "Eviction API: evicting", "", id="the API does not say who called it"),
        pytest.param("SomethingNew", "", "", id="a rule of tomorrow"),
    ],
)
def test_a_condition_tells_of_a_disruption_once(reason: str, message: str, by: str) -> None:
    target = condition("DisruptionTarget", "True", 7, reason, message)
    watcher = Watcher()
    watcher.see(1, pod(1))
    for version in (2, 3):
        watcher.see(10, pod(version, "Pending", target))
        watcher.restart()
    (row,) = watcher.all(Disruption)
    assert (row.rule, row.at, row.by, row.message) == (reason, at(7), by, message)


def test_the_scheduler_says_for_whom() -> None:
    related = {"kind": "Pod", "namespace": "prod", "name": "server-0"}
    told = event("Preempted", "Preempted by pod 1-2-3", eventTime="2026-01-01T00:00:07.250000Z", related=related)
    row = disruptions.from_event(told, seen(9))
    assert row is not None
    assert (row.pod_uid, row.rule, row.at, row.for_pod) == ("u1", "Preempted", at(7.25), "prod/server-0")
    assert disruptions.RULES[row.rule] == "PreemptionByScheduler"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(event("Scheduled"), id="another event"),
        pytest.param(event("TaintManagerEviction", "Cancelling deletion of Pod n/p"), id="an eviction taken back"),
        pytest.param(event("Evicted", kind="Node"), id="of a node"),
        pytest.param(event("Evicted", series="x"), id="an event that cannot be read"),
    ],
)
def test_events_that_tell_of_no_disruption(other: Object) -> None:
    assert disruptions.from_event(other, seen(9)) is None


def test_a_quota_is_a_wait_of_the_workload_as_long_as_its_event_is_repeated() -> None:
    words = 'Error creating: pods "p" is forbidden: exceeded quota: gpus, requested: 8, used: 8, limited: 8'
    times = {"firstTimestamp": "2026-01-01T00:00:10Z", "lastTimestamp": "2026-01-01T00:05:00Z"}
    refusal = quotas.from_event(event("FailedCreate", words, "ReplicaSet", **times), seen(400))
    assert refusal is not None
    row = refusal.wait
    assert (row.pod_uid, row.reason, row.message) == ("u1", "QuotaExceeded", words)
    assert (refusal.owner.kind, refusal.owner.uid, refusal.namespace) == ("ReplicaSet", "u1", "n")
    assert spans([row]) == [(10, 300)]
    assert quotas.from_event(event("FailedCreate", "no such image", "ReplicaSet"), seen(400)) is None
