"""What the status, the readiness and the restarts of a pod sum up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster import kinds
from bayplan.cluster.tables.table import table
from bayplan.model.clock import Instant, parse_rfc3339

NOW = parse_rfc3339("2026-01-02T12:00:00Z")
Doc = dict[str, Any]


def running(*, ready: bool = True) -> Doc:
    return {"state": {"running": {"startedAt": "2026-01-02T11:00:00Z"}}, "ready": ready, "restartCount": 0}


def waiting(reason: str) -> Doc:
    return {"state": {"waiting": {"reason": reason}}, "ready": False, "restartCount": 0}


def ended(code: int = 0, reason: str = "", signal: int = 0) -> Doc:
    return {"state": {"terminated": {"exitCode": code, "reason": reason, "signal": signal}}, "ready": False}


def sidecar(status: Doc, *, started: bool = True) -> Doc:
    return {**status, "started": started, "sidecar": True}


def restarted(status: Doc, times: int, at: str) -> Doc:
    return {**status, "restartCount": times, "lastState": {"terminated": {"exitCode": 1, "finishedAt": at}}}


def pod(*containers: Doc, init: tuple[Doc, ...] = (), deleted: bool = False, **status: Any) -> Doc:
    """A pod with these container statuses; the names follow from the order."""
    inits = [{"name": f"i{n}", **({"restartPolicy": "Always"} if s.get("sidecar") else {})} for n, s in enumerate(init)]
    return {
        "metadata": {"name": "p", **({"deletionTimestamp": "2026-01-02T12:00:30Z"} if deleted else {})},
        "spec": {"containers": [{"name": f"c{n}"} for n in range(len(containers))], "initContainers": inits},
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": f"c{n}", **each} for n, each in enumerate(containers)],
            "initContainerStatuses": [{"name": f"i{n}", **each} for n, each in enumerate(init)],
            **status,
        },
    }


def row(document: Doc, now: Instant = NOW) -> Doc:
    """A pod's cells by column."""
    told = table(kinds.POD, [document], now)
    columns = [each["name"] for each in told["columnDefinitions"]]
    return dict(zip(columns, told["rows"][0]["cells"], strict=True))


READY = [{"type": "Ready", "status": "True"}]
INITIALIZED = [{"type": "Initialized", "status": "True"}]
GATED = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]


@pytest.mark.parametrize(
    ("document", "status"),
    [
        pytest.param(pod(phase="Pending"), "Pending", id="without statuses it is the phase"),
        pytest.param(pod(phase="Failed", reason="Evicted"), "Evicted", id="a reason goes before the phase"),
        pytest.param(pod(phase="Pending", conditions=GATED), "SchedulingGated", id="a gate goes before both"),
        pytest.param(pod(init=(waiting("PodInitializing"), ended())), "Init:0/2", id="which init container it is at"),
        pytest.param(pod(init=(ended(), running())), "Init:1/2", id="one that succeeded is past"),
        pytest.param(pod(init=(waiting("ErrImagePull"),)), "Init:ErrImagePull", id="why the init container waits"),
        pytest.param(pod(init=(ended(3, "Error"),)), "Init:Error", id="how the init container failed"),
        pytest.param(pod(init=(ended(3),)), "Init:ExitCode:3", id="the exit code where there is no reason"),
        pytest.param(pod(init=(ended(137, signal=9),)), "Init:Signal:9", id="the signal before the exit code"),
        pytest.param(pod(running(), init=(sidecar(running()),)), "Running", id="a started sidecar is past"),
        pytest.param(
            pod(waiting("PodInitializing"), init=(sidecar(running(), started=False),)),
            "Init:0/1",
            id="a sidecar that has not started holds the pod",
        ),
        pytest.param(
            pod(waiting("Oops"), init=(running(),), conditions=INITIALIZED),
            "Oops",
            id="a pod that says it is initialized is judged by its containers",
        ),
        pytest.param(
            pod(running(), init=(running(),), conditions=INITIALIZED),
            "Init:0/1",
            id="the word of the init container stays when the containers say nothing",
        ),
        pytest.param(pod(waiting("A"), running(), waiting("B")), "A", id="the first container has the last word"),
        pytest.param(pod(ended(1), running()), "ExitCode:1", id="an exit code without a reason"),
        pytest.param(pod(ended(137, signal=9)), "Signal:9", id="a signal without a reason"),
        pytest.param(
            pod(ended(0, "Completed"), running(), conditions=READY),
            "Running",
            id="completed in part and ready is running",
        ),
        pytest.param(pod(ended(0, "Completed"), running()), "NotReady", id="completed in part and not ready"),
        pytest.param(pod(ended(0, "Completed"), ended(2, "Error")), "Error", id="an error goes before completed"),
        pytest.param(pod(ended(0, "Completed")), "Completed", id="completed"),
        pytest.param(pod(running(), deleted=True), "Terminating", id="deleted"),
        pytest.param(
            pod(ended(0, "Completed"), phase="Succeeded", deleted=True), "Completed", id="deleted once it was over"
        ),
        pytest.param(pod(running(), reason="NodeLost", deleted=True), "Unknown", id="deleted on a lost node"),
        pytest.param(pod(reason="NodeLost"), "NodeLost", id="on a lost node"),
    ],
)
def test_status(document: Doc, status: str) -> None:
    assert row(document)["Status"] == status


