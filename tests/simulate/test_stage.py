"""A load meets a cluster: in virtual time, in real time, with refusals."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.cluster.kinds import DEPLOYMENT, NODE
from bayplan.model.clock import SECOND, Instant, ScaledClock, parse_rfc3339
from bayplan.model.nodes import Node
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.scenario_file import parse_scenario
from bayplan.simulate.stage import Stage

_START = parse_rfc3339("2026-01-01T00:00:00Z")
_MINUTE = 60 * SECOND

_TEXT = """\
nodes:
  - {name: gpu, count: 2, capacity: {cpu: 16, memory: 64Gi, nvidia.com/gpu: 8}}
teams:
  - name: vision
    quota: {count/pods: 3}
curves:
  - {name: day, hours: [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]}
workloads:
  - name: serve
    namespace: vision
    kind: Deployment
    replicas: {low: 1, high: 2, curve: day}
    rollouts: {perHour: 2}
    spec:
      template:
        spec:
          containers:
            - {name: main, image: serve, resources: {limits: {nvidia.com/gpu: 1}}}
  - name: try
    namespace: vision
    kind: Pod
    arrivals: {perHour: 20}
    runTime: {median: 10m}
    lifetime: {median: 30m}
    spec:
      restartPolicy: Never
      containers:
        - {name: main, image: try}
outages:
  - {node: gpu-1, at: 30m, lasts: 20m}
"""


def _scenario() -> Scenario:
    return parse_scenario("x.yaml", _TEXT)


def _stage() -> Stage:
    return Stage(_scenario(), seed=3, start=_START)


def _ready(stage: Stage) -> dict[str, str]:
    nodes = [item.view(Node) for item in stage.cluster.world.store.objects(NODE)]
    return {
        node.metadata.name: next((each.status for each in node.status.conditions if each.type == "Ready"), "")
        for node in nodes
    }


async def test_nodes_fail_and_return_as_the_scenario_says() -> None:
    stage = _stage()
    seen = []
    for minute in (10, 40, 60):
        await stage.rehearse(Instant(_START + minute * _MINUTE))
        seen.append(_ready(stage))
    assert seen == [
        {"gpu-1": "True", "gpu-2": "True"},
        {"gpu-1": "Unknown", "gpu-2": "True"},
        {"gpu-1": "True", "gpu-2": "True"},
    ]


async def test_services_grow_with_the_day() -> None:
    stage = _stage()
    await stage.rehearse(Instant(_START + 12 * 60 * _MINUTE))
    assert stage.cluster.world.server.get(DEPLOYMENT, "vision", "serve").sections["spec"].plain()["replicas"] == 2


_EVENTS = """\
  - {name: shut, at: 30m, do: {cordon: {nodes: [gpu-2], for: 1h}}}
  - {name: help, when: {after: shut, for: 5m}, do: {addNodes: {group: gpu, count: 2}}}
  - {name: late, when: {nodes: {above: 9}}, do: {drain: {nodes: 1}}}
"""


def _eventful() -> Stage:
    text = _TEXT.partition("outages:")[0] + "events:\n" + _EVENTS
    return Stage(parse_scenario("x.yaml", text), seed=3, start=_START)


async def test_events_happen_in_virtual_time() -> None:
    stage = _eventful()
    assert [what for _, what in stage.coming()] == [
        "shut: cordon gpu-2 for 1h",
        "help: add 2 nodes of gpu when shut has happened for 5m",
        "late: drain 1 node when nodes above 9",
    ]
    await stage.rehearse(Instant(_START + 40 * _MINUTE))
    assert [(at - _START, *told) for at, *told in stage.happened] == [
        (30 * _MINUTE, "shut", "cordon gpu-2 for 1h"),
        (35 * _MINUTE, "help", "add 2 nodes of gpu"),
    ]
    assert len(_ready(stage)) == 4
    assert [what for _, what in stage.coming()] == ["late: drain 1 node when nodes above 9"]


@pytest.mark.parametrize(
    ("minutes", "count"),
    [
        pytest.param(5, 301, id="while all of them are remembered"),
        pytest.param(10, 601, id="and when the oldest are forgotten"),
    ],
)
async def test_every_event_counts(minutes: int, count: int) -> None:
    event = "  - {name: tick, at: 0s, every: 1s, do: {uncordon: {nodes: [gpu-1]}}}\n"
    text = _TEXT.partition("curves:")[0] + "events:\n" + event
    stage = Stage(parse_scenario("x.yaml", text), seed=3, start=_START)
    await stage.rehearse(Instant(_START + minutes * _MINUTE))
    assert stage.events == {"tick": count}


async def test_events_happen_in_real_time() -> None:
    stage = _eventful()
    await stage.rehearse(Instant(_START + 5 * _MINUTE))
    await stage.go_live(ScaledClock(stage.now, 36_000), Instant(_START + 50 * _MINUTE))
    assert [event for _, event, _ in stage.happened] == ["shut", "help"]
    assert len(_ready(stage)) == 4


async def test_what_users_are_refused_is_counted_and_stops_nothing() -> None:
    stage = _stage()
    await stage.rehearse(Instant(_START + 120 * _MINUTE))
    assert stage.refusals["create Pod vision: Forbidden"] > 0
    assert stage.now == _START + 120 * _MINUTE


async def test_it_stops_when_asked_to() -> None:
    stage = _stage()
    await stage.rehearse(Instant(_START + 120 * _MINUTE), stopping=lambda: stage.now > _START + 10 * _MINUTE)
    assert _START + 10 * _MINUTE < stage.now < _START + 60 * _MINUTE


async def test_real_time_goes_on_where_virtual_time_ended() -> None:
    stage = _stage()
    await stage.rehearse(Instant(_START + 5 * _MINUTE))
    stage.begin_account()
    end = Instant(_START + 65 * _MINUTE)
    await stage.go_live(ScaledClock(stage.now, 36_000), end)
    assert stage.now >= end
    assert stage.tally.usage(end).created + stage.refusals.total() > 5


async def test_real_time_ends_when_it_is_cancelled() -> None:
    stage = _stage()
    live = asyncio.create_task(stage.go_live(ScaledClock(stage.now, 60), Instant(_START + 10**12)))
    await asyncio.sleep(0.05)
    live.cancel()
    await asyncio.wait([live])
    assert live.cancelled()


async def test_a_failure_in_the_cluster_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = _stage()

    async def broken() -> None:
        raise RuntimeError("the world stopped")

    monkeypatch.setattr(stage.cluster, "run", broken)
    with pytest.raises(RuntimeError, match="the world stopped"):
        await stage.go_live(ScaledClock(stage.now, 60), Instant(_START + 10**12))


async def test_the_same_seed_ends_in_the_same_bytes() -> None:
    runs = []
    for _ in range(2):
        stage = _stage()
        await stage.rehearse(Instant(_START + 60 * _MINUTE))
        runs.append([item.raw() for item in stage.objects()])
    assert runs[0] == runs[1]
