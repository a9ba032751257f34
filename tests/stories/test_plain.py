"""Chance is taken out of what is observed, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stories.compare import compare
from tests.stories.plain import Roles, states, told
from tests.stories.run import Seen
from tests.stories.story import Doc, Known, Step, Story, is_like


def replica_set(name: str, created: str) -> Doc:
    owner = {"kind": "Deployment", "name": "web"}
    return {
        "kind": "ReplicaSet",
        "metadata": {"name": name, "creationTimestamp": created, "ownerReferences": [owner]},
    }


def event(kind: str, name: str, component: str, reason: str, message: str = "") -> Doc:
    about = {"kind": kind, "name": name, "uid": name}
    return {
        "involvedObject": about,
        "reportingComponent": component,
        "type": "Normal",
        "reason": reason,
        "message": message,
    }


@pytest.fixture
def roles() -> Roles:
    found = Roles()
    found.learn([replica_set("web-7f9c5", "2026-01-01T00:00:01Z"), replica_set("web-5d4fbb", "2026-01-01T00:00:00Z")])
    return found


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        pytest.param("Scaled up replica set web-7f9c5 to 3", "Scaled up replica set web#2 to 3", id="by age"),
        pytest.param("Created pod: web-5d4fbb-x2x5z", "Created pod: web#1-*", id="a pod is its owner and a star"),
        pytest.param("7f9c5", "#2", id="a label's hash"),
        pytest.param("to node-2", "to <node>", id="any of the common nodes"),
        pytest.param("to node-20", "to node-20", id="not a node that only begins so"),
        pytest.param("Created job tick-29913342", "Created job tick-<minute>", id="a CronJob's minute"),
        pytest.param("at 2026-01-01T00:00:00Z from 10.0.0.1", "at <time> from <address>", id="times and addresses"),
        pytest.param("0/7 nodes are available: 7 Insufficient cpu.", "no node is available", id="others' nodes"),
        pytest.param("pods=1, used: pods=2", "pods=1, used: pods=2", id="numbers stay"),
    ],
)
def test_texts(roles: Roles, text: str, plain: str) -> None:
    assert roles.text(text) == plain


def test_roles_stay_when_more_come(roles: Roles) -> None:
    roles.learn([replica_set("web-99999", "2025-01-01T00:00:00Z")])
    assert roles.text("web-5d4fbb web-7f9c5 web-99999") == "web#1 web#2 web#3"


def test_pods_of_one_role_are_told_apart_by_their_looks(roles: Roles) -> None:
    def pod(suffix: str, phase: str) -> Doc:
        return {
            "kind": "Pod",
            "metadata": {"name": f"web-7f9c5-{suffix}", "uid": suffix},
            "spec": {"containers": [], "nodeName": "node-1"},
            "status": {"phase": phase, "podIP": "10.0.0.1"},
        }

    one = states([pod("bbbbb", "Running"), pod("ccccc", "Pending")], roles)
    other = states([pod("ddddd", "Pending"), pod("fffff", "Running")], roles)
    assert one == other
    assert [*one] == ["Pod web#2-* (1 of 2)", "Pod web#2-* (2 of 2)"]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        pytest.param(["a", "b"], ["b", "a"], True, id="who works in parallel may tell in any order"),
        pytest.param(["a", "a", "b"], ["a", "b"], True, id="repetitions count once"),
        pytest.param(["a"], ["b"], False, id="the words count"),
    ],
)
def test_events_of_a_replica_set(roles: Roles, first: list[str], second: list[str], same: bool) -> None:
    def told_of(words: list[str]) -> Any:
        events = [event("ReplicaSet", "x", "replicaset-controller", "SuccessfulCreate", word) for word in words]
        return told(events, 0, roles)

    assert (told_of(first) == told_of(second)) is same


def test_a_deployments_events_have_an_order(roles: Roles) -> None:
    events = [event("Deployment", "web", "deployment-controller", "ScalingReplicaSet", word) for word in "ab"]
    assert told(events, 0, roles) != told(events[::-1], 0, roles)


def test_only_what_is_new_is_told_and_a_retry_never_again(roles: Roles) -> None:
    failed = event("Pod", "a", "default-scheduler", "FailedScheduling", "0/1 nodes are available: x")
    events = [
        failed,
        failed,
        event("Pod", "a", "default-scheduler", "Scheduled"),
        event("Pod", "a", "kubelet", "Pulled"),
    ]
    assert told(events, 1, roles) == {"Pod a": [["default-scheduler: Normal Scheduled: "]]}


@pytest.mark.parametrize(
    ("found", "wanted", "like"),
    [
        pytest.param({"a": 1, "b": 2}, {"a": 1}, True, id="more may be there"),
        pytest.param({"a": [{"t": 1, "s": 2}, {"t": 3}]}, {"a": [{"t": 3}]}, True, id="a list holds one like it"),
        pytest.param({"a": [{"t": 1}]}, {"a": [{"t": 3}]}, False, id="a list holds none like it"),
        pytest.param({}, {"a": 0}, False, id="absent is not zero"),
    ],
)
def test_likeness(found: Doc, wanted: Doc, like: bool) -> None:
    assert is_like(found, wanted) is like


def test_every_difference_has_its_place_and_the_known_are_marked() -> None:
    known = Known(at="*/status/n", reason="chance", step=1)
    story = Story(title="t", see=[], steps=[Step(tell="a"), Step(tell="b")], differences=[known])
    lab, embedded = ([Seen([], {"Pod a": {"status": {"n": n}}}, {})] * 2 for n in (1, 2))
    assert [(each.step, each.place, each.lab, each.embedded, each.known) for each in compare(story, lab, embedded)] == [
        (1, "/objects/Pod a/status/n", 1, 2, known),
        (2, "/objects/Pod a/status/n", 1, 2, None),
    ]
