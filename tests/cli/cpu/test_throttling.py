"""`bayplan cpu throttling` and `bayplan cpu explain throttling` as a person and a pipe meet them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from benchmarks.throttling import WORKLOADS
from syrupy.assertion import SnapshotAssertion

from bayplan.agent.observe import Observer
from bayplan.agent.probe import try_remedy
from bayplan.cli.cpu.camel_names import camel_names
from bayplan.cli.cpu.explain_throttling import explained, proof, throttling
from bayplan.cli.cpu.throttling import chosen, rendered
from bayplan.cli.invocation import Invocation
from bayplan.cli.main import main
from bayplan.model.clock import SECOND, Instant, SystemClock, VirtualClock
from bayplan.model.errors import BayplanError
from bayplan.node.cgroup.detect import find_tree, survey
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.port import Bandwidth, Counters, Group, Pressure
from bayplan.node.throttling.causes import explain
from bayplan.node.throttling.samples import Rates
from tests.node.throttling.bucket import Job, every, watched

Capture = pytest.CaptureFixture[str]

MS = 1000
COMMAND = [sys.executable, "-m", "bayplan", "cpu", "explain", "throttling"]


def _observer(version: int = 2) -> Observer:
    """Two limited groups and a free one, two seconds after the first look."""
    tree, clock = FakeTree(version), VirtualClock()
    observer = Observer(tree, clock)
    for path, quota in (("/web", 50_000), ("/batch", 200_000), ("/free", None)):
        tree.create(path).set_bandwidth(Bandwidth(quota))
    observer.look()
    clock.advance_to(Instant(clock.now() + 2 * SECOND))
    tree.set_counters("/web", Counters(20, 5, 600_000_000, 1, 0, 700_000_000))
    tree.set_counters("/batch", Counters(20, 0, 0, 0, 0, 3_000_000_000))
    if version == 2:
        tree.set_pressure("/web", Pressure(0, 500_000))
    observer.look()
    return observer


def _never(_: Rates) -> bool:
    return False


def test_the_table(snapshot: SnapshotAssertion) -> None:
    rows = chosen(_observer(), "10s", everything=False, sort_by="rate")
    assert rendered(rows, None, headers=True, alarm=_never) == snapshot
    assert rendered(rows, "wide", headers=True, alarm=_never) == snapshot


def test_version_1_has_no_pressure_to_show() -> None:
    rows = chosen(_observer(1), "10s", everything=False, sort_by="rate")
    assert rendered(rows, None, headers=False, alarm=_never).split()[7] == "<none>"


@pytest.mark.parametrize(
    ("sort_by", "everything", "order"),
    [
        pytest.param("rate", False, ["/web", "/batch"], id="the most throttled first"),
        pytest.param("time", False, ["/web", "/batch"], id="the longest throttled first"),
        pytest.param("usage", True, ["/batch", "/web", "/free"], id="the busiest first, those without a limit too"),
    ],
)
def test_the_order(sort_by: str, everything: bool, order: list[str]) -> None:
    assert [watched.path for watched, _ in chosen(_observer(), "10s", everything, sort_by)] == order


def test_lines_above_the_threshold_are_red() -> None:
    rows = chosen(_observer(), "10s", everything=False, sort_by="rate")
    lines = rendered(rows, None, headers=True, alarm=lambda rates: rates.throttle_rate > 0.05).splitlines()
    assert [click.unstyle(line) != line for line in lines] == [False, True, False]


def test_json_has_every_number() -> None:
    rows = chosen(_observer(), "10s", everything=False, sort_by="rate")
    first = json.loads(rendered(rows, "json", headers=True, alarm=_never))["items"][0]
    assert first["group"] == "/web"
    assert (first["limitCpus"], first["usageCpus"], first["throttleRate"]) == (0.5, 0.35, 0.25)
    assert (first["throttledSecondsPerSecond"], first["burstsPerHour"], first["pressure"]) == (0.3, 1800.0, 0.25)
    assert first["alerts"] == {"ContainerThrottled": "pending"}


def test_nothing_at_all_to_show() -> None:
    assert rendered([], None, headers=True, alarm=_never, everything=True) == "No groups found\n"


def test_a_container_without_a_name_is_its_pods_uid_and_the_head_of_its_id() -> None:
    uid, identity = "3f1c8a52-6f0e-4a8f-9a55-0c1d2e3f4a5b", "ab" * 32
    tree = FakeTree(2)
    tree.create(f"/kubepods/burstable/pod{uid}/{identity}").set_bandwidth(Bandwidth(50_000))
    observer = Observer(tree, VirtualClock())
    observer.look()
    rows = chosen(observer, "10s", everything=False, sort_by="rate")
    assert rendered(rows, None, headers=False, alarm=_never).split()[0] == f"{uid}/abababababab"


def test_an_explanation_for_programs_has_names_in_kubernetes_manner() -> None:
    told = camel_names(explain(watched(Bandwidth(30 * MS), [Job(0, 10_000 * MS)])))
    assert told["cause"] == "LimitTooLow"
    assert {"throttleRate", "usageCpus", "limitCpus"} < told.keys()
    assert told["remedies"][0]["bandwidth"]["periodUs"] == 100_000


def test_nothing_to_show_says_what_would() -> None:
    assert rendered([], None, headers=True, alarm=_never) == "No groups with a CPU limit found; -A shows all\n"


@pytest.mark.parametrize(
    ("quota", "jobs"),
    [
        pytest.param(30, [Job(0, 10_000 * MS)], id="limit too low"),
        pytest.param(50, every(500 * MS, 90 * MS, 4), id="threads together"),
        pytest.param(50, every(400 * MS, 80 * MS), id="period too short"),
        pytest.param(50, [], id="not throttled"),
    ],
)
def test_an_explanation(quota: int, jobs: list[Job], snapshot: SnapshotAssertion) -> None:
    assert "\n".join(explained("/app", explain(watched(Bandwidth(quota * MS), jobs)))) == snapshot


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param("cpu throttling --for 0s", 2, 'expected some time; got "0s"', id="no time"),
        pytest.param("cpu throttling --root /no-such-group", 1, "group /no-such-group is not there", id="no group"),
    ],
)
def test_bad_input(arguments: str, code: int, message: str, capsys: Capture) -> None:
    assert main(arguments.split()) == code
    assert message in capsys.readouterr().err


def _explain(*arguments: str) -> object:
    return throttling.main([*arguments], standalone_mode=False, obj=Invocation())


def test_beside_the_kubelet_needs_a_try() -> None:
    with pytest.raises(click.UsageError, match="expected --try"):
        _explain("--group", "/a", "--beside-kubelet")


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has it ignored


def _writable() -> bool:
    try:
        return survey().writable
    except BayplanError:
        return False


on_this_machine = pytest.mark.skipif(not _writable(), reason="control groups are not writable here")


@pytest.fixture
def throttled() -> Iterator[Group]:
    with WORKLOADS[0].running() as group:
        yield group


@pytest.mark.slow
@on_this_machine
def test_this_machine_is_shown_and_explained(
    throttled: Group, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    assert main(["cpu", "throttling", "--for", "1s", "--root", throttled.path, "-o", "json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert item["throttleRate"] > 0.5

    _explain("--group", throttled.path, "--for", "1s", "--try")
    shown = capsys.readouterr().out
    assert shown.startswith(f"{throttled.path}: LimitTooLow\n")
    assert "throttled before" in shown
    assert throttled.bandwidth() == WORKLOADS[0].bandwidth


def test_the_proof_has_both_rates() -> None:
    from bayplan.agent.probe import Tried

    before = explain(watched(Bandwidth(50 * MS), every(500 * MS, 90 * MS, 4)))
    after = explain(watched(before.remedies[0].bandwidth, every(500 * MS, 90 * MS, 4)))
    lines = list(proof(Tried(before, before.remedies[0], after)))
    assert lines[2:] == ["  throttled before  50.0%", "  throttled after   0.0%"]


@pytest.mark.slow
@on_this_machine
@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGTERM, 143, id="asked to end"),
        pytest.param(signal.SIGHUP, 129, id="its terminal is closed"),
        pytest.param(signal.SIGINT, 130, id="Ctrl-C"),
        pytest.param(signal.SIGKILL, -9, id="killed"),
    ],
)
def test_a_signal_during_a_try_undoes_it(throttled: Group, tmp_path: Path, number: signal.Signals, code: int) -> None:
    own = throttled.bandwidth()
    process = subprocess.Popen(
        [*COMMAND, "--try", "--for", "2s", "--group", throttled.path],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_interrupts,
    )
    while throttled.bandwidth() == own and process.poll() is None:
        time.sleep(0.01)
    assert throttled.bandwidth() != own
    process.send_signal(number)
    out, err = process.communicate()
    assert (process.returncode, out, err.strip()) == (code, "", "")
    for _ in range(3000):  # the keeper of a process that was killed is not waited for
        if throttled.bandwidth() == own:
            break
        time.sleep(0.01)
    assert throttled.bandwidth() == own


@pytest.mark.slow
@on_this_machine
def test_a_try_raises_what_is_above_it_and_lowers_it_again() -> None:
    """A pod limited as its container is: on version 1 the kernel refuses, on 2 it would show nothing."""
    tree, own = find_tree(), Bandwidth(30_000)
    pod = tree.create(f"/bayplan-test-try-{os.getpid()}")
    pod.set_bandwidth(own)
    web = tree.create(f"{pod.path}/web")
    web.set_bandwidth(own)
    load = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
    try:
        web.add(load.pid)
        tried = asyncio.run(try_remedy(tree, web.path, SystemClock(), SECOND))
        assert tried.after.throttle_rate < tried.before.throttle_rate / 2
        assert (pod.bandwidth(), web.bandwidth()) == (own, own)
    finally:
        load.kill()
        load.wait()
        time.sleep(0.05)
        tree.remove(web.path)
        tree.remove(pod.path)


def test_a_name_cannot_move_the_cursor() -> None:
    tree, clock = FakeTree(2), VirtualClock()
    tree.create("/evil\x1b[2J\t").set_bandwidth(Bandwidth(50_000))
    observer = Observer(tree, clock)
    observer.look()
    rows = chosen(observer, "10s", everything=False, sort_by="rate")
    assert rendered(rows, "wide", headers=False, alarm=_never).startswith("/evil\\x1b[2J\\t ")
