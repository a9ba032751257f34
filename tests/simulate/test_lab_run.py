"""The seed's three scenarios end on the real scheduler as they end on ours."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.simulate import lab_run
from bayplan.simulate.eventlog import Ended, Writer, read
from bayplan.simulate.lab_run import LabRunError, check, on_lab
from bayplan.simulate.run import Order, rehearse
from bayplan.simulate.scenario_file import parse_scenario, shipped


def _order(name: str, engine: str = "lab", policy: str = "default") -> Order:
    scenario = shipped(name)
    return Order(
        scenario=scenario,
        name=name,
        seed=scenario.seed,
        engine=engine,
        policy=policy,
        duration=scenario.duration.micros,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["01-initial-placement", "02-migration", "03-exhaustion"])
def test_both_engines_end_with_the_same_counts(name: str, tmp_path: Path) -> None:
    try:
        with Writer(tmp_path / "log") as log:
            real = asyncio.run(on_lab(_order(name), log, None, stopping=lambda: False))
    except LabUnavailableError as error:
        pytest.skip(f"no lab here: {error.message}")
    ours = asyncio.run(rehearse(_order(name, "embedded")))
    for key in ("created", "placed", "pending", "running", "migrations", "migrations_refused", "events"):
        assert getattr(real, key) == getattr(ours, key), key
    last = [*read(tmp_path / "log")][-1]
    assert isinstance(last, Ended)
    assert last.complete


_BUDGETS = """\
duration: 10m
nodes: [{name: n, count: 3, capacity: {cpu: 8, memory: 64Gi}}]
teams: [{name: shop}]
workloads:
  - name: api
    namespace: shop
    kind: Deployment
    spec: {replicas: 12, template: {spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 1}}}]}}}
vms:
  - {name: db, namespace: shop, count: 3, cpu: 1, memory: 16Gi, dirtyRate: 0}
budgets:
  - {name: api, namespace: shop, workload: api, maxUnavailable: 1}
  - {name: db, namespace: shop, workload: db, minAvailable: 2}
events:
  - {name: empty, at: 1m, do: {drain: {nodes: [n-1]}}}
"""


@pytest.mark.slow
def test_a_drain_goes_by_the_budgets_on_both_engines() -> None:
    scenario = parse_scenario("x.yaml", _BUDGETS)
    order = Order(scenario=scenario, name="x", seed=0, engine="lab", duration=scenario.duration.micros)
    try:
        real = asyncio.run(on_lab(order, Writer(), None, stopping=lambda: False))
    except LabUnavailableError as error:
        pytest.skip(f"no lab here: {error.message}")
    ours = asyncio.run(rehearse(msgspec.structs.replace(order, engine="embedded")))
    for found in (real, ours):
        assert (found.running, found.pending, found.migrations_refused) == (15, 0, 0)
        assert found.denied.keys() == {"evict Pod shop: budget api"}


@pytest.mark.parametrize(
    ("name", "policy", "fault"),
    [
        pytest.param("04-node-failures", "default", "events[0].do.fail", id="failures are not for the lab"),
        pytest.param("05-gpu-shares", "default", "workloads[0].runTime", id="nor are run times"),
        pytest.param("03-exhaustion", "fgd", "policy fgd", id="nor are policies that kube-scheduler has not"),
    ],
)
def test_what_is_not_for_the_lab(name: str, policy: str, fault: str) -> None:
    with pytest.raises(LabRunError) as refused:
        check(_order(name, policy=policy), None)
    assert fault in refused.value.message


class _Scene:
    """A run of which something is heard every second: of its pods as long as there are any to decide on, else of nodes.

    It stands where the run and its observer do, and where time passes.
    """

    def __init__(self, undecided: int, *, decides: bool) -> None:
        self._run, self.observer = self, self
        self._left, self._decides = undecided, decides
        self.changes = self.pod_changes = self.ready = self.seconds = 0
        self.seats: dict[str, object] = {}

    def undecided(self) -> int:
        return self._left

    async def sleep(self, span: float) -> None:
        self.seconds += int(span)
        self.changes += bool(self._left)
        if self._decides and self._left:
            self._left -= 1
            self.pod_changes += 1


async def test_however_many_pods_there_are_each_decision_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _Scene(500, decides=True)
    monkeypatch.setattr(lab_run, "asyncio", scene)
    await lab_run._LabRun._rest(cast(Any, scene), lambda: False)
    assert (scene.undecided(), scene.seconds) == (0, 501)


async def test_a_decision_that_does_not_come_is_not_waited_for_while_nodes_are_heard_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = _Scene(2, decides=False)
    monkeypatch.setattr(lab_run, "asyncio", scene)
    with pytest.raises(LabRunError, match="2 pods without a decision after 121 seconds"):
        await lab_run._LabRun._rest(cast(Any, scene), lambda: False)
