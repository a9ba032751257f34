"""Lives of pods, told second by second."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.kubelet.stage import Stage, container

HTTP = {"httpGet": {"path": "/", "port": 80}}


def story(behaviour: dict[str, str], until: float, **spec: Any) -> list[tuple[float, str]]:
    stage = Stage()
    stage.node()
    stage.pod(behaviour=behaviour, **spec)
    stage.to(until)
    return stage.seen


@pytest.mark.parametrize(
    ("behaviour", "spec", "until", "expected"),
    [
        pytest.param(
            {},
            {},
            1000,
            [(0, "Pending"), (0, "Pending | ContainerCreating"), (3, "Running | running")],
            id="a pod that says nothing is pulled, started, ready at once and runs for ever",
        ),
        pytest.param(
            {"pull": "10s", "start": "500ms", "ready-after": "5s"},
            {},
            100,
            [
                (0, "Pending"),
                (0, "Pending | ContainerCreating"),
                (10.5, "Running | unready"),
                (15, "Running | running"),  # its startedAt is the whole second
            ],
            id="pull, start and readiness take as long as the annotations say",
        ),
        pytest.param(
            {"run-for": "20s"},
            {"restartPolicy": "Never"},
            100,
            [
                (0, "Pending"),
                (0, "Pending | ContainerCreating"),
                (3, "Running | running"),
                (23, "Succeeded | exit 0 Completed"),
            ],
            id="a container that ends well ends its pod well",
        ),
        pytest.param(
            {"run-for": "20s", "exit-code": "3"},
            {"restartPolicy": "Never"},
            100,
            [
                (0, "Pending"),
                (0, "Pending | ContainerCreating"),
                (3, "Running | running"),
                (23, "Failed | exit 3 Error"),
            ],
            id="a container that ends badly and must not be restarted fails its pod",
        ),
        pytest.param(
            {"run-for": "5s", "exits": "1,1,1,0"},
            {"restartPolicy": "OnFailure"},
            300,
            [
                (0, "Pending"),
                (0, "Pending | ContainerCreating"),
                (3, "Running | running"),
                (8, "Running | exit 1 Error"),
                (9, "Running | running x1"),
                (14, "Running | CrashLoopBackOff x1"),
                (25, "Running | running x2"),
                (30, "Running | CrashLoopBackOff x2"),
                (51, "Running | running x3"),
                (56, "Succeeded | exit 0 Completed x3"),
            ],
            id="the first restart is at once, the next ones wait ten seconds and twice as long each time",
        ),
        pytest.param(
            {"oom-after": "30s"},
            {"restartPolicy": "Never"},
            100,
            [
                (0, "Pending"),
                (0, "Pending | ContainerCreating"),
                (3, "Running | running"),
                (33, "Failed | exit 137 OOMKilled"),
            ],
            id="a container that runs out of memory is killed",
        ),
        pytest.param(
            {"missing-image": "true"},
            {},
            40,
            [
                (0, "Pending"),
                (0, "Pending | ContainerCreating"),
                (2, "Pending | ErrImagePull"),
                (4, "Pending | ImagePullBackOff"),
                (14, "Pending | ErrImagePull"),
                (16, "Pending | ImagePullBackOff"),
                (36, "Pending | ErrImagePull"),
                (38, "Pending | ImagePullBackOff"),
            ],
            id="a missing image is tried again and again, with longer and longer waits",
        ),
        pytest.param(
            {"run-for": "20s", "run-for.first": "4s"},
            {
                "restartPolicy": "Never",
                "initContainers": [container("first"), container("proxy", restartPolicy="Always"), container("last")],
            },
            100,
            [
                (0, "Pending"),
                (0, "Pending | PodInitializing | PodInitializing | PodInitializing | PodInitializing"),
                (3, "Pending | unready | PodInitializing | PodInitializing | PodInitializing"),
                (7, "Pending | exit 0 Completed | PodInitializing | PodInitializing | PodInitializing"),
                (10, "Pending | exit 0 Completed | running | PodInitializing | PodInitializing"),
                (13, "Pending | exit 0 Completed | running | unready | PodInitializing"),
                (14, "Pending | exit 0 Completed | running | exit 0 Completed | PodInitializing"),
                (17, "Running | exit 0 Completed | running | exit 0 Completed | running"),
                (37, "Running | exit 0 Completed | running | exit 0 Completed | exit 0 Completed"),
                (38, "Succeeded | exit 0 Completed | exit 143 Error | exit 0 Completed | exit 0 Completed"),
            ],
            id="init containers run in order, a sidecar stays until the main container is over",
        ),
        pytest.param(
            {"exit-code.first": "1"},
            {"restartPolicy": "Never", "initContainers": [container("first")]},
            100,
            [
                (0, "Pending"),
                (0, "Pending | PodInitializing | PodInitializing"),
                (3, "Pending | unready | PodInitializing"),
                (4, "Failed | exit 1 Error | PodInitializing"),
            ],
            id="an init container that fails for good fails the pod before it began",
        ),
        pytest.param(
            {"fail-probe": "liveness after=30s"},
            {"containers": [container(livenessProbe={**HTTP, "periodSeconds": 5, "failureThreshold": 2})]},
            60,
            [
                (0, "Pending"),
                (0, "Pending | ContainerCreating"),
                (3, "Running | running"),
                (39, "Running | exit 143 Error"),
                (40, "Running | running x1"),
            ],
            id="a container whose liveness probe fails often enough is stopped and started again",
        ),
        pytest.param(
            {"fail-probe": "readiness after=20s for=10s"},
            {"containers": [container(readinessProbe={**HTTP, "periodSeconds": 2, "failureThreshold": 3})]},
            60,
            [
                (0, "Pending"),
                (0, "Pending | ContainerCreating"),
                (3, "Running | running"),
                (27, "Running | unready"),
                (33, "Running | running"),
            ],
            id="a readiness probe takes the pod out and lets it in again",
        ),
        pytest.param(
            {"ready-after": "1m"},
            {"containers": [container(startupProbe={**HTTP, "periodSeconds": 5, "failureThreshold": 4})]},
            25,
            [
                (0, "Pending"),
                (0, "Pending | ContainerCreating"),
                (3, "Running | unready"),
                (19, "Running | exit 143 Error"),
                (20, "Running | unready x1"),
            ],
            id="a container that is too slow for its start-up probe is stopped",
        ),
        pytest.param(
            {"run-for": "5s", "exits": "42,42,1"},
            {
                "restartPolicy": "Never",
                "containers": [
                    container(
                        restartPolicy="Never",
                        restartPolicyRules=[{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
                    )
                ],
            },
            60,
            [
                (0, "Pending"),
                (0, "Pending | ContainerCreating"),
                (3, "Running | running"),
                (8, "Running | exit 42 Error"),
                (9, "Running | running x1"),
                (14, "Running | CrashLoopBackOff x1"),
                (25, "Running | running x2"),
                (30, "Failed | exit 1 Error x2"),
            ],
            id="a restart rule restarts a container whose pod would not",
        ),
        pytest.param(
            {},
            {"activeDeadlineSeconds": 30},
            60,
            [
                (0, "Pending"),
                (0, "Pending | ContainerCreating"),
                (3, "Running | running"),
                (31, "Failed | exit 143 Error"),
            ],
            id="a pod past its deadline is stopped and failed",
        ),
        pytest.param(
            {"run-for": "11m"},
            {},
            2700,
            [
                (0, "Pending"),
                (0, "Pending | ContainerCreating"),
                (3, "Running | running"),
                (663, "Running | exit 0 Completed"),
                (664, "Running | running x1"),
                (1324, "Running | exit 0 Completed x1"),
                (1325, "Running | running x2"),
                (1985, "Running | exit 0 Completed x2"),
                (1986, "Running | running x3"),
                (2646, "Running | exit 0 Completed x3"),
                (2647, "Running | running x4"),
            ],
            id="more than ten minutes of running forgets the back-off",
        ),
    ],
)
def test_life(behaviour: dict[str, str], spec: dict[str, Any], until: float, expected: list[tuple[float, str]]) -> None:
    assert story(behaviour, until, **spec) == expected


@pytest.mark.parametrize(
    ("behaviour", "spec", "grace", "ending"),
    [
        pytest.param(
            {"shutdown": "4s"},
            {},
            None,
            [(24, "Failed | exit 143 Error"), (24, "gone")],
            id="a container ends when it has shut down",
        ),
        pytest.param(
            {"shutdown": "10m"},
            {},
            None,
            [(50, "Failed | exit 137 Error"), (50, "gone")],
            id="a container that does not shut down is killed when its grace is over",
        ),
        pytest.param(
            {"shutdown": "10m"},
            {},
            5,
            [(25, "Failed | exit 137 Error"), (25, "gone")],
            id="a shorter grace asked for is the one that counts",
        ),
        pytest.param(
            {"run-for": "19s", "shutdown": "9s"},
            {"restartPolicy": "Never"},
            None,
            [(22, "Succeeded | exit 0 Completed"), (22, "gone")],
            id="a container that ends by itself meanwhile has ended well",
        ),
        pytest.param(
            {"shutdown": "2s"},
            {"initContainers": [container("a", restartPolicy="Always"), container("b", restartPolicy="Always")]},
            None,
            [(26, "Failed | exit 143 Error | exit 143 Error | exit 143 Error"), (26, "gone")],
            id="sidecars go one by one after the main container",
        ),
        pytest.param(
            {"missing-image": ""},
            {},
            None,
            [(20, "Failed | exit 137 ContainerStatusUnknown"), (20, "gone")],
            id="a pod that never started goes at once",
        ),
        pytest.param(
            {"shutdown": "1s"},
            {"containers": [container(lifecycle={"preStop": {"sleep": {"seconds": 5}}})]},
            None,
            [(26, "Failed | exit 143 Error"), (26, "gone")],
            id="a preStop hook comes first",
        ),
    ],
)
def test_graceful_termination(
    behaviour: dict[str, str], spec: dict[str, Any], grace: int | None, ending: list[tuple[float, str]]
) -> None:
    stage = Stage()
    stage.node()
    stage.pod(behaviour=behaviour, **spec)
    stage.to(20)
    stage.delete(grace=grace)
    stage.to(100)
    assert stage.seen[-len(ending) :] == ending


def test_a_finalizer_holds_a_stopped_pod() -> None:
    stage = Stage()
    stage.node()
    stage.pod(metadata={"finalizers": ["example.com/hold"]})
    stage.to(10)
    stage.delete()
    stage.to(60)
    assert stage.seen[-1] == (11.0, "Failed | exit 143 Error")
    assert stage.item().meta.deletion_grace_period_seconds == 0


def test_events_of_a_life_are_the_kubelets() -> None:
    stage = Stage()
    stage.node()
    stage.pod(
        behaviour={"run-for": "5s", "exit-code": "1"},
        containers=[container(livenessProbe=HTTP)],
        restartPolicy="Always",
    )
    stage.to(20)
    stage.delete()
    stage.to(30)
    assert [(at, reason) for at, reason, _ in stage.events] == [
        (0, "Pulling"),
        (3, "Pulled"),
        (3, "Created"),
        (3, "Started"),
        (9, "Pulled"),
        (9, "Created"),
        (9, "Started"),
        (14, "BackOff"),
    ]
    texts = {message.split(" in pod")[0] for _, _, message in stage.events}
    assert texts == {
        'Pulling image "registry.test/app:1"',
        'Successfully pulled image "registry.test/app:1" in 2s (2s including waiting). Image size: 246959648 bytes.',
        'Container image "registry.test/app:1" already present on machine and can be accessed by the pod',
        "Container created",
        "Container started",
        "Back-off restarting failed container app",
    }


def test_a_failed_probe_is_told_with_what_follows() -> None:
    stage = Stage()
    stage.node()
    probe = {"tcpSocket": {"port": 80}, "periodSeconds": 5, "failureThreshold": 1}
    stage.pod(behaviour={"fail-probe": "liveness after=10s"}, containers=[container(livenessProbe=probe)])
    stage.to(14)
    told = [(reason, message) for _, reason, message in stage.events][-2:]
    assert told == [
        ("Unhealthy", f"Liveness probe failed: dial tcp {stage.status().pod_ip}:80: connect: connection refused"),
        ("Killing", "Container app failed liveness probe, will be restarted"),
    ]


def test_the_back_off_tells_its_length() -> None:
    stage = Stage()
    stage.node()
    stage.pod(behaviour={"run-for": "1s", "exit-code": "1"})
    stage.to(400)
    waiting = stage.status().container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.message.startswith("back-off 5m0s restarting failed container=app pod=p_default(")


def test_an_image_that_lies_on_the_node_is_not_pulled() -> None:
    stage = Stage()
    node = stage.node()
    images = [{"names": ["registry.test/app:1"], "sizeBytes": 1}]
    stage.world.server.write_status(node, {**node.sections["status"].plain(), "images": images})
    stage.pod()
    stage.to(10)
    assert stage.seen[-1] == (1.0, "Running | running")
    assert [reason for _, reason, _ in stage.events] == ["Pulled", "Created", "Started"]


def test_another_image_restarts_the_container() -> None:
    stage = Stage()
    stage.node()
    stage.pod()
    stage.to(10)
    doc = stage.item().doc()
    doc["spec"]["containers"][0]["image"] = "registry.test/app:2"
    stage.world.server.update(stage.item().kind, "default", "p", doc)
    stage.to(20)
    status = stage.status().container_statuses[0]
    assert (status.image, status.restart_count) == ("registry.test/app:2", 1)
    assert ("Killing", "Container app definition changed, will be restarted") in [each[1:] for each in stage.events]


def test_a_pod_that_does_not_fit_is_refused() -> None:
    stage = Stage()
    stage.node()
    stage.pod("first", containers=[container(resources={"requests": {"cpu": "3"}})])
    stage.to(10)
    stage.pod("second", containers=[container(resources={"requests": {"cpu": "1500m"}})])
    stage.to(20)
    status = stage.status("second")
    why = "Node didn't have enough resource: cpu, requested: 1500, used: 3000, capacity: 4000"
    assert (status.phase, status.reason, status.message) == ("Failed", "OutOfcpu", f"Pod was rejected: {why}")
    assert (20 - 10, "OutOfcpu", why) in stage.events


def test_pods_that_are_over_leave_room_and_unknown_devices_are_passed_over() -> None:
    stage = Stage()
    stage.node()
    wants = container(resources={"limits": {"nvidia.com/gpu": "2"}})
    stage.pod("first", {"run-for": "5s"}, containers=[wants], restartPolicy="Never")
    stage.to(20)
    stage.pod("second", containers=[wants])
    stage.pod("third", containers=[wants])
    stage.pod("other", containers=[container(resources={"limits": {"example.com/fpga": "1"}})])
    stage.to(30)
    phases = {name: stage.status(name).phase for name in ("first", "second", "third", "other")}
    assert phases == {"first": "Succeeded", "second": "Running", "third": "Failed", "other": "Running"}
    assert stage.status("third").reason == "OutOfnvidia.com/gpu"
