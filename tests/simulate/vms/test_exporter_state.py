"""ExporterState: nodes as the scheduler decided, wishes and what came of them, and days without an API."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.cluster.kinds import POD
from bayplan.simulate.vms import VM, ClusterAway, ExporterState, Migration, Node, NotInScenarioError, PodManager
from bayplan.simulate.vms.pressure import seed
from tests.simulate.vms.conftest import Flaky
from tests.simulate.vms.scenarios import assert_as_decided, five_nodes


@pytest.fixture
def state(flaky: Flaky) -> Iterator[ExporterState]:
    with PodManager(backend=flaky, probe_every=0.01) as pods:
        yield ExporterState(pods)


def loaded(state: ExporterState, vms: int = 6) -> list[VM]:
    nodes = five_nodes("n")
    nodes[0].vms = [VM(f"vm-{number}", 0.1, 0.2) for number in range(vms)]
    found = list(nodes[0].vms)
    state.load_scenario(nodes)
    return found


def test_nodes_hold_what_the_scheduler_decided(state: ExporterState) -> None:
    vms = loaded(state)

    assert state.counts() == {"scheduled": 6, "pending": 0, "missing": 0}
    assert_as_decided(state)
    assert {vm.id: vm.scheduled_node for vm in vms} == {
        vm.id: node.name for node in state.nodes.values() for vm in node.vms
    }


def test_what_happens_to_pods_from_outside_is_followed(state: ExporterState, flaky: Flaky) -> None:
    vms = loaded(state)
    node = vms[0].scheduled_node
    flaky.world.server.delete(POD, "default", vms[0].pod_name)

    assert state.counts() == {"scheduled": 5, "pending": 0, "missing": 1}
    assert vms[0] not in state.nodes[node].vms
    assert state.refresh() == {"scheduled": 6, "pending": 0, "missing": 0}
    assert_as_decided(state)


@pytest.mark.parametrize(
    ("during", "counts"),
    [
        pytest.param("sync_pods_with_vms", {"scheduled": 6, "pending": 0, "missing": 0}, id="before all are read"),
        pytest.param(
            "update_vm_node_assignments", {"scheduled": 5, "pending": 0, "missing": 1}, id="after they were read"
        ),
    ],
)
def test_what_happens_while_all_is_read_anew_is_not_lost(
    state: ExporterState, flaky: Flaky, monkeypatch: pytest.MonkeyPatch, during: str, counts: dict[str, int]
) -> None:
    lost = loaded(state)[0].pod_name
    whole = getattr(state.pod_manager, during)

    def interrupted(given: list[VM]) -> None:
        if during == "sync_pods_with_vms":
            flaky.world.server.delete(POD, "default", lost)
        whole(given)
        if during == "update_vm_node_assignments":
            flaky.world.server.delete(POD, "default", lost)

    with monkeypatch.context() as patched:
        patched.setattr(state.pod_manager, during, interrupted)
        assert state.refresh() == counts
    assert_as_decided(state)


def test_a_wish_that_is_followed(state: ExporterState) -> None:
    vms = loaded(state, vms=1)
    source = vms[0].scheduled_node
    nodes = [name for name in state.nodes if name != source]

    results = [state.move_vm("vm-0", source, nodes[0])]

    assert results[0].chosen == vms[0].scheduled_node != source
    assert results[0].seconds > 0
    assert_as_decided(state)


def test_a_wish_against_the_score_says_which_plugin_preferred_another_node(state: ExporterState) -> None:
    nodes = [Node(f"n-{number}", labels={"zone": f"z{number}"}) for number in range(1, 4)]
    busy = VM("busy", 0.5, 0.5, node_selector={"zone": "z2"})
    mover = VM("mover", 0.1, 0.1, node_selector={}, labels={"role": "mover"})
    nodes[0].vms = [mover, busy]
    state.load_scenario(nodes)
    state.pod_manager.migrate_vm_pod(mover, mover.scheduled_node, "n-1")
    assert mover.scheduled_node == "n-1"

    found = state.move_vm("mover", "n-1", "n-2")

    assert (found.chosen, found.why.plugin) == ("n-3", "NodeResourcesFit")
    assert "n-3 scores" in found.why.text
    assert found.cost < 0  # the scheduler knew better

    report = state.agreement()
    assert (report.moves, report.followed, report.elsewhere) == (1, 0, 1)
    assert (report.share, report.reasons, report.mean_cost) == (0.0, {"NodeResourcesFit": 1}, found.cost)
    assert "0 of 1 moves went as wished" in report.text()


def test_a_wish_that_nobody_could_follow_leaves_the_vm(state: ExporterState) -> None:
    node = Node("n-1", [VM("vm", 0.1, 0.1)])
    small = Node("n-2", [VM("full", 0.1, 0.95)])
    state.load_scenario([node, small])
    vm = state.vms["vm"]
    source, other = vm.scheduled_node, state.vms["full"].scheduled_node

    found = state.move_vm("vm", source, other)

    assert (bool(found), found.chosen, found.why.plugin) == (False, source, "NodeResourcesFit")
    assert state.agreement().refused == 1
    assert_as_decided(state)


@pytest.mark.parametrize(
    "move",
    [
        pytest.param(("nobody", "n-1", "n-2"), id="an unknown VM"),
        pytest.param(("vm-0", "n-9", "n-2"), id="an unknown source"),
        pytest.param(("vm-0", "n-1", "n-9"), id="an unknown target"),
    ],
)
def test_a_wish_about_what_does_not_exist_is_refused(state: ExporterState, move: tuple[str, str, str]) -> None:
    loaded(state)
    with pytest.raises(NotInScenarioError):
        state.move_vm(*move)


def test_a_wish_for_the_same_node_changes_nothing(state: ExporterState) -> None:
    vms = loaded(state)
    node = vms[0].scheduled_node
    found = state.move_vm("vm-0", node, node)
    assert (bool(found), found.chosen, vms[0].scheduled_node) == (False, node, node)


def test_metrics_by_node(state: ExporterState) -> None:
    state.load_scenario([Node("n-1", [VM("a", 0.8, 0.5), VM("b", 0.1, 0.25)])])

    use = state.use_of("n-1")

    assert [use.cpu_usage, use.memory_usage, use.vms] == pytest.approx([0.9, 0.75, 2])
    assert [use.cpu_pressure, use.memory_pressure] == pytest.approx([0.2, 0.08675])


def test_the_older_curve(flaky: Flaky) -> None:
    with PodManager(backend=flaky) as pods:
        state = ExporterState(pods, curve=seed)
        state.load_scenario([Node("n-1", [VM("a", 0.72, 0.5)])])
        assert state.use_of("n-1").cpu_pressure == pytest.approx(0.02)


def test_another_scenario_takes_the_place_of_the_first(state: ExporterState) -> None:
    loaded(state)
    state.load_scenario([Node("m-1", [VM("other", 0.1, 0.1)])])

    assert list(state.nodes) == ["m-1"]
    assert state.counts() == {"scheduled": 1, "pending": 0, "missing": 0}
    assert_as_decided(state)


@pytest.mark.parametrize("away", [pytest.param(False, id="through the API"), pytest.param(True, id="without one")])
def test_a_move_that_ends_in_another_scenario_leaves_nothing_there(
    state: ExporterState, monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    vm = loaded(state, vms=1)[0]
    source = vm.scheduled_node
    target = next(name for name in state.nodes if name != source)
    whole = state.pod_manager.migrate

    def overtaken(*given: Any, **how: Any) -> Migration:
        done = whole(*given, **how) if not away else None
        state.load_scenario([Node("m-1", [VM("other", 0.1, 0.1)])])
        if done is None:
            raise ClusterAway("nobody answers")
        return done

    monkeypatch.setattr(state.pod_manager, "migrate", overtaken)
    assert bool(state.move_vm("vm-0", source, target)) != away

    assert {name: [each.id for each in node.vms] for name, node in state.nodes.items()} == {"m-1": ["other"]}
    assert state.counts() == {"scheduled": 1, "pending": 0, "missing": 0}


# --- without an API


def test_while_the_api_is_away_metrics_go_on_and_moves_are_direct(state: ExporterState, flaky: Flaky) -> None:
    vms = loaded(state)
    source = vms[0].scheduled_node
    target = next(name for name in state.nodes if name != source)
    flaky.gone = True

    found = state.move_vm("vm-0", source, target)

    assert (found.direct, found.chosen, found.why.plugin) == (True, target, "direct")
    assert state.pod_manager.away
    assert vms[0] in state.nodes[target].vms
    assert sum(use.vms for use in state.use().values()) == 6
    assert state.agreement().direct == 1
    with pytest.raises(ClusterAway):
        state.refresh()
    again = state.move_vm("vm-0", source, target)  # it is not there any more
    assert (bool(again), again.direct, again.chosen) == (False, True, target)


def test_when_the_api_is_back_the_pods_places_count_again(state: ExporterState, flaky: Flaky) -> None:
    vms = loaded(state)
    source = vms[0].scheduled_node
    target = next(name for name in state.nodes if name != source)
    back = threading.Event()
    state.pod_manager.on_return.append(back.set)
    flaky.gone = True
    state.move_vm("vm-0", source, target)

    flaky.gone = False

    assert back.wait(30)
    assert not state.pod_manager.away
    assert vms[0].scheduled_node == source
    assert_as_decided(state)
    assert not state.move_vm("vm-0", source, target).direct


def test_a_scenario_loaded_while_the_api_is_away_is_placed_when_it_is_back(state: ExporterState, flaky: Flaky) -> None:
    back = threading.Event()
    state.pod_manager.on_return.append(back.set)
    loaded(state, vms=1)
    flaky.gone = True

    vms = loaded(state, vms=3)
    assert state.counts() == {"scheduled": 3, "pending": 0, "missing": 0}
    assert [len(node.vms) for node in state.nodes.values()] == [3, 0, 0, 0, 0]
    flaky.gone = False

    assert back.wait(30)
    assert state.counts() == {"scheduled": 3, "pending": 0, "missing": 0}
    assert all(vm.pod_name for vm in vms)
    assert_as_decided(state)


def test_scrapes_and_moves_from_many_threads_do_not_wait_for_each_other_for_ever(state: ExporterState) -> None:
    vms = loaded(state, vms=4)

    def wish(vm: VM) -> None:
        for _ in range(3):
            source = vm.scheduled_node
            state.move_vm(vm.id, source, next(name for name in state.nodes if name != source))
            state.use()

    threads = [threading.Thread(target=wish, args=(vm,)) for vm in vms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert not any(thread.is_alive() for thread in threads)
    assert_as_decided(state)
