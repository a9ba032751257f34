"""What a run says of its utilisation and its waits holds for all of its time, not for the moments it was looked at."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant
from bayplan.simulate.comparing import compared, verdict
from bayplan.simulate.eventlog import Sample, Writer, read
from bayplan.simulate.levels import Level, Levels
from bayplan.simulate.run import Order, Rehearsal, rehearse
from bayplan.simulate.scenario_file import parse_scenario
from bayplan.simulate.summary import Summary, mean_of, text
from bayplan.simulate.tally import Tally, Wait

_NOTHING = (0.0, 0.0, 0.0, 0.0)
_POD = "{restartPolicy: Never, containers: [{name: c, image: c, resources: {requests: {cpu: 1}}}]}"
_BURST = f"""\
duration: 24h
startUp: 0s
nodes: [{{name: n, count: 1, capacity: {{cpu: 8, memory: 32Gi}}}}]
teams: [{{name: t}}]
workloads:
  - {{name: p, namespace: t, kind: Pod, arrivals: {{count: 60, start: 16m}}, runTime: {{median: 1m}}, spec: {_POD}}}
"""
"""Sixty pods, eight at a time, a minute each: all between two samples."""


def _order(given: str) -> Order:
    scenario = parse_scenario("x.yaml", given)
    return Order(scenario=scenario, name="x", seed=1, duration=scenario.duration.micros)


def _run(given: str) -> Summary:
    return asyncio.run(rehearse(_order(given)))


def test_what_was_held_counts_by_how_long_it_was() -> None:
    levels = Levels(Instant(0))
    levels.sample()
    levels.pass_to(Instant(10), (0.5, 0, 0, 0))
    levels.pass_to(Instant(10), (1.0, 0, 0, 7))
    levels.pass_to(Instant(40), (0.1, 0, 0, 2))
    levels.sample()
    levels.pass_to(Instant(80), _NOTHING)
    levels.sample()
    assert levels.found()["cpu"] == Level(mean=0.1, most=0.5, parts=(0.2, 0.0))  # (0.5 * 10 + 0.1 * 30) / 80
    levels.rest((0.9, 0, 0, 0))
    found = levels.found()
    assert found["cpu"] == Level(mean=0.1, most=0.9, parts=(0.2, 0.0))
    assert found["pending"] == Level(mean=0.75, most=2.0, parts=(1.5, 0.0))


def test_of_no_time_there_is_what_stands() -> None:
    levels = Levels(Instant(5))
    levels.rest((0.5, 0, 0, 3))
    assert levels.found()["pending"] == Level(3.0, 3.0, ())


def test_samples_count_until_the_next() -> None:
    def sample(t: float, share: float) -> Sample:
        return Sample(t=t, pending=0, running=0, nodes=1, cpu=0, memory=0, gpu=0, fragmentation=share)

    assert mean_of([sample(0, 1.0), sample(10, 0.5), sample(40, 0.9)], "fragmentation") == 0.625
    assert mean_of([sample(3, 0.4)], "fragmentation") == 0.4
    assert mean_of([], "fragmentation") == 0.0


def test_what_happens_between_two_samples_is_told() -> None:
    summary = _run(_BURST)
    assert not any(each.cpu or each.pending for each in summary.samples)
    assert summary.cpu == pytest.approx(60 * 60 / 8 / 86400, abs=1e-6)
    cpu, pending = summary.levels["cpu"], summary.levels["pending"]
    assert (cpu.most, pending.most) == (1.0, 52.0)
    assert len(cpu.parts) == len(pending.parts) == 96
    assert sum(map(bool, cpu.parts)) == 1
    rows = text(summary)
    assert any(row.startswith("cpu ") and row.endswith("mean 0.52%, most 100%") for row in rows)
    assert any(row.startswith("pending ") and row.endswith("most 52") for row in rows)


def test_an_interrupted_run_ends_with_a_sample_of_how_it_stood(tmp_path: Path) -> None:
    given = _BURST.replace("count: 60, start: 16m", "every: 7s")
    with Writer(tmp_path / "log") as log:
        rehearsal = Rehearsal(_order(given), log)
        summary = asyncio.run(rehearsal.rehearse(stopping=lambda: rehearsal.run.observer.pending > 9))
    assert summary.pending == 10
    assert summary.levels["pending"].most == 9  # the tenth has just come, and nobody has looked at it yet
    last = [line for line in read(tmp_path / "log") if isinstance(line, Sample)][-1]
    assert (last.t, last.pending, last) == (summary.reached, 10, summary.samples[-1])


def _note(tally: Tally, uid: str, at: int, *, node: str = "", gone: bool = False, **of: Any) -> None:
    meta = {"name": uid, "namespace": "t", "uid": uid, **of.get("meta", {})}
    body = {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": of.get("phase", "Pending")}}
    tally.note(Object.from_raw(POD, msgspec.json.encode(body)), Instant(at * SECOND), gone=gone)


@pytest.mark.parametrize(
    ("deleted", "failed"),
    [
        pytest.param({}, 1, id="one that ends badly has failed"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, 0, id="one that was being deleted has not"),
    ],
)
def test_what_has_failed(deleted: dict[str, str], failed: int) -> None:
    tally = Tally(Instant(0))
    _note(tally, "a", 0, node="n", phase="Running")
    _note(tally, "a", 1, node="n", phase="Failed", meta=deleted)
    assert tally.usage(Instant(SECOND)).failed == failed


_SPEC = "{containers: [{name: c, image: c}]}"


def test_a_deployment_that_is_scaled_down_has_no_failed_pods() -> None:
    summary = _run(f"""\
