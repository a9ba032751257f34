"""Pods without GPUs: most of their versions say nothing new, and one may turn out to have GPUs after all."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.live.reflector_core import Change
from bayplan.cluster.objects import Object
from bayplan.ledger.differ import guests
from bayplan.ledger.differ.facts import PodFacts, pod_facts
from bayplan.ledger.differ.gpus import GpuVendor, GpuVendors
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import PodRoomPeriod, Rows
from bayplan.ledger.store.port import Remembered
from tests.ledger.differ.lives import at, condition, node, pod

BOUND = condition("PodScheduled", "True", 5)
OFFERED = {"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi", "pods": "110"}


def guest(version: int, phase: str = "Running", **more: Any) -> Object:
    return pod(version, phase, BOUND, node="a", gpus=0, **more)


def taken(recording: Recording, second: float, obj: Object) -> list[PodRoomPeriod]:
    rows = Rows()
    recording.take(obj.kind, [Change("MODIFIED", obj)], When(at(second)), rows)
    return [row for row in rows if isinstance(row, PodRoomPeriod)]


@pytest.mark.parametrize(
    ("later", "counted"),
    [
        pytest.param(guest(3, status={"podIP": "10.0.0.1"}), False, id="it runs on"),
        pytest.param(guest(3, "Succeeded"), True, id="it has ended"),
        pytest.param(guest(3, spec={"priority": 7}), True, id="its spec is another"),
        pytest.param(
            guest(3, status={"conditions": [condition("PodResizeInProgress", "True")]}), True, id="it is being resized"
        ),
        pytest.param(guest(3, status={"phase": 4}), True, id="it cannot be read"),
    ],
)
def test_a_version_is_counted_only_where_it_may_take_something_else(
    later: Object, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording("c1")
    looks: list[Object] = []
    taken(recording, 1, node(1, OFFERED))
    assert len(taken(recording, 6, guest(2))) == 1

    def looked(obj: Object, *given: Any) -> PodFacts:
        looks.append(obj)
        return pod_facts(obj, *given)

    monkeypatch.setattr(guests, "pod_facts", looked)
    taken(recording, 7, later)
    assert bool(looks) == counted


def test_a_resize_is_followed_to_its_end_though_the_spec_stays() -> None:
    recording = Recording("c1")
    taken(recording, 1, node(1, OFFERED))
    taken(recording, 6, guest(2))
    resized = {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "9"}}}]}
    assert [row.cpu for row in taken(recording, 7, guest(3, spec=resized)) if row.end_at is None] == [9000]
    assert taken(recording, 8, guest(4, spec=resized)) == []
    assert [row.cpu for row in taken(recording, 9, guest(5)) if row.end_at is None] == [4000]


def test_one_that_has_gpus_by_another_setting_is_no_guest_any_more() -> None:
    chip = {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"example.com/chip": "1"}}}]}
    before = Recording("c1")
    taken(before, 1, node(1, {**OFFERED, "example.com/chip": "4"}))
    (period,) = taken(before, 6, guest(2, spec=chip))
    vendors = GpuVendors((GpuVendor("configured", ("example.com/chip",), ()),))
    after = Recording("c1", Remembered(periods=(period,)), vendors=vendors)
    taken(after, 7, guest(3, spec=chip))
    assert list(after.pods) == [period.pod_uid]
    assert after.guests.known() == {}
    assert list(after.known(POD).values()) == [(period.pod_uid, "3")]
    assert after.known(NODE) == {}
