"""A run does what its scenario says, writes it down, and does it again in the same way."""

from __future__ import annotations

import asyncio
import functools
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bayplan.simulate import eventlog
from bayplan.simulate.eventlog import AnyLine, EventLogError, Writer, read
from bayplan.simulate.policy import UnknownPolicyError, configuration
from bayplan.simulate.run import Order, Rehearsal, rehearse
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.scenario_file import ScenarioError, parse_scenario, shipped
from bayplan.simulate.summary import Summary, bars, text

_SEEDS = ("01-initial-placement", "02-migration", "03-exhaustion")
_ALL = (*_SEEDS, "04-node-failures", "05-gpu-shares", "06-maintenance")


def _run(scenario: Scenario, log: Path | None = None, *, policy: str = "default", name: str = "x") -> Summary:
    order = Order(scenario=scenario, name=name, seed=scenario.seed, policy=policy, duration=scenario.duration.micros)
    return asyncio.run(rehearse(order, log, configuration(scenario, policy, order.seed)))


@functools.cache
def _example(name: str) -> tuple[Summary, list[AnyLine]]:
    """What a shipped scenario comes to, and its log; run once."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        summary = _run(shipped(name), log, name=name, policy="fgd" if "gpu" in name else "default")
        return summary, [*read(log)]


@pytest.mark.parametrize("name", _ALL)
def test_the_summary_of_an_example(name: str, snapshot: SnapshotAssertion) -> None:
    summary, lines = _example(name)
    assert "\n".join(text(summary)) == snapshot
    assert summary.created == sum(isinstance(line, eventlog.Created) for line in lines)
    if name in _SEEDS:  # every VM is placed or waits
        assert summary.running + summary.pending == sum(group.count for group in shipped(name).vms)


def test_the_log_tells_all_of_it() -> None:
    summary, lines = _example("04-node-failures")
    assert isinstance(lines[0], eventlog.Began)
    assert lines[-1] == eventlog.Ended(t=summary.reached, complete=True)
    counts = {kind: sum(isinstance(line, kind) for line in lines) for kind in (eventlog.Created, eventlog.Placed)}
    assert counts == {eventlog.Created: summary.created, eventlog.Placed: summary.placed}
    assert sum(isinstance(line, eventlog.NodeLine) and line.state == "lost" for line in lines) == 3
    assert [line.t for line in lines] == sorted(line.t for line in lines)
    assert {"power", "help", "evening", "thrift", "less"} == summary.events.keys()


_CODE = """
import asyncio, sys
from pathlib import Path
from bayplan.simulate.run import Order, rehearse
from bayplan.simulate.scenario_file import shipped
scenario = shipped(sys.argv[1])
order = Order(scenario=scenario, name="x", seed=7, duration=scenario.duration.micros)
asyncio.run(rehearse(order, Path(sys.argv[2])))
"""


@pytest.mark.slow
def test_the_same_seed_writes_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    for number in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": number}
        command = [sys.executable, "-c", _CODE, "04-node-failures", str(tmp_path / number)]
        subprocess.run(command, check=True, env=environment)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_an_interrupted_run_leaves_a_valid_log(tmp_path: Path) -> None:
    scenario = shipped("04-node-failures")
    order = Order(scenario=scenario, name="x", seed=1, duration=scenario.duration.micros)
    with Writer(tmp_path / "log") as log:
        rehearsal = Rehearsal(order, log)
        summary = asyncio.run(rehearsal.rehearse(stopping=lambda: rehearsal.run.observer.running > 10))
    assert not summary.complete
    assert [*read(tmp_path / "log")][-1] == eventlog.Ended(t=summary.reached, complete=False)


@pytest.mark.parametrize(
    "there", [pytest.param(True, id="one that others could read"), pytest.param(False, id="a new one")]
)
def test_a_log_holds_whole_specs_and_so_is_its_owners_alone(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "log"
    if there:
        path.write_text("old")
        path.chmod(0o644)
    with Writer(path) as log:
        log.write(eventlog.Gone(t=1.0, pod="a/b"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*read(path)] == [eventlog.Gone(t=1.0, pod="a/b")]


def test_what_is_no_file_keeps_its_rights() -> None:
    before = Path(os.devnull).stat().st_mode
    Writer(Path(os.devnull)).close()
    assert Path(os.devnull).stat().st_mode == before


def test_a_log_that_was_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"what":"gone","t":1.0,"pod":"a/b"}\n{"what":"go')
    assert [*read(path)] == [eventlog.Gone(t=1.0, pod="a/b")]


def test_what_is_no_log_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"what":"gone","t":1.0,"pod":"a/b"}\n{"what":"fun"}\n')
    with pytest.raises(EventLogError, match="log:2: not a line"):
        [*read(path)]


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(UnknownPolicyError, match="worst"):
        configuration(shipped("03-exhaustion"), "worst", 0)


def test_bars() -> None:
    assert bars([0, 0.001, 0.5, 1]) == " ▁▄█"


_ARRIVALS = st.sampled_from(["{perHour: 60}", "{every: 3m, count: 4}", "{count: 5, start: 2m}", "{}", "{every: 0s}"])
_DEEDS = st.sampled_from(
    [
        "fail: {nodes: 1, for: 2m}",
        "cordon: {group: n}",
        "drain: {nodes: [n-1]}",
        "removeNodes: {nodes: 1}",
        "addNodes: {group: n, count: 2}",
        "create: {workload: task, count: 2}",
        "delete: {workload: task, count: 1}",
        "scale: {workload: serve, replicas: 4}",
        "arrivals: {workload: task, factor: 3}",
        "migrate: {vms: vm, count: 2, to: n-2}",
        "migrate: {vms: vm, count: 2, budget: fail}",
        "drain: {labels: {kubernetes.io/hostname: n-2}}",
        "fail: {nodes: [z-1]}",
    ]
)
_TIMES = st.sampled_from(
    ["at: 4m", "at: 2m\n    every: 3m", "when: {pending: {above: 0}}\n    every: 2m", "when: {nodes: {below: 3}}"]
)


def _read(given_text: str) -> Scenario | None:
    """None where it is refused, as it should be: with file and line."""
    try:
        return parse_scenario("x.yaml", given_text)
    except ScenarioError as error:
        if not error.message.startswith("x.yaml:"):
            raise
        return None


@given(_ARRIVALS, st.lists(st.tuples(_TIMES, _DEEDS), max_size=3), st.integers(1, 3), st.integers(0, 9))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_scenario_is_refused_or_runs_the_same_way_twice(
    arrivals: str, events: list[tuple[str, str]], nodes: int, seed: int
) -> None:
    told = "".join(f"\n  - {when}\n    do: {{{deed}}}" for when, deed in events)
    given_text = f"""\
seed: {seed}
duration: 12m
nodes:
  - {{name: n, count: {nodes}, capacity: {{cpu: 4, memory: 8Gi}}}}
teams: [{{name: t}}]
workloads:
  - name: task
    namespace: t
    kind: Pod
    arrivals: {arrivals}
    runTime: {{median: 3m}}
    spec: {{restartPolicy: Never, containers: [{{name: c, image: i, resources: {{requests: {{cpu: 1}}}}}}]}}
  - name: serve
    namespace: t
    kind: Deployment
    spec: {{replicas: 2, template: {{spec: {{containers: [{{name: c, image: i}}]}}}}}}
vms:
  - {{name: vm, namespace: t, count: 2, cpu: 1, memory: 1Gi, wished: [n-1]}}
budgets:
  - {{name: serve, namespace: t, workload: serve, minAvailable: 1}}
  - {{name: vm, namespace: t, workload: vm, minAvailable: 2}}
events:{told or " []"}
"""
    scenario = _read(given_text)
    if scenario is None:
        return
    first, again = _run(scenario), _run(scenario)
    assert first == again
    assert first.complete
    assert first.pending >= 0
    assert all(0 <= each.cpu <= 1 and each.pending >= 0 and each.running >= 0 for each in first.samples)