duration: 1h
nodes: [{{name: n, count: 3, capacity: {{cpu: 8, memory: 32Gi}}}}]
teams: [{{name: t}}]
workloads: [{{name: web, namespace: t, kind: Deployment, spec: {{replicas: 10, template: {{spec: {_SPEC}}}}}}}]
events:
  - {{at: 10m, do: {{scale: {{workload: web, replicas: 3}}}}}}
  - {{when: {{failed: {{above: 0}}}}, do: {{removeNodes: {{nodes: 3}}}}}}
""")
    assert (summary.running, summary.failed, summary.events) == (3, 0, {"events[0]": 1})


@pytest.mark.parametrize(
    ("placed", "left", "waiting", "expected"),
    [
        pytest.param([5, 10], [], [], [Wait(5, False), Wait(10, False)], id="all have a node"),
        pytest.param([5], [], [60], [Wait(5, False), Wait(60, True)], id="one waits to the end"),
        pytest.param([5], [20], [], [Wait(5, False), Wait(20, True)], id="one waits until it goes"),
        pytest.param([50, 60], [10], [], [Wait(50, True), Wait(60, True)], id="who knows for how long it would have"),
        pytest.param([], [], [60], [Wait(60, True)] * 2, id="nobody has a node"),
        pytest.param([5], [0], [0], [Wait(5, False)] * 2, id="those that went as they came have not waited"),
        pytest.param([], [], [], [], id="nobody came"),
    ],
)
def test_waits_are_those_of_all_pods(
    placed: list[int], left: list[int], waiting: list[int], expected: list[Wait]
) -> None:
    tally, end = Tally(Instant(0)), 100
    for number, wait in enumerate(placed):
        _note(tally, f"p{number}", 0)
        _note(tally, f"p{number}", wait, node="n")
    for number, wait in enumerate(left):
        _note(tally, f"l{number}", 0)
        _note(tally, f"l{number}", wait, gone=True)
    for number, wait in enumerate(waiting):
        _note(tally, f"w{number}", end - wait)
    assert tally.waited(Instant(end * SECOND), 0.5, 1.0) == expected
    assert tally.usage(Instant(end * SECOND)).waits == len(placed)


_CROWDED = _BURST.replace("24h", "1h").replace(", start: 16m", "").replace("runTime: {median: 1m}, ", "")


def test_pods_that_are_never_placed_are_told_among_the_waits() -> None:
    summary = _run(_CROWDED)
    assert summary.waits is not None
    assert (summary.waits.p50, summary.waits.unplaced) == (3600.0, 52)
    assert summary.waits.at_least == ("p50", "p90", "p99", "longest")
    assert "wait      p50 >= 60m  p90 >= 60m  p99 >= 60m  longest >= 60m  (52 never placed)" in text(summary)


def test_a_comparison_says_where_waits_are_at_least_that() -> None:
    summary = _run(_CROWDED)
    assert summary.waits is not None
    other = msgspec.structs.replace(summary, waits=msgspec.structs.replace(summary.waits, at_least=("p99",)))
    lines = compared({"a": [summary], "b": [other]})
    told = {line.measure: line.at_least for line in lines}
    assert (told["wait, p50"], told["wait, p99"], told["placed"]) == (("a",), ("a", "b"), ())
    assert verdict(lines, ["a", "b"])[-1] == (
        "at least that, since pods that were never placed waited to the end: "
        "wait, p50 (a), wait, p90 (a), wait, p99 (a, b)."
    )


@pytest.mark.parametrize(
    ("complete", "head"),
    [
        pytest.param(True, "x: 60m of cluster time on 1 nodes, policy default", id="to its end"),
        pytest.param(False, "x: 60m of 2d of cluster time, interrupted, on 1 nodes, policy default", id="interrupted"),
    ],
)
def test_how_far_a_run_came(complete: bool, head: str) -> None:
    summary = msgspec.structs.replace(_run(_CROWDED), complete=complete, duration=2 * 86400.0)
    assert text(summary)[0].startswith(head)
