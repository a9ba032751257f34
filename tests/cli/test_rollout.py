"""`bayplan rollout`: how far it is, and the way back."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cli.rollout_state import RolloutError, chosen, progress, revisions
from bayplan.cluster import kinds
from tests.cli.serving import Command, Serving, deployment, until

Doc = dict[str, Any]


def _workload(kind: str, status: Doc, spec: Doc | None = None) -> Doc:
    meta = {"name": "w", "uid": "u", "generation": 2}
    return {
        "kind": kind,
        "metadata": meta,
        "spec": {"replicas": 3, **(spec or {})},
        "status": {"observedGeneration": 2, **status},
    }


@pytest.mark.parametrize(
    ("workload", "words", "done"),
    [
        pytest.param(
            _workload("Deployment", {"observedGeneration": 1}), "spec update to be observed", False, id="unseen"
        ),
        pytest.param(_workload("Deployment", {"updatedReplicas": 1}), "1 out of 3 new replicas", False, id="made"),
        pytest.param(
            _workload("Deployment", {"updatedReplicas": 3, "replicas": 5}),
            "2 old replicas are pending",
            False,
            id="unmade",
        ),
        pytest.param(
            _workload("Deployment", {"updatedReplicas": 3, "replicas": 3, "availableReplicas": 1}),
            "1 of 3 updated replicas are available",
            False,
            id="ready",
        ),
        pytest.param(
            _workload("Deployment", {"updatedReplicas": 3, "replicas": 3, "availableReplicas": 3}),
            'deployment "w" successfully rolled out',
            True,
            id="a deployment that is done",
        ),
        pytest.param(
            _workload("DaemonSet", {"desiredNumberScheduled": 4, "updatedNumberScheduled": 1}),
            "1 out of 4 new pods",
            False,
            id="a daemon set",
        ),
        pytest.param(
            _workload("DaemonSet", {"desiredNumberScheduled": 4, "updatedNumberScheduled": 4, "numberAvailable": 4}),
            'daemon set "w" successfully rolled out',
            True,
            id="a daemon set that is done",
        ),
        pytest.param(
            _workload("StatefulSet", {"readyReplicas": 1}), "Waiting for 2 pods to be ready", False, id="a stateful set"
        ),
        pytest.param(
            _workload(
                "StatefulSet",
                {"readyReplicas": 3, "updatedReplicas": 1},
                {"updateStrategy": {"rollingUpdate": {"partition": 1}}},
            ),
            "1 out of 2 new pods",
            False,
            id="a part of a stateful set",
        ),
        pytest.param(
            _workload("StatefulSet", {"readyReplicas": 3, "updateRevision": "b", "currentRevision": "a"}),
            "at revision b",
            False,
            id="a stateful set between two revisions",
        ),
        pytest.param(
            _workload(
                "StatefulSet", {"readyReplicas": 3, "updateRevision": "b", "currentRevision": "b", "currentReplicas": 3}
            ),
            "statefulset rolling update complete 3 pods at revision b",
            True,
            id="a stateful set that is done",
        ),
    ],
)
def test_a_rollout_says_how_far_it_is(workload: Doc, words: str, done: bool) -> None:
    found = progress(workload)
    assert words in found.words
    assert found.done is done


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        pytest.param(
            _workload("Deployment", {"conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]}),
            "exceeded its progress deadline",
            id="too late",
        ),
        pytest.param(
            _workload("DaemonSet", {}, {"updateStrategy": {"type": "OnDelete"}}), "RollingUpdate", id="by hand"
        ),
        pytest.param(_workload("Job", {}), "no rollouts of Job", id="a job"),
    ],
)
def test_a_rollout_that_will_not_end_is_an_error(workload: Doc, words: str) -> None:
    with pytest.raises(RolloutError, match=words):
        progress(workload)


def _made(number: int) -> Doc:
    owner = [{"uid": "u", "controller": True}]
    meta = {"annotations": {"deployment.kubernetes.io/revision": str(number)}, "ownerReferences": owner}
    labels = {"app": "w", "pod-template-hash": "x"}
    return {"kind": "ReplicaSet", "metadata": meta, "spec": {"template": {"metadata": {"labels": labels}}}}


def test_revisions_are_told_in_order_and_without_the_hash() -> None:
    others = {**_made(9), "metadata": {"annotations": {"deployment.kubernetes.io/revision": "9"}}}
    found = revisions(_workload("Deployment", {}), [_made(10), _made(2), others])
    assert [each.number for each in found] == [2, 10]
    assert found[0].template == {"metadata": {"labels": {"app": "w"}}}
    assert (chosen(found, 0).number, chosen(found, 10).number) == (2, 10)
    for number, list_ in ((3, found), (0, found[:1])):
        with pytest.raises(RolloutError):
            chosen(list_, number)


@pytest.mark.slow
def test_a_rollout_is_followed_undone_restarted_paused_and_resumed(command: Command, serving: Serving) -> None:
    name = "deploy/rolled"
    serving.do(serving.cluster.create(kinds.DEPLOYMENT, deployment("rolled", 2), "default"))
    assert command("rollout", "status", name, "--timeout=60s").out.endswith(
        'deployment "rolled" successfully rolled out\n'
    )
    assert command("rollout", "undo", name).err.startswith("error: no last revision to roll back to\n")
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}}}
    serving.do(serving.cluster.patch(kinds.DEPLOYMENT, patch, "rolled", "default"))
    assert command("rollout", "status", name, "--timeout=60s").code == 0
    assert command("rollout", "undo", name).out == "deployment.apps/rolled rolled back\n"
    assert command("rollout", "status", name, "--timeout=60s").code == 0
    assert "nginx:1" in command("rollout", "history", name, "--revision=3").out
    assert command("rollout", "history", name).out == (
        "deployment.apps/rolled\nREVISION   CHANGE-CAUSE\n2          <none>\n3          <none>\n\n"
    )
    assert "already matches revision 3" in command("rollout", "undo", name, "--to-revision=3").out
    assert command("rollout", "pause", name).out == "deployment.apps/rolled paused\n"
    assert command("rollout", "pause", name).code == 1
    assert command("rollout", "restart", name).code == 1
    assert command("rollout", "resume", name).out == "deployment.apps/rolled resumed\n"
    assert command("rollout", "restart", name).out == "deployment.apps/rolled restarted\n"
    serving.do(until(serving.cluster, "rolled", 2))
