"""`bayplan drain`, `cordon`, `uncordon`: which pods go, which stay, and what a budget does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.cli.drain_rules import Act, Rules, Verdict, summary, verdict
from bayplan.cluster import kinds
from tests.cli.serving import Command, Serving, deployment, pod, until

Doc = dict[str, Any]

_KEEPER = [{"kind": "ReplicaSet", "name": "web", "controller": True}]
_DAEMON = [{"kind": "DaemonSet", "name": "agent", "controller": True}]


def _pod(
    owners: list[Doc] | None = None, *, phase: str = "Running", local: bool = False, annotations: Doc | None = None
) -> Doc:
    meta = {"name": "p", "namespace": "ns", "ownerReferences": owners or [], "annotations": annotations or {}}
    volumes = [{"name": "v", "emptyDir": {}}] if local else []
    return {"metadata": meta, "spec": {"volumes": volumes}, "status": {"phase": phase}}


_ALL = Rules(force=True, ignore_daemonsets=True, delete_emptydir_data=True)


@pytest.mark.parametrize(
    ("one", "rules", "act", "words"),
    [
        pytest.param(_pod(_KEEPER), Rules(), Act.EVICT, "", id="a pod with a keeper goes"),
        pytest.param(_pod(), Rules(), Act.REFUSE, "use --force", id="a pod without one is not to be lost"),
        pytest.param(_pod(), _ALL, Act.EVICT, "declare no controller", id="unless forced"),
        pytest.param(_pod(phase="Succeeded"), Rules(), Act.EVICT, "", id="a finished pod goes"),
        pytest.param(_pod(_DAEMON), Rules(), Act.REFUSE, "use --ignore-daemonsets", id="a daemon would come back"),
        pytest.param(_pod(_DAEMON), _ALL, Act.LEAVE, "ignoring DaemonSet", id="so it is left, if told so"),
        pytest.param(_pod(_DAEMON, phase="Failed"), Rules(), Act.EVICT, "", id="a daemon that ended goes"),
        pytest.param(
            _pod(_KEEPER, local=True), Rules(), Act.REFUSE, "use --delete-emptydir-data", id="data would be lost"
        ),
        pytest.param(_pod(_KEEPER, local=True), _ALL, Act.EVICT, "local storage", id="unless it may be"),
        pytest.param(
            _pod(annotations={"kubernetes.io/config.mirror": "x"}), Rules(), Act.LEAVE, "", id="a static pod stays"
        ),
    ],
)
def test_each_pod_is_judged(one: Doc, rules: Rules, act: Act, words: str) -> None:
    found = verdict(one, rules)
    assert found.act is act
    assert words in found.words
    assert bool(found.words) == bool(words)


def test_what_is_said_is_said_once_for_all_pods() -> None:
    refused = Verdict(Act.REFUSE, "Pods of that sort")
    assert summary([(_pod(), refused), (_pod(), refused)], Act.REFUSE, "cannot delete ") == [
        "cannot delete Pods of that sort: ns/p, ns/p"
    ]


@pytest.fixture
def drained(serving: Serving, command: Command) -> Iterator[Command]:
    """Nodes are open again afterwards."""
    yield command
    command("uncordon", "n0", "n1", "n2")


def test_a_node_is_closed_and_opened(drained: Command) -> None:
    assert drained("cordon", "n1").out == "node/n1 cordoned\n"
    assert drained("cordon", "n1").out == "node/n1 already cordoned\n"
    assert drained("uncordon", "-l", "zone=z1").out == "node/n1 uncordoned\n"
    assert drained("cordon", "n1", "--dry-run").out == "node/n1 cordoned (dry run)\n"
    assert "SchedulingDisabled" not in drained("get", "node", "n1").out
    assert drained("cordon").code == 2
    assert drained("cordon", "nope") == (1, "", 'error: nodes "nope" not found\n')


def test_pods_move_to_other_nodes(drained: Command, serving: Serving) -> None:
    code, out, err = drained("drain", "n0", "n1", "--ignore-daemonsets", "--timeout=60s")
    assert (code, err) == (0, "")
    assert out.startswith("node/n0 cordoned\nnode/n1 cordoned\n")
    assert out.endswith("node/n1 drained\n")
    serving.do(until(serving.cluster, "web", 3))
    nodes = {row.split()[6] for row in drained("get", "pods", "-l", "app=web", "-o", "wide").out.splitlines()[1:]}
    assert nodes == {"n2"}


def test_a_pod_that_nobody_makes_anew_is_not_lost(drained: Command, serving: Serving) -> None:
    body = pod("lonely")
    body["spec"]["nodeName"] = "n0"
    serving.do(serving.cluster.create(kinds.POD, body, "default"))
    told = 'error: unable to drain node "n0": cannot delete Pods that declare no controller (use --force to override): '
    assert drained("drain", "n0")[::2] == (1, f"{told}default/lonely\n")
    assert drained("drain", "n0", "--force", "--grace-period=0").code == 0
    assert drained("get", "pod", "lonely").code == 1


def test_a_budget_is_honoured_until_patience_ends(drained: Command, serving: Serving) -> None:
    serving.do(serving.cluster.create(kinds.DEPLOYMENT, deployment("kept", 1), "default"))
    serving.do(until(serving.cluster, "kept", 1))
    budget = {"metadata": {"name": "kept"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}}
    serving.do(serving.cluster.create(kinds.POD_DISRUPTION_BUDGET, budget, "default"))
    node = drained("get", "pods", "-l", "app=kept", "-o", "wide", "--no-headers").out.split()[6]
    code, out, err = drained("drain", node, "--pod-selector=app=kept", "--timeout=1s")
    assert code == 1
    assert "would violate the pod's disruption budget" in err
    assert f'error: timed out after 1s: node "{node}" is not empty' in err
    assert "drained" not in out
    pretended = drained("drain", node, "--pod-selector=app=kept", "--dry-run=server")
    assert "would have to wait" in pretended.err
