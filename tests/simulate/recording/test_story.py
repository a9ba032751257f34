"""The lives of pods as a recording tells them, and how they are lived again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, VirtualClock, rfc3339
from bayplan.simulate.recording.file import Entry
from bayplan.simulate.recording.story import PodLife, story_of
from bayplan.testing import pod
from bayplan.testing.pods import PodManifest

START = VirtualClock().now()
RUNS = {"containerStatuses": [{"name": "web", "state": {"running": {}}}]}


def _at(second: float) -> Instant:
    return Instant(START + int(second * SECOND))


def _entry(second: float, kind: Any, made: PodManifest, **more: Any) -> Entry:
    document = made.having("metadata.uid", "u1").document()
    return Entry(_at(second), kind, Object.from_raw(POD, msgspec.json.encode(document)), **more)


SYNCED = Entry(START, "SYNCED")
WEB = pod("web").requests(cpu=1)


def _life(*entries: Entry) -> PodLife:
    (life,) = story_of([SYNCED, *entries, Entry(_at(100), "END")], START).pods.values()
    return life


def _said(life: PodLife) -> dict[str, str]:
    found = life.document()["metadata"]["annotations"]
    return {key.removeprefix("behaviour.bayplan.dev/"): text for key, text in found.items()}


@pytest.mark.parametrize(
    ("entries", "left", "said"),
    [
        pytest.param(
            [_entry(1, "ADDED", WEB), _entry(2, "MODIFIED", WEB.on("a").phase("Running", **RUNS))],
            None,
            {"run-for": "forever", "pull": "0s", "start": "0.000s"},
            id="one that runs goes on for ever",
        ),
        pytest.param(
            [
                _entry(1, "ADDED", WEB),
                _entry(2, "MODIFIED", WEB.on("a")),
                _entry(5, "MODIFIED", WEB.on("a").phase("Running", **RUNS)),
                _entry(35, "MODIFIED", WEB.on("a").phase("Failed")),
                _entry(50, "DELETED", WEB.on("a").phase("Failed")),
            ],
            _at(35),
            {"run-for": "30.000s", "pull": "0s", "start": "3.000s", "exit-code": "1"},
            id="one that failed fails as late after its start",
        ),
        pytest.param(
            [_entry(1, "ADDED", WEB), _entry(9, "DELETED", WEB)],
            _at(9),
            {"run-for": "forever"},
            id="one that was deleted while it waited",
        ),
        pytest.param(
            [_entry(1, "ADDED", WEB.behaves(run_for="1s", exit_code=3))],
            None,
            {"run-for": "forever"},
            id="what a pod said of itself is replaced by what it did",
        ),
    ],
)
def test_a_life(entries: list[Entry], left: Instant | None, said: dict[str, str]) -> None:
    life = _life(*entries)
    assert life.left == left
    assert _said(life) == said


def test_a_pod_comes_again_without_its_place_its_owner_and_what_others_filled_in() -> None:
    made = WEB.on("a").having("spec.priority", 7).having("metadata.ownerReferences", [{"kind": "Job", "uid": "j"}])
    document = _life(_entry(1, "ADDED", made)).document()
    assert document["metadata"]["ownerReferences"] == []
    assert {"nodeName", "priority"}.isdisjoint(document["spec"])
    assert _life(_entry(1, "ADDED", made)).document(keep_place=True)["spec"]["nodeName"] == "a"


def test_a_gated_pod_arrives_when_its_gates_have_gone() -> None:
    assert _life(_entry(1, "ADDED", WEB.gated("later")), _entry(8, "MODIFIED", WEB)).arrived == _at(8)


def test_a_pod_of_which_one_heard_late_arrived_when_it_was_made() -> None:
    made = WEB.having("metadata.creationTimestamp", rfc3339(_at(3)))
    assert _life(_entry(8, "ADDED", made, late=True)).arrived == _at(3)


def test_a_pod_that_was_over_when_the_recording_began_is_not_told() -> None:
    over = _entry(0, "ADDED", WEB.on("a").phase("Succeeded"))
    assert not story_of([over, SYNCED], START).pods


def test_a_pod_that_was_there_has_only_the_rest_of_its_life() -> None:
    started = {"containerStatuses": [{"name": "web", "state": {"running": {"startedAt": "2025-12-31T00:00:00Z"}}}]}
    there = _entry(0, "ADDED", WEB.on("a").phase("Running", **started))
    over = _entry(20, "MODIFIED", WEB.on("a").phase("Succeeded"))
    (life,) = story_of([there, SYNCED, over], START).pods.values()
    assert life.there_before
    assert _said(life)["run-for"] == "20.000s"