@pytest.mark.parametrize(
    ("document", "ready"),
    [
        pytest.param(pod(running(), running(ready=False)), "1/2", id="ready containers of all"),
        pytest.param(pod(running(), init=(sidecar(running()), ended())), "2/2", id="sidecars count"),
        pytest.param(pod(running(), init=(sidecar(ended()),)), "1/2", id="an ended sidecar is not ready"),
        pytest.param(pod(running(), init=(running(),)), "0/1", id="no container is ready before initialization ends"),
        pytest.param(
            pod(running(), init=(sidecar(running()), running())), "1/2", id="a sidecar is ready before the others start"
        ),
    ],
)
def test_ready(document: Doc, ready: str) -> None:
    assert row(document)["Ready"] == ready


QUARTER, HOURS = "2026-01-02T11:45:00Z", "2026-01-02T07:00:00Z"


@pytest.mark.parametrize(
    ("document", "restarts"),
    [
        pytest.param(pod(running()), "0", id="none"),
        pytest.param(
            pod(restarted(running(), 2, HOURS), restarted(running(), 1, QUARTER)), "3 (15m ago)", id="the latest"
        ),
        pytest.param(pod({**running(), "restartCount": 4}), "4", id="without a time"),
        pytest.param(pod(restarted(running(), 0, QUARTER)), "0", id="a time without a restart"),
        pytest.param(
            pod(restarted(running(), 9, QUARTER), init=(restarted(running(), 2, HOURS),)),
            "2 (5h ago)",
            id="of the init container that holds the pod",
        ),
        pytest.param(
            pod(running(), init=(restarted(ended(), 2, HOURS), sidecar(restarted(running(), 1, QUARTER)))),
            "1 (15m ago)",
            id="of init containers only the sidecars count afterwards",
        ),
    ],
)
def test_restarts(document: Doc, restarts: str) -> None:
    assert row(document)["Restarts"] == restarts


def test_wide_columns() -> None:
    document = pod(podIPs=[{"ip": "10.0.0.7"}, {"ip": "fd00::7"}], nominatedNodeName="n2", conditions=READY)
    document["spec"] |= {"nodeName": "n1", "readinessGates": [{"conditionType": "Ready"}, {"conditionType": "other"}]}
    wide = [row(document)[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")]
    assert wide == ["10.0.0.7", "n1", "n2", "1/2"]
    assert [row(pod())[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")] == ["<none>"] * 4


@pytest.mark.parametrize(
    ("phase", "reasons"),
    [("Running", []), ("Succeeded", ["Succeeded"]), ("Failed", ["Failed"])],
    ids=["a running pod's row has no condition", "a succeeded pod's row is completed", "a failed pod's row is, too"],
)
def test_row_conditions(phase: str, reasons: list[str]) -> None:
    (told,) = table(kinds.POD, [pod(phase=phase)], NOW)["rows"]
    assert [each["reason"] for each in told.get("conditions", [])] == reasons


STATES = st.builds(
    lambda status, count, is_sidecar, started: {
        **status,
        "restartCount": count,
        "started": started,
        **({"sidecar": True} if is_sidecar else {}),
    },
    st.sampled_from([running(), running(ready=False), waiting("X"), waiting(""), ended(), ended(1), ended(1, "Error")]),
    st.integers(0, 99),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(STATES, max_size=4), st.lists(STATES, max_size=4), st.booleans())
def test_no_more_is_ready_than_there_is(containers: list[Doc], init: list[Doc], deleted: bool) -> None:
    told = row(pod(*containers, init=tuple(init), deleted=deleted))
    ready, total = map(int, told["Ready"].split("/"))
    assert 0 <= ready <= total
    assert told["Status"]
    assert (told["Status"] == "Terminating") == deleted
    assert int(told["Restarts"]) <= sum(each["restartCount"] for each in (*containers, *init))
