"""What an account does not count, and what it does not count twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant
from bayplan.model.nodes import Node
from bayplan.simulate import seats, tally
from bayplan.simulate.eventlog import Writer
from bayplan.simulate.gpus import gpus_offered, is_cut
from bayplan.simulate.observer import Observer
from bayplan.simulate.summary import waits_of
from bayplan.simulate.tally import Tally, Wait

_HOUR = Instant(3600 * SECOND)


def _pod(uid: str, node: str = "") -> Object:
    meta = {"name": uid, "namespace": "t", "uid": uid, "creationTimestamp": "1970-01-01T00:00:00Z"}
    body = {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": "Pending"}}
    return Object.from_raw(POD, msgspec.json.encode(body))


def _node(gpus: int = 8, labels: Mapping[str, str] | None = None, **status: Any) -> Object:
    status |= {"allocatable": {"nvidia.com/gpu": str(gpus)}}
    return Object.from_raw(NODE, msgspec.json.encode({"metadata": {"name": "n", "labels": labels}, "status": status}))


def _began(found: Tally) -> None:
    found.note(_pod("old"), Instant(0), gone=False)
    found.begin()


@pytest.mark.parametrize(
    "met",
    [
        pytest.param(_began, id="all of them at once, as in a run on a twin"),
        pytest.param(
            lambda found: found.meet(_pod("old"), Instant(0)), id="one by one, as where an account begins anew"
        ),
    ],
)
def test_the_wait_of_a_pod_that_was_there_before_is_in_no_figure(met: Any) -> None:
    found = Tally(Instant(0))
    met(found)
    assert waits_of(found, _HOUR) is None
    found.note(_pod("new"), _HOUR, gone=False)
    for uid in ("old", "new"):
        found.note(_pod(uid, "n"), Instant(_HOUR + SECOND), gone=False)
    usage = found.usage(Instant(2 * _HOUR))
    assert (usage.created, usage.waits, usage.median_wait, usage.longest_wait) == (1, 1, 1.0, 1.0)
    assert found.placed == 2
    assert found.waited(Instant(2 * _HOUR), 0.5, 1.0) == [Wait(1.0, at_least=False)] * 2


class _Counted(list[float]):
    looks = 0

    def __iter__(self) -> Iterator[float]:
        self.looks += 1
        return super().__iter__()


def test_waits_in_vain_are_looked_through_no_more_often_the_more_pods_were_placed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, vain = Tally(Instant(0)), _Counted([3.0, 90.0])
    monkeypatch.setattr(found, "unplaced", lambda _now: vain)
    for number in range(50):
        found.note(_pod(f"{number}"), Instant(0), gone=False)
        found.note(_pod(f"{number}", "n"), Instant(number * SECOND), gone=False)
    assert found.waited(_HOUR, 0.02, 0.1, 1.0) == [Wait(1.0, False), Wait(4.0, True), Wait(90.0, True)]
    assert vain.looks < 5


_CUT = {"nvidia.com/gpu.product": "A100-SHARED", "nvidia.com/gpu.replicas": "4"}


@pytest.mark.parametrize(
    ("later", "times", "gpus"),
    [
        pytest.param(_node(conditions=[{"type": "Ready", "status": "True"}]), 0, 8.0, id="a heartbeat"),
        pytest.param(_node(gpus=6), 2, 6.0, id="a device that has failed"),
        pytest.param(_node(labels=_CUT), 2, 2.0, id="devices that are cut into pieces from now on"),
    ],
)
def test_gpus_of_a_node_are_counted_again_where_they_may_be_others(
    later: Object, times: int, gpus: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []

    def counting(node: Node) -> float:
        counted.append(node)
        return gpus_offered(node)

    with Writer(None) as log:
        observer = Observer(log, Instant(0))
        observer.note(_node(), None, Instant(0), gone=False)
        monkeypatch.setattr(seats, "gpus_offered", counting)
        monkeypatch.setattr(tally, "gpus_offered", counting)
        observer.note(later, _node(), Instant(0), gone=False)
        assert len(counted) == times
        assert observer.totals[2] == gpus
        assert observer.tally.usage(_HOUR).idle_gpu_hours == gpus
        assert observer.seats["n"].is_cut == is_cut(later.view(Node))
        observer.note(later, later, _HOUR, gone=True)
    assert observer.tally.usage(Instant(2 * _HOUR)).idle_gpu_hours == gpus
