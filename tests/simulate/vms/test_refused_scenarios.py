"""A scenario that cannot be is refused as a whole: the one before it stands as it stood."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bayplan.simulate.vms import VM, ExporterState, Node, PodManager, VMError
from bayplan.testing import fake_cluster
from tests.simulate.vms.scenarios import assert_as_decided


@pytest.fixture
def state() -> Iterator[ExporterState]:
    with PodManager(backend=fake_cluster()) as pods:
        found = ExporterState(pods)
        found.load_scenario([Node("n1", [VM("vm-1", 0.2, 0.4), VM("vm-2", 0.2, 0.4)]), Node("n2"), Node("n3")])
        yield found


def changed() -> VM:
    vm = VM("b", 0.1, 0.1)
    vm.affinity = {"nope": 1}
    return vm


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        pytest.param(
            lambda: [Node("m1", [VM("a", 0.1, 0.1), VM("vm-1", 0, 0)]), Node("m2", [VM("vm-1", 0.3, 0.4)])],
            'there are two VMs "vm-1"',
            id="two VMs of one id",
        ),
        pytest.param(
            lambda: [Node("m1", [VM("a", 0.1, 0.1)]), Node("m1", [VM("b", 0.1, 0.1)])],
            'there are two nodes "m1"',
            id="two nodes of one name",
        ),
        pytest.param(lambda: [Node("M_1")], 'node "M_1": name: Invalid value: "M_1"', id="no name of a node"),
        pytest.param(
            lambda: [Node("m1", taints=[{"key": "a", "effect": "Never"}])],
            'node "m1": taints[0].effect: Unsupported value: "Never"',
            id="a taint that there is not",
        ),
        pytest.param(lambda: [Node("m1", [changed()])], "b: affinity.nope: unknown key", id="a VM changed for the bad"),
        pytest.param(
            lambda: [Node("m1", [VM("a", 0.1, 0.1), VM("b", 0.1, 0.1, priority_class_name="none")])],
            'b: priority_class_name: there is no PriorityClass "none"',
            id="a priority that the cluster does not have",
        ),
    ],
)
def test_a_refused_scenario_changes_nothing(
    state: ExporterState, nodes: Callable[[], list[Node]], message: str
) -> None:
    def standing() -> dict[str, list[tuple[str, str]]]:
        return {name: [(vm.id, vm.pod_name) for vm in node.vms] for name, node in state.nodes.items()}

    before, pods = standing(), {*state.pod_manager.mirror.pods}

    with pytest.raises(VMError) as refused:
        state.load_scenario(nodes())

    assert refused.value.message.startswith(message)
    assert (standing(), {*state.pod_manager.mirror.pods}) == (before, pods)
    assert_as_decided(state)


def test_two_nodes_of_one_name_are_not_made_one() -> None:
    with PodManager(backend=fake_cluster()) as pods, pytest.raises(VMError, match='two nodes "n"'):
        pods.ensure_nodes([Node("n"), Node("n")])
