"""Objects that are not what they should be are recorded as far as they can be, and complained of once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object, Section
from bayplan.ledger.differ import nodes
from bayplan.ledger.differ.reading import TEXT
from bayplan.ledger.rows import GpuNode, GpuPeriod, GpuPod, GpuPodsEvent, NodePeriod, NodeRoomPeriod, PendingPeriod
from bayplan.model.meta import ObjectMeta
from tests.ledger.differ.lives import Watcher, at, condition, container, node, pod, seen, text

BOUND = condition("PodScheduled", "True", 5)


@pytest.mark.parametrize(
    ("fields", "code", "phase", "gpus", "bound"),
    [
        pytest.param({"status": {"phase": 7}}, "BP-D020", "", 1000, 5, id="a phase that is a number"),
        pytest.param({"status": {"reason": ["x"]}}, "BP-D020", "Running", 1000, 5, id="a reason that is a list"),
        pytest.param(
            {"status": {"conditions": ["x", BOUND]}}, "BP-D020", "Running", 1000, 5, id="a condition that is a text"
        ),
        pytest.param(
            {"status": {"containerStatuses": {"a": 1}}}, "BP-D020", "Running", 1000, 5, id="statuses that are no list"
        ),
        pytest.param({"spec": {"tolerations": 3}}, "BP-D020", "Running", 1000, 5, id="tolerations that are a number"),
        pytest.param(
            {"spec": {"nodeSelector": {"a": 1, "b": "c"}}}, "BP-D020", "Running", 1000, 5, id="a label that is a number"
        ),
        pytest.param({"gpus": "many"}, "BP-D021", "Running", 0, 5, id="a quantity that is none"),
        pytest.param({"gpus": "-4"}, None, "Running", 0, 5, id="less than nothing"),
        pytest.param({"gpus": "1e300"}, None, "Running", 2**63 - 1, 5, id="more than there can be"),
        pytest.param({"meta": {"creationTimestamp": None}}, "BP-D022", "Running", 1000, 5, id="no creation"),
        pytest.param({"meta": {"creationTimestamp": "soon"}}, "BP-D022", "Running", 1000, 5, id="no real creation"),
        pytest.param({"meta": {"uid": ""}}, "BP-D023", "Running", 1000, 5, id="no uid"),
        pytest.param({"status": {"phase": "x" * 900}}, "BP-D024", "x" * 900, 1000, 5, id="a phase as long as a page"),
        pytest.param(
            {"meta": {"annotations": {"a": "x" * 1_000_000}}}, None, "Running", 1000, 5, id="1 MB of annotation"
        ),
        pytest.param({"status": {"qosClass": None, "conditions": [BOUND]}}, None, "Running", 1000, 5, id="nulls"),
    ],
)
def test_odd_pods(fields: dict[str, Any], code: str | None, phase: str, gpus: int, bound: int) -> None:
    watcher = Watcher()
    watcher.see(20, pod(1, "Running", BOUND, node="a", **fields))
    assert watcher.pod is not None
    assert [odd.code for odd in watcher.pod.odd] == ([code] if code else [])
    (row,) = watcher.all(GpuPod)
    # Without a creation time there is none before the pod was seen, and nothing is bound before it is created.
    created_known = code != "BP-D022"
    assert (row.phase, row.gpu_allocated) == (phase, gpus)
    assert row.bound_at == (at(bound) if created_known else at(20))
    watcher.see(21, pod(2, "Running", BOUND, node="a", **fields))
    assert watcher.pod.odd == (), "it was said once"
    watcher.restart()
    watcher.see(22, pod(3, "Running", BOUND, node="a", **fields))
    assert watcher.pod.odd == (), "and is not said again after a restart"


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({}, id="neither spec nor status"),
        pytest.param({"spec": None, "status": None}, id="null for both"),
        pytest.param({"spec": [], "status": "gone"}, id="a list and a text"),
        pytest.param({"spec": {"containers": [None, 3]}, "status": {"conditions": [None]}}, id="nothings in lists"),
    ],
)
def test_hardly_a_pod(sections: dict[str, Any]) -> None:
    watcher = Watcher()
    raw = json.dumps({"metadata": {"name": "p", "uid": "u", "resourceVersion": "5"}, **sections}).encode()
    watcher.see(20, Object.from_raw(POD, raw))
    assert [(row.name, row.created_at) for row in watcher.all(GpuPod)] == [("p", at(20))]


@pytest.mark.parametrize(
    ("half", "kept"),
    [
        pytest.param(rb"half: \ud83d", "half: \ufffd", id="a lone surrogate, escaped"),
        pytest.param(b"half: \xf0\x9f", "half: \ufffd", id="bytes that are no UTF-8"),
    ],
)
def test_half_a_character_does_not_hide_the_rest(half: bytes, kept: str) -> None:
    watcher = Watcher()
    status = Section(b'{"phase":"Failed","message":"%b"}' % half)
    watcher.see(20, Object(POD, ObjectMeta(name="p", uid="u1"), {"status": status}, 1))
    (event,) = watcher.all(GpuPodsEvent)
    assert (event.value, event.message) == ("Failed", kept)


def test_a_text_without_end_is_cut_the_same_way_always() -> None:
    watcher = Watcher()
    wordy = condition("PodScheduled", "False", 1, "Unschedulable", "x" * 100_000 + "\0")
    watcher.see(2, pod(1, "Pending", wordy))
    watcher.restart()
    watcher.see(9, pod(2, "Pending", wordy))
    assert [(row.start_at, len(row.message)) for row in watcher.all(PendingPeriod)] == [(at(0), 0), (at(1), TEXT)]


def test_a_time_in_a_far_future_is_no_time() -> None:
    watcher = Watcher()
    late = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "9999-01-01T00:00:00Z"}
    watcher.see(20, pod(1, "Pending", late, node="a"))
    assert [row.start_at for row in watcher.all(GpuPeriod)] == [at(0)]


def test_absurd_counts_fit_their_columns() -> None:
    watcher = Watcher()
    watcher.see(1, pod(1, "Running", node="a"))
    watcher.see(2, pod(2, "Running", node="a", containers=(container({}, 2**62),)))
    assert max(row.restart_count for row in watcher.all(GpuPodsEvent)) == 2**31 - 1


def test_an_odd_node_is_kept() -> None:
    known, rows = nodes.changed(None, node(1, {"nvidia.com/gpu": "many", "amd.com/gpu": "2", "cpu": 7}), seen(5))
    assert (known.row.gpu_capacity, known.row.created_at) == (2000, at(0))
    assert {odd.code for odd in known.odd} == {"BP-D020", "BP-D021"}
    assert {type(row) for row in rows} == {GpuNode, NodePeriod, NodeRoomPeriod}
    assert text(0) == "2026-01-01T00:00:00Z"


_WORDS = ("phase", "conditions", "type", "status", "containers", "resources", "requests", "nvidia.com/gpu", "name")
_MORE = ("containerStatuses", "state", "terminated", "finishedAt", "restartCount", "nodeName", "lastTransitionTime")
_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(("Failed", "True", "PodScheduled")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_WORDS + _MORE), inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(st.tuples(_ANYTHING, _ANYTHING), min_size=1, max_size=3))
def test_nothing_stops_the_stream(versions: list[tuple[Any, Any]]) -> None:
    watcher = Watcher()
    for number, (spec, status) in enumerate(versions, 1):
        meta = {"name": "p", "uid": "u", "resourceVersion": str(number)}
        raw = json.dumps({"metadata": meta, "spec": spec, "status": status}).encode()
        assert len(watcher.see(20, Object.from_raw(POD, raw)))
        watcher.restart()
    watcher.lose(30)
    assert len(watcher.all(GpuPod)) == 1
