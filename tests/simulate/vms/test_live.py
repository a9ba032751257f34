"""PodManager through an API: the embedded engine served over HTTP, and the lab's real scheduler."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.kubelet.behaviour import Defaults
from bayplan.cluster.kinds import NODE, POD, POD_DISRUPTION_BUDGET
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.served.serve import serve
from bayplan.model.clock import MILLISECOND, SystemClock
from bayplan.simulate.vms import VM, ExporterState, PodManager
from tests.simulate.vms.scenarios import (
    assert_as_decided,
    budget,
    exhaustion,
    five_nodes,
    guarded,
    initial_placement,
    migration,
)

_QUICK = Defaults(pull=MILLISECOND, start=MILLISECOND, shutdown=MILLISECOND, jitter=0.0)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The embedded engine in real time, behind HTTP, on a thread of its own; its kubeconfig."""
    target = tmp_path_factory.mktemp("served") / "kubeconfig"
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    end = asyncio.Event()

    async def main() -> None:
        cluster = embedded_cluster(clock=SystemClock(), seed=1, behaviour=_QUICK)
        running = asyncio.create_task(cluster.run())
        async with serve(cluster, kubeconfig_out=target):
            ready.set()
            await end.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    assert ready.wait(60)
    yield target
    loop.call_soon_threadsafe(end.set)
    thread.join()
    loop.close()


def opened(kubeconfig: Path, namespace: str) -> PodManager:
    return PodManager(namespace, LiveCluster.find(kubeconfig), furnish=True)


def settled(holds: Callable[[], object]) -> bool:
    """Whether something comes to hold within half a minute."""
    for _ in range(300):
        if holds():
            return True
        time.sleep(0.1)
    return False


def clear(pods: PodManager) -> None:
    """Leave nothing to the next test."""
    pods.sync_pods_with_vms([])
    pods.ensure_nodes([], no_others=True)


@pytest.mark.slow
def test_the_scenarios_through_http(served: Path) -> None:
    with opened(served, "vms") as pods:
        assert initial_placement(pods, "a") == {"scheduled": 10, "pending": 0, "missing": 0}
        assert exhaustion(pods, "a") == {"scheduled": 15, "pending": 5, "missing": 0}
        clear(pods)


def test_auto_takes_the_api_that_answers_and_says_which(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(served))
    said: list[str] = []

    with PodManager("auto", tell=said.append) as pods:
        assert pods.engine == "bayplan"
        assert pods.ensure_nodes(five_nodes("b")[:1]) == ["b-1"]  # not ours to furnish

    assert [line[:37] for line in said] == ["VMs are placed by the scheduler of ba"]


@pytest.mark.slow
def test_a_migration_through_http(served: Path) -> None:
    with opened(served, "moves") as pods:
        wish, back, refused = migration(pods, "c")
        assert (wish.why.plugin, bool(back), refused.why.plugin) == ("NodeResourcesFit", True, "NodeResourcesFit")
        clear(pods)


# --- the lab


@pytest.mark.slow
def test_the_three_scenarios_come_out_the_same_on_the_real_scheduler(lab: Lab) -> None:
    with opened(lab.kubeconfig, "vms-scenarios") as pods:
        assert initial_placement(pods, "vms") == {"scheduled": 10, "pending": 0, "missing": 0}
        assert exhaustion(pods, "vms") == {"scheduled": 15, "pending": 5, "missing": 0}
        assert len(pods.mirror.latencies) > 0
        assert pods.latency(0.99) < 60
        clear(pods)
        wish, back, refused = migration(pods, "vms")
        assert (wish.why.plugin, bool(back), refused.why.plugin) == ("NodeResourcesFit", True, "NodeResourcesFit")
        assert wish.chosen not in (wish.source, wish.wished)
        clear(pods)
        assert _left(pods) == []


@pytest.mark.slow
def test_the_backend_lab_starts_a_control_plane_of_its_own(lab: Lab) -> None:
    """`lab` is asked for only because where there is none, this test is skipped."""
    with PodManager(backend="lab") as pods:
        pods.ensure_nodes(five_nodes("own")[:2])
        vm = VM("vm", 0.1, 0.2)
        pods.create_pod(vm)
        node = pods.get_pod_node_assignment("vm")
        assert pods.engine == "lab"
        assert node in ("own-1", "own-2")
        assert pods.migrate_vm_pod(vm, node)
        assert vm.scheduled_node == ({"own-1", "own-2"} - {node}).pop()


@pytest.mark.slow
def test_budgets_on_the_real_scheduler(lab: Lab) -> None:
    with opened(lab.kubeconfig, "vms-budgets") as pods:
        vms = guarded(pods, "vmsb")
        budget(pods, 1)
        assert [bool(pods.migrate(vm, vm.scheduled_node, budget="wait")) for vm in vms] == [True] * 3

        budget(pods, 0)
        found = pods.migrate(vms[0], vms[0].scheduled_node, budget="fail")
        assert (bool(found), found.budget) == (False, "guard")

        async def lift() -> None:
            patch = {"spec": {"maxUnavailable": 1}}
            await pods._placing.cluster.patch(POD_DISRUPTION_BUDGET, patch, "guard", "vms-budgets")

        timer = threading.Timer(1.0, lambda: pods._thread.call(lift()))
        timer.start()
        waited = pods.migrate(vms[0], vms[0].scheduled_node, budget="wait")
        timer.join()
        assert bool(waited)
        clear(pods)


@pytest.mark.slow
def test_the_lab_goes_away_and_comes_back(lab: Lab) -> None:
    with opened(lab.kubeconfig, "vms-outage") as pods:
        state = ExporterState(pods)
        nodes = five_nodes("vmso")
        nodes[0].vms = [VM(f"vm-{n}", 0.1, 0.2) for n in range(5)]
        state.load_scenario(nodes)
        vm = state.vms["vm-0"]
        source = vm.scheduled_node
        target = next(name for name in state.nodes if name != source)
        back = threading.Event()
        pods.on_return.append(back.set)
        assert settled(lambda: all((sight := pods._placing.mirror.place(vm)) and sight.runs for vm in state.vms))
        lab.processes.stop("kube-apiserver", kill=True)
        try:
            assert state.move_vm("vm-0", source, target).direct
            assert sum(use.vms for use in state.use().values()) == 5
        finally:
            lab.restart_apiserver()
        assert back.wait(120)
        assert vm.scheduled_node == source
        assert_as_decided(state)
        assert not state.move_vm("vm-0", source, target).direct
        lab.compact()  # watches get 410, and go on
        state.pod_manager.delete_pod("vm-1")
        assert state.counts()["missing"] == 1
        clear(pods)


def _left(pods: PodManager) -> list[str]:
    async def listed() -> list[str]:
        cluster = pods._placing.cluster
        found = [*(await cluster.list(POD, "vms-scenarios")).items, *(await cluster.list(NODE)).items]
        return [item.name for item in found if item.name.startswith(("virt-launcher", "vms"))]

    return pods._thread.call(listed())
