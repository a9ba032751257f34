"""PodManager on the embedded engine: what is created, moved, refused and left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import NODE, POD
from bayplan.model.clock import SystemClock
from bayplan.model.pods import Pod
from bayplan.simulate.vms import VM, BackendError, Node, PodManager, VMError
from bayplan.testing import fake_cluster
from tests.simulate.vms.scenarios import budget, exhaustion, five_nodes, guarded, initial_placement, migration


class Recording(EmbeddedCluster):
    """Remembers what pods were asked for."""

    created: list[Any]

    async def create(self, kind: Any, body: Any, namespace: str = "", **more: Any) -> Any:
        if kind is POD:
            self.created.append(body)
        return await super().create(kind, body, namespace, **more)


@pytest.fixture
def cluster() -> EmbeddedCluster:
    found = fake_cluster()
    found.__class__ = Recording
    assert isinstance(found, Recording)
    found.created = []
    return found


@pytest.fixture
def pods(cluster: EmbeddedCluster) -> Iterator[PodManager]:
    with PodManager(backend=cluster) as manager:
        yield manager


def present(cluster: EmbeddedCluster) -> dict[str, Pod]:
    return {item.name: item.view(Pod) for item in cluster.world.store.objects(POD)}


# --- placing


def test_a_pod_is_created_without_a_node_and_the_scheduler_decides(pods: PodManager, cluster: Recording) -> None:
    pods.ensure_nodes(five_nodes("n"))
    vm = VM("vm-1", 0.1, 0.2)

    name = pods.create_pod(vm)

    assert vm.pod_name == name
    assert name.startswith("virt-launcher-vm-1-")
    assert pods.get_pod_node_assignment("vm-1") == present(cluster)[name].spec.node_name != ""
    assert all("nodeName" not in body["spec"] for body in cluster.created)


def test_a_forced_pod_goes_past_the_scheduler_and_the_log_says_so(
    pods: PodManager, cluster: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    pods.ensure_nodes([Node("n1", taints=[{"key": "k", "effect": "NoSchedule"}])])
    vm = VM("vm-1", 0.1, 0.2)

    pods.create_pod(vm, "n1")

    assert vm.scheduled_node == pods.get_pod_node_assignment("vm-1") == "n1"
    assert present(cluster)[vm.pod_name].metadata.annotations["simulate.bayplan.dev/forced"] == "n1"
    assert "forced by nodeName" in capsys.readouterr().err


def test_of_a_vm_that_nobody_made_nothing_is_known(pods: PodManager) -> None:
    assert pods.get_pod_node_assignment("nobody") is None
    vm = VM("nobody", 0.1, 0.1)
    assert pods.update_vm_node_assignments([vm]) == {"scheduled": 0, "pending": 0, "missing": 1}


def test_pods_are_brought_in_line_with_vms(pods: PodManager, cluster: Recording) -> None:
    pods.ensure_nodes(five_nodes("n"))
    stays, grows, goes, comes = (VM(name, 0.1, 0.1) for name in ("stays", "grows", "goes", "comes"))

    assert pods.sync_pods_with_vms([stays, grows, goes]) == {"created": 3, "deleted": 0, "updated": 0}
    pods.update_vm_node_assignments([stays, grows, goes])
    kept = stays.pod_name
    grows.cpu_consumption = 0.2
    assert pods.sync_pods_with_vms([stays, grows, comes]) == {"created": 1, "deleted": 1, "updated": 1}
    assert pods.update_vm_node_assignments([stays, grows, comes])["scheduled"] == 3
    assert pods.sync_pods_with_vms([stays, grows, comes]) == {"created": 0, "deleted": 0, "updated": 0}

    assert stays.pod_name == kept
    asked = present(cluster)[grows.pod_name].spec.containers[0].resources.requests
    assert (len(present(cluster)), asked["cpu"]) == (3, "6400m")


def test_pods_of_others_are_left_alone(pods: PodManager, cluster: Recording) -> None:
    pods.ensure_nodes(five_nodes("n"))
    spec = {"containers": [{"name": "c", "image": "i"}]}
    meta = {"name": "virt-launcher-theirs", "labels": {"app": "virt-launcher", "vm.kubevirt.io/name": "theirs"}}
    cluster.world.server.create(POD, "default", {"metadata": meta, "spec": spec})

    assert pods.sync_pods_with_vms([]) == {"created": 0, "deleted": 0, "updated": 0}
    assert "virt-launcher-theirs" in present(cluster)


def test_two_vms_of_one_id_are_refused(pods: PodManager) -> None:
    with pytest.raises(VMError):
        pods.sync_pods_with_vms([VM("a", 0, 0), VM("a", 0, 0)])


# --- the three scenarios


def test_initial_placement(pods: PodManager) -> None:
    assert initial_placement(pods, "kwok-node") == {"scheduled": 10, "pending": 0, "missing": 0}


def test_a_migration_is_decided_by_the_scheduler(pods: PodManager, cluster: Recording) -> None:
    wish, back, refused = migration(pods, "kwok-node")

    assert (wish.wished, bool(wish), wish.direct, wish.why.plugin) == ("kwok-node-2", True, False, "NodeResourcesFit")
    assert wish.chosen not in ("kwok-node-2", wish.source)
    assert "Insufficient memory" in wish.why.text
    assert bool(back)
    assert (bool(refused), refused.why.plugin, refused.chosen) == (False, "NodeResourcesFit", wish.source)
    assert pods.last_refusal == refused
    assert len(present(cluster)) == 3


def test_exhaustion(pods: PodManager) -> None:
    assert exhaustion(pods, "kwok-node") == {"scheduled": 15, "pending": 5, "missing": 0}
    waiting = [vm for vm in pods.mirror.vms() if pods.why_pending(vm)]
    assert len(waiting) == 5
    assert "Insufficient memory" in pods.why_pending(waiting[0])


# --- migrations


@pytest.mark.parametrize("turn", range(4))
def test_without_a_target_a_vm_never_returns_to_its_source(pods: PodManager, cluster: Recording, turn: int) -> None:
    pods.ensure_nodes(five_nodes("n")[:2])
    vm = VM("vm", 0.1, 0.1)
    pods.create_pod(vm)
    source = pods.get_pod_node_assignment("vm")
    assert source is not None
    for _ in range(turn):
        assert pods.migrate_vm_pod(vm, source)
        assert vm.scheduled_node != source
        source = vm.scheduled_node
    assert len(present(cluster)) == 1


def test_a_failed_migration_keeps_the_source_and_leaves_nothing_behind(pods: PodManager, cluster: Recording) -> None:
    pods.ensure_nodes(five_nodes("n")[:1])
    vm = VM("vm", 0.1, 0.1)
    pods.create_pod(vm)
    assert pods.get_pod_node_assignment("vm") == "n-1"
    before = vm.pod_name

    assert not pods.migrate_vm_pod(vm, "n-1")

    assert pods.last_refusal is not None
    assert pods.last_refusal.why.plugin == "NodeAffinity"
    assert list(present(cluster)) == [before] == [vm.pod_name]
    assert pods.get_pod_node_assignment("vm") == "n-1"


@pytest.mark.parametrize(
    ("source", "target", "why"),
    [
        pytest.param("n-2", None, "vm is on n-1, not on n-2", id="a VM that is elsewhere"),
        pytest.param("n-1", "n-1", "vm is on n-1 already", id="a target that is the source"),
        pytest.param("n-1", "n-9", "there is no node n-9", id="a target that does not exist"),
    ],
)
def test_a_migration_that_makes_no_sense(pods: PodManager, source: str, target: str | None, why: str) -> None:
    pods.ensure_nodes(five_nodes("n")[:1])
    vm = VM("vm", 0.1, 0.1)
    pods.create_pod(vm)
    pods.get_pod_node_assignment("vm")

    found = pods.migrate(vm, source, target)

    assert (bool(found), found.chosen, found.why.text) == (False, "n-1", why)


def test_a_refusal_names_the_plugin_whatever_it_is(pods: PodManager) -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    pods.ensure_nodes([Node("n-1"), Node("n-2", taints=[taint])])
    vm = VM("vm", 0.1, 0.1)
    pods.create_pod(vm)
    assert pods.get_pod_node_assignment("vm") == "n-1"

    found = pods.migrate(vm, "n-1", "n-2")

    assert (found.why.plugin, found.chosen) == ("TaintToleration", "n-1")
    assert found.why.text == "n-2: TaintToleration: node(s) had untolerated taint(s)"


def test_a_vm_that_changes_faster_than_it_can_be_sent_stays(pods: PodManager, cluster: Recording) -> None:
    pods.ensure_nodes(five_nodes("n"))
    vm = VM("vm", 0.1, 0.5, dirty_rate_mbps=10_000)
    pods.create_pod(vm)
    node = pods.get_pod_node_assignment("vm")
    assert node is not None

    found = pods.migrate(vm, node)

    assert (bool(found), found.why.plugin, found.copy.converges) == (False, "pre-copy", False)
    assert len(present(cluster)) == 1


# --- budgets


def test_a_budget_without_room_forbids_a_migration_and_is_named(pods: PodManager, cluster: Recording) -> None:
    vms = guarded(pods, "n")
    budget(pods, 0)

    found = pods.migrate(vms[0], vms[0].scheduled_node)

    assert (bool(found), found.budget, found.why.plugin) == (False, "guard", "PodDisruptionBudget")
    assert "The disruption budget guard needs 3 healthy pods and has 3 currently" in found.why.text
    assert len(present(cluster)) == 3


def test_a_budget_with_room_lets_one_after_the_other_go(pods: PodManager) -> None:
    vms = guarded(pods, "n")
    budget(pods, 1)

    assert [bool(pods.migrate(vm, vm.scheduled_node)) for vm in vms] == [True] * 3


def test_a_migration_may_wait_for_a_budget_and_says_whose_it_was_when_it_waits_in_vain(pods: PodManager) -> None:
    vms = guarded(pods, "n")
    budget(pods, 0)

    found = pods.migrate(vms[0], vms[0].scheduled_node, budget="wait")

    assert (bool(found), found.budget) == (False, "guard")


def test_a_migration_that_waits_goes_on_when_the_budget_has_room(pods: PodManager) -> None:
    vms = guarded(pods, "n", running=False)
    budget(pods, 1)  # which has no room before all of them run

    assert pods.migrate(vms[0], vms[0].scheduled_node, budget="fail").budget == "guard"
    assert bool(pods.migrate(vms[0], vms[0].scheduled_node, budget="wait"))


def test_a_budget_that_changes_all_the_time_is_waited_for_no_longer_than_is_said(
    pods: PodManager, cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    vms = guarded(pods, "n")
    budget(pods, 0)
    ground, waits = pods._placing.ground, 0

    async def restless(holds: Callable[[], bool], within: float) -> bool:
        nonlocal waits
        while not holds():
            waits += 1
            assert waits <= 60
            await cluster.advance(1)
            pods.mirror.budgets += 1
        return True

    monkeypatch.setattr(ground, "until", restless)
    found = pods.migrate(vms[0], vms[0].scheduled_node, budget="wait")

    assert (bool(found), found.budget, waits) == (False, "guard", 60)


# --- backends


def test_without_an_api_auto_says_so_in_one_line_and_runs_embedded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    said: list[str] = []

    with PodManager(tell=said.append) as pods:
        assert pods.engine == "embedded"

    assert len(said) == 1
    assert said[0].startswith("no Kubernetes API (")
    assert "\n" not in said[0]


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(BackendError):
        PodManager(backend="cloud")


def test_an_engine_in_real_time_is_refused() -> None:
    with pytest.raises(BackendError):
        PodManager(backend=embedded_cluster(clock=SystemClock()))


def test_a_cluster_that_is_not_ours_to_furnish_gets_no_nodes(cluster: EmbeddedCluster) -> None:
    with PodManager(backend=cluster, furnish=False) as pods:
        assert pods.ensure_nodes([Node("n-1")]) == ["n-1"]
    assert list(cluster.world.store.objects(NODE)) == []


def test_nodes_that_are_not_wanted_any_more_go_with_their_pods(pods: PodManager, cluster: EmbeddedCluster) -> None:
    pods.ensure_nodes(five_nodes("n")[:1])
    pods.create_pod(VM("vm", 0.1, 0.1))
    assert pods.get_pod_node_assignment("vm") == "n-1"

    pods.ensure_nodes([Node("m-1")], no_others=True)

    assert [item.name for item in cluster.world.store.objects(NODE)] == ["m-1"]
    assert pods.get_pod_node_assignment("vm") is None
