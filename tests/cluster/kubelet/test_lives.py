"""Whatever a pod asks for and however it behaves, the kubelet keeps its promises."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.embedded.kubelet.behaviour import Defaults
from bayplan.cluster.embedded.store import Change
from bayplan.cluster.kinds import POD
from bayplan.model.pods import Pod
from tests.cluster.kubelet.stage import Stage, container

_RANK = {"Pending": 0, "Running": 1, "Succeeded": 2, "Failed": 2}
spans = st.integers(0, 90).map(lambda second: f"{second}s")
probes = st.fixed_dictionaries(
    {"httpGet": st.just({"port": 80}), "periodSeconds": st.integers(1, 15), "failureThreshold": st.integers(1, 4)},
    optional={"initialDelaySeconds": st.integers(0, 20)},
)
behaviours = st.fixed_dictionaries(
    {},
    optional={
        "pull": spans,
        "start": spans,
        "run-for": spans,
        "exits": st.lists(st.sampled_from("0123"), min_size=1, max_size=4).map(",".join),
        "ready-after": spans,
        "shutdown": spans,
        "oom-after": spans,
        "fail-probe": st.tuples(st.sampled_from(["liveness", "readiness", "startup"]), spans, spans).map(
            lambda each: f"{each[0]} after={each[1]} for={each[2]}"
        ),
        "missing-image": st.sampled_from(["true", "false"]),
    },
)
probed = st.fixed_dictionaries({}, optional={"livenessProbe": probes, "readinessProbe": probes, "startupProbe": probes})
init = st.lists(st.sampled_from([{}, {"restartPolicy": "Always"}]), max_size=3)


def test_the_same_calls_give_the_same_bytes() -> None:
    def history() -> list[bytes]:
        stage = Stage(Defaults())
        seen: list[bytes] = []
        stage.world.store.listeners.append(lambda change: seen.append(change.new.raw()))
        stage.node()
        for number in range(5):
            stage.pod(f"p{number}", {"run-for": "20s", "exits": "1,0"})
        stage.to(200)
        return seen

    assert history() == history()


def test_a_pod_deleted_before_its_kubelet_saw_it_is_let_go() -> None:
    stage = Stage()
    stage.pod()
    stage.to(1)
    stage.delete()
    stage.node()
    stage.to(2)
    assert stage.world.store.count(POD) == 0


@settings(max_examples=60, deadline=None)
@given(
    behaviours,
    probed,
    init,
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.lists(st.integers(1, 400), min_size=1, max_size=4),
    st.none() | st.integers(0, 60),
)
def test_every_life_is_orderly(
    behaviour: dict[str, str],
    probe: dict[str, Any],
    before: list[dict[str, str]],
    policy: str,
    looks: list[int],
    grace: int | None,
) -> None:
    stage = Stage(Defaults())
    phases: list[str] = []
    writes: list[Change] = []

    def watch(change: Change) -> None:
        if change.kind is POD:
            writes.append(change)
            phases.append(change.new.view(Pod).status.phase)

    stage.world.store.listeners.append(watch)
    stage.node()
    stage.pod(
        behaviour=behaviour,
        restartPolicy=policy,
        containers=[container(**probe)],
        initContainers=[container(f"init-{number}", **each) for number, each in enumerate(before)],
    )
    at = 0
    for span in looks:
        at += span
        stage.to(at)  # asserts that the kubelet has nothing left to say
    ranks = [_RANK[phase] for phase in phases]
    assert ranks == sorted(ranks)
    assert len(writes) < 20 + at  # never busy
    stage.delete(grace=grace)
    stage.to(at + 31 + (grace or 0))
    assert stage.world.store.count(POD) == 0
