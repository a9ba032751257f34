"""The account of a run adds up."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.cluster.kinds import NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant
from bayplan.simulate.tally import Tally

_HOUR = 3600 * SECOND


def _object(kind: Kind, document: dict[str, Any]) -> Object:
    return Object.from_raw(kind, msgspec.json.encode(document))


def _node(name: str = "n", **labels: str) -> Object:
    resource = "nvidia.com/gpu.shared" if labels else "nvidia.com/gpu"
    meta = {"name": name, "labels": {f"nvidia.com/gpu.{key}": value for key, value in labels.items()}}
    return _object(NODE, {"metadata": meta, "status": {"allocatable": {resource: "8"}}})


def _pod(node: str = "", phase: str = "Pending", *, gpus: int = 2, resource: str = "nvidia.com/gpu") -> Object:
    meta = {"name": "p", "namespace": "vision", "uid": "u", "creationTimestamp": "1970-01-01T00:00:00Z"}
    container = {"name": "c", "resources": {"requests": {resource: str(gpus)}}}
    spec = {"containers": [container], "nodeName": node}
    return _object(POD, {"metadata": meta, "spec": spec, "status": {"phase": phase}})


@pytest.fixture
def tally() -> Tally:
    tally = Tally(Instant(0))
    tally.note(_node(), Instant(0), gone=False)
    return tally


def test_a_pod_holds_its_gpus_from_its_binding_to_its_end(tally: Tally) -> None:
    for hour, pod in enumerate((_pod(), _pod("n"), _pod("n", "Running"), _pod("n", "Succeeded"))):
        tally.note(pod, Instant(hour * _HOUR), gone=False)
    tally.note(_pod("n", "Succeeded"), Instant(5 * _HOUR), gone=True)
    usage = tally.usage(Instant(6 * _HOUR))
    assert usage.gpu_hours == {"vision": 4.0}
    assert usage.idle_gpu_hours == 6 * 8 - 4
    assert (usage.created, usage.succeeded, usage.failed, usage.running, usage.pending) == (1, 1, 0, 0, 0)
    assert (usage.waits, usage.median_wait) == (1, 3600.0)


def test_a_pod_that_is_deleted_gives_its_gpus_back(tally: Tally) -> None:
    tally.note(_pod("n", "Running"), Instant(0), gone=False)
    tally.note(_pod("n", "Running"), Instant(_HOUR), gone=True)
    assert tally.usage(Instant(9 * _HOUR)).gpu_hours == {"vision": 2.0}


def test_a_share_is_a_part_of_a_gpu() -> None:
    tally = Tally(Instant(0))
    tally.note(_node("shared", replicas="4"), Instant(0), gone=False)
    tally.note(_pod("shared", "Running", gpus=1, resource="nvidia.com/gpu.shared"), Instant(0), gone=False)
    usage = tally.usage(Instant(_HOUR))
    assert (usage.gpu_hours, usage.idle_gpu_hours) == ({"vision": 0.25}, 1.75)


def test_what_was_there_before_is_held_but_not_counted_as_new(tally: Tally) -> None:
    tally.meet(_pod("n", "Running"), Instant(0))
    usage = tally.usage(Instant(_HOUR))
    assert (usage.created, usage.waits, usage.running, usage.gpu_hours) == (0, 0, 1, {"vision": 2.0})
    tally.note(_pod("n", "Failed"), Instant(_HOUR), gone=False)
    assert tally.usage(Instant(_HOUR)).failed == 1


def test_nothing_happened_in_no_time() -> None:
    usage = Tally(Instant(0)).usage(Instant(0))
    assert (usage.median_wait, usage.gpu_hours, usage.idle_gpu_hours) == (None, {}, 0.0)
