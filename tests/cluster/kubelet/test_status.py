"""What the kubelet writes into a pod's status, and what it leaves alone."""

from __future__ import annotations

import msgspec
from syrupy.assertion import SnapshotAssertion

from bayplan.cluster.kinds import POD
from bayplan.model.clock import SECOND
from bayplan.model.meta import condition
from tests.cluster.kubelet.stage import START, Stage, container


def pretty(stage: Stage, name: str = "p") -> str:
    """A status as a person reads it."""
    return msgspec.json.format(stage.item(name).sections["status"].raw, indent=1).decode()


def test_the_whole_status_of_a_running_pod(snapshot: SnapshotAssertion) -> None:
    stage = Stage()
    stage.node()
    stage.pod(
        containers=[
            container(
                resources={"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
                volumeMounts=[{"name": "data", "mountPath": "/data", "readOnly": True}],
            )
        ],
        initContainers=[container("prepare")],
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    stage.to(30)
    assert pretty(stage) == snapshot


def test_the_whole_status_of_a_crashing_pod(snapshot: SnapshotAssertion) -> None:
    stage = Stage()
    stage.node()
    stage.pod(behaviour={"run-for": "5s", "exit-code": "1"})
    stage.to(20)
    assert pretty(stage) == snapshot


def test_a_whole_start_is_two_writes() -> None:
    stage = Stage()
    stage.node()
    versions = []
    stage.world.store.listeners.append(lambda change: versions.append(change) if change.kind is POD else None)
    stage.pod()
    stage.to(100)
    assert len(versions) == 3  # created, taken, running


def test_what_a_client_writes_stays_while_nothing_is_due() -> None:
    stage = Stage()
    stage.node()
    stage.pod(behaviour={"run-for": "1h"})
    stage.to(10)
    own = {"type": "example.com/Checked", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    conditions = stage.item().doc()["status"]["conditions"]
    unready = [{**each, "status": "False"} if each["type"] == "Ready" else each for each in conditions]
    stage.patch_status({"conditions": [own, *unready], "message": "a word of mine"})
    stage.to(100)
    ready = condition(stage.status().conditions, "Ready")
    assert ready is not None
    assert (ready.status, stage.status().message) == ("False", "a word of mine")
    stage.to(3700)  # the container ends and starts again: the kubelet's own parts are written
    ready = condition(stage.status().conditions, "Ready")
    assert ready is not None
    assert ready.status == "True"
    assert condition(stage.status().conditions, "example.com/Checked") is not None


def test_a_phase_that_a_client_ends_is_final() -> None:
    stage = Stage()
    stage.node()
    stage.pod()
    stage.to(10)
    stage.patch_status({"phase": "Failed", "reason": "Simulated"})
    stage.to(1000)
    assert (stage.status().phase, stage.status().reason) == ("Failed", "Simulated")


def test_a_readiness_gate_holds_the_pod_back_until_somebody_opens_it() -> None:
    stage = Stage()
    stage.node()
    stage.pod(readinessGates=[{"conditionType": "example.com/gate"}])
    stage.to(10)
    ready = condition(stage.status().conditions, "Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "ReadinessGatesNotReady")
    assert ready.message == 'corresponding condition of pod readiness gate "example.com/gate" does not exist.'
    gate = {"type": "example.com/gate", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    stage.patch_status({"conditions": [gate, *stage.item().doc()["status"]["conditions"]]})
    stage.to(20)
    ready = condition(stage.status().conditions, "Ready")
    assert ready is not None
    assert (ready.status, ready.last_transition_time) == ("True", "2026-01-01T00:00:10Z")


def test_pods_of_a_node_have_addresses_of_their_own() -> None:
    stage = Stage()
    node = stage.node()
    for number in range(60):
        stage.pod(f"p{number}")
    stage.pod("host", hostNetwork=True)
    stage.to(10)
    addresses = [stage.status(f"p{number}").pod_ip for number in range(60)]
    assert len(set(addresses)) == 60
    assert len({address.rpartition(".")[0] for address in addresses}) == 1
    host = stage.status("host")
    assert host.pod_ip == host.host_ip == stage.status("p0").host_ip
    assert node.name == "node-1"


def test_a_job_pod_runs_to_its_end_unless_told_otherwise() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    stage = Stage()
    stage.node()
    stage.pod("job", restartPolicy="Never", metadata={"ownerReferences": [owner]})
    stage.pod("endless", {"run-for": "forever"}, restartPolicy="Never")
    stage.to(100)
    assert (stage.status("job").phase, stage.status("endless").phase) == ("Succeeded", "Running")


def test_the_kubelet_may_be_late() -> None:
    """Ends are told with the time at which they happened, starts with that of the kubelet."""
    stage = Stage()
    stage.node()
    stage.pod(behaviour={"run-for": "10s", "exit-code": "1"})
    stage.to(5)
    stage.annotate_node("stopped-at=2026-01-01T00:00:05Z")
    stage.to(100)
    assert stage.seen[-1] == (3.0, "Running | running")
    stage.annotate_node(None)
    stage.to(100)
    status = stage.status().container_statuses[0]
    last, running = status.last_state.terminated, status.state.running
    assert last is not None
    assert running is not None
    assert (last.finished_at, running.started_at) == ("2026-01-01T00:00:13Z", "2026-01-01T00:01:40Z")
    assert (stage.world.now - START) // SECOND == 100
