"""A migration of which one pod is lost ends at once: nobody else waits for it, and it says what was lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant
from bayplan.simulate import eventlog
from bayplan.simulate.actions import Create, Delete
from bayplan.simulate.eventlog import AnyLine, Writer, read
from bayplan.simulate.load import Load
from bayplan.simulate.migrations import Migrations
from bayplan.simulate.observer import Observer
from bayplan.simulate.run import Order, Rehearsal
from bayplan.simulate.scenario_file import parse_scenario
from bayplan.simulate.summary import Summary
from bayplan.simulate.timeline import Migrate
from bayplan.simulate.vms.precopy import Done, Links, Network, Transfer

_VMS = """\
duration: 20m
nodes: [{name: n, count: 4, capacity: {cpu: 32, memory: 128Gi}}]
teams: [{name: t}]
vms: [{name: a, namespace: t, count: 4, cpu: 4, memory: 16Gi, dirtyRate: 0}]
network: {total: 700}
events:
  - {at: 2m, do: {migrate: {vms: a-1, budget: BUDGET}}}
  - {at: 2m, do: {migrate: {vms: a-2, budget: BUDGET}}}
"""
_LOST = _VMS.replace("BUDGET", "fail") + "  - {at: 2m1s, do: {delete: {workload: a, count: 1}}}\n"
_OWNED = _LOST.replace("events:", "budgets: [{name: b, namespace: t, workload: a, maxUnavailable: 1}]\nevents:")
_OWNED += "  - {at: 2m2s, do: {migrate: {vms: a-3, budget: fail}}}\n"
_ALONE = 316.8
"""When a-2 arrives: all of the network is its own but for a second."""


def _rehearsal(given: str, log: Writer) -> Rehearsal:
    scenario = parse_scenario("x.yaml", given)
    return Rehearsal(Order(scenario=scenario, name="x", seed=1, duration=scenario.duration.micros), log)


def _run(given: str, tmp_path: Path) -> tuple[Summary, list[AnyLine]]:
    with Writer(tmp_path / "log") as log:
        summary = asyncio.run(_rehearsal(given, log).rehearse())
    return summary, [*read(tmp_path / "log")]


def _gone(lines: list[AnyLine]) -> dict[str, float]:
    return {line.pod.removeprefix("t/virt-launcher-"): line.t for line in lines if isinstance(line, eventlog.Gone)}


def _stayed(lines: list[AnyLine]) -> list[tuple[float, str, str]]:
    return [(line.t, line.vm, line.reason) for line in lines if isinstance(line, eventlog.Stayed)]


def test_a_vm_that_goes_while_it_is_copied_leaves_the_network_to_the_others(tmp_path: Path) -> None:
    summary, lines = _run(_LOST, tmp_path)
    assert _stayed(lines) == [(121.0, "t/a-1", "the VM is gone")]
    assert _gone(lines) == {"a-1-1": 121.0, "a-1-2": 121.0, "a-2-1": pytest.approx(_ALONE, abs=0.1)}
    assert (summary.migrations, summary.running, summary.denied) == (1, 3, {})


def test_a_vm_that_goes_while_it_moves_takes_its_owners_pods_along_and_no_budget_fails(tmp_path: Path) -> None:
    summary, lines = _run(_OWNED, tmp_path)
    assert _stayed(lines)[0] == (121.0, "t/a-1", "the VM is gone")
    assert _gone(lines)["a-1-2"] == 121.0
    assert summary.denied == {}
    created = [line.pod for line in lines if isinstance(line, eventlog.Created)]
    assert "t/virt-launcher-a-3-2" in created


def test_a_target_that_is_deleted_while_it_is_copied_to_is_not_deleted_again(tmp_path: Path) -> None:
    with Writer(tmp_path / "log") as log:
        rehearsal = _rehearsal(_VMS.replace("BUDGET", "fail"), log)
        rehearsal.run.load.later(121 * SECOND, Delete(POD, "t", "virt-launcher-a-1-2"))
        summary = asyncio.run(rehearsal.rehearse())
    lines = [*read(tmp_path / "log")]
    assert _stayed(lines) == [(121.0, "t/a-1", "the target is gone")]
    assert _gone(lines) == {"a-1-2": 121.0, "a-2-1": pytest.approx(_ALONE, abs=0.1)}
    assert (summary.migrations, summary.running, summary.denied) == (1, 4, {})


def test_a_target_that_never_starts_is_given_up(tmp_path: Path) -> None:
    given = _VMS.replace("BUDGET", "fail").replace("duration: 20m", "duration: 2h\nstartUp: 70m")
    summary, lines = _run(given.replace("at: 2m", "at: 75m").replace("{total: 700}", "{link: 1000}"), tmp_path)
    assert {reason for _, _, reason in _stayed(lines)} == {"the target did not run for 900s"}
    assert (summary.migrations, summary.migrations_refused, summary.running) == (0, 2, 4)
    first, copied = _stayed(lines)[0][0], 75 * 60 + 137.4
    assert first == pytest.approx(copied + 900, abs=1)


_SOURCE, _TARGET = "virt-launcher-a-1-1", "virt-launcher-a-1-2"


def _pod(name: str, node: str = "", phase: str = "Pending") -> Object:
    meta = {"name": name, "namespace": "t", "uid": name}
    spec = {"nodeName": node, "containers": [{"name": "c"}]}
    return Object.from_raw(POD, msgspec.json.encode({"metadata": meta, "spec": spec, "status": {"phase": phase}}))


@pytest.mark.parametrize(
    ("seen", "gone", "reason", "done"),
    [
        pytest.param([], [], "", [], id="one that is not heard of yet is waited for"),
        pytest.param([_pod(_TARGET)], [], "", [], id="and so is one that nobody has decided on"),
        pytest.param([_pod(_TARGET)], [_pod(_TARGET)], "the target is gone", [], id="one that goes before is not"),
        pytest.param([_pod(_TARGET, phase="Failed")], [], "the target is gone", [Delete(POD, "t", _TARGET)],
                     id="one that is over is taken away"),
        pytest.param([_pod(_TARGET)], [_pod(_SOURCE)], "the VM is gone", [Delete(POD, "t", _TARGET)],
                     id="without its VM a target goes"),
        pytest.param([], [_pod(_SOURCE)], "the VM is gone", [Delete(POD, "t", _TARGET)],
                     id="also one that is not heard of yet"),
    ],
)  # fmt: skip
def test_a_target_without_a_decision(seen: list[Object], gone: list[Object], reason: str, done: list[Delete]) -> None:
    scenario, now = parse_scenario("x.yaml", _VMS.replace("BUDGET", "fail")), Instant(0)
    with Writer(None) as log:
        observer, load = Observer(log, now), Load(scenario, 1, now)
        assert [*load.until(now)]
        migrations = Migrations(scenario, load, observer, budgets=False)
        observer.note(_pod(_SOURCE, "n-1", "Running"), None, now, gone=False)
        assert [type(each) for each in migrations.begin(Migrate(vms="a-1", count=1))] == [Create]
        for item in seen:
            observer.note(item, None, now, gone=False)
        for item in gone:
            observer.note(item, item, now, gone=True)
        assert [*migrations.decided(0)] == done
    assert dict(migrations.refusals) == ({reason: 1} if reason else {})
    assert migrations.under_way == (not reason)


def test_what_is_left_of_a_transfer_that_is_ended_takes_no_bandwidth() -> None:
    links = Links(Network(link_mbps=8, total_mbps=8), pause=0.0)
    for name in ("lost", "other"):
        links.begin(Transfer(name, f"from {name}", f"to {name}", 10_000_000))
    assert links.pass_to(2.0) == {}
    links.end("lost")
    links.end("nobody")
    assert links.pass_to(60.0) == {"other": Done(11.0, converged=True)}
