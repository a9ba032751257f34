"""What pods hold stands in their records alone: over restarts, when tampered with; and nothing is given twice."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.kinds import NODE, POD
from bayplan.model.pods import Pod
from bayplan.node.annotations.holdings import HOLDINGS
from bayplan.node.sets import parse_list
from tests.cluster.kubelet.machines import (
    MEMORY,
    RESTRICTED,
    STATIC,
    WHOLE_CORES,
    Doc,
    asks,
    gpu,
    held,
    outcome,
    record,
    stage_with,
)
from tests.cluster.kubelet.stage import Stage, container

# --- nothing is kept in the kubelet


def restarted(stage: Stage) -> Stage:
    """Another engine with the same objects: all that a restart leaves."""
    again = Stage()
    again.world.chance.setstate(stage.world.chance.getstate())  # uids go on where they were
    for kind in (NODE, POD):
        for item in stage.world.store.objects(kind):
            again.world.store.put(kind, item.meta, item.sections)
    again.world.advance(stage.world.now)
    return again


def test_after_a_restart_everyone_holds_what_they_held() -> None:
    stage = stage_with(RESTRICTED)
    stage.pod("first", containers=[asks("3", **gpu("1"))])
    stage.to(2)
    stage = restarted(stage)
    stage.pod("second", containers=[asks("3", **gpu("1"))])
    stage.to(10)

    assert [held(stage, name) for name in ("first", "second")] == [
        "app 1-2,9 nvidia.com/gpu gpu-0",
        "app 4-5,12 nvidia.com/gpu gpu-1",
    ]
    assert [stage.status(name).phase for name in ("first", "second")] == ["Running", "Running"]


def test_a_record_that_was_written_and_then_nothing_more_is_written_anew() -> None:
    stage = stage_with(STATIC)
    stage.annotate_node("stopped-at=2026-01-01T00:00:00Z")
    stage.pod(containers=[asks("2")])
    stale = {"uid": stage.item().uid, "containers": {"app": {"cpus": "5"}}}
    doc = stage.item().doc()
    doc["metadata"]["annotations"] = {HOLDINGS: msgspec.json.encode(stale).decode()}
    stage.world.server.update(POD, "default", "p", doc)
    stage.annotate_node(None)
    stage.to(10)

    assert (held(stage), stage.status().phase) == ("app 1,9", "Running")


# --- records that somebody wrote into


def tamper(stage: Stage, text: str | None, name: str = "first") -> None:
    doc = stage.item(name).doc()
    doc["metadata"]["annotations"] |= {HOLDINGS: text}
    doc["metadata"]["annotations"] = {key: value for key, value in doc["metadata"]["annotations"].items() if value}
    stage.world.server.update(POD, "default", name, doc)


UID = "{uid}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(None, "is missing", id="taken away"),
        pytest.param("{", "cannot be read: Input data was truncated", id="no JSON"),
        pytest.param(
            '{"uid":"{uid}","containers":{"app":{"cpus":7}}}', "cannot be read: Expected `str`", id="a number"
        ),
        pytest.param('{"uid":"other"}', "is of another pod, uid other", id="that of another pod"),
        pytest.param('{"uid":"{uid}","containers":{"app":{"cpus":"9-7"}}}', "is not right: list", id="no list"),
        pytest.param(
            '{"uid":"{uid}","containers":{"app":{"cpus":"0-1"}}}', "CPUs 0 cannot be given to a pod", id="reserved CPUs"
        ),
        pytest.param(
            '{"uid":"{uid}","containers":{"app":{"cpus":"99"}}}', "CPUs 99 cannot be given to a pod", id="no such CPU"
        ),
        pytest.param(
            '{"uid":"{uid}","containers":{"app":{"devices":{"nvidia.com/gpu":["x"]}}}}',
            "there is no nvidia.com/gpu x",
            id="no such device",
        ),
        pytest.param(
            '{"uid":"{uid}","containers":{"app":{"memory":[["memory","0",5]]}}}',
            "NUMA nodes 0 do not have 5 of memory",
            id="memory where no manager gives any",
        ),
    ],
)
def test_nothing_is_given_out_while_nobody_knows_what_a_pod_holds(text: str | None, told: str) -> None:
    stage = stage_with(STATIC)
    stage.pod("first", containers=[asks("2")])
    stage.to(5)
    tamper(stage, text and text.replace(UID, stage.item("first").uid))
    stage.pod("second", containers=[asks("2")])
    stage.pod("shared", containers=[container()])
    stage.to(10)

    assert outcome(stage, "second").startswith(
        "UnexpectedAdmissionError: Pod was rejected: Allocate failed due to nobody knows what pod default/first holds: "
        f"annotation {HOLDINGS} "
    )
    assert told in outcome(stage, "second")
    assert next(text for _, reason, text in stage.events if reason == "UnknownHoldings") in outcome(stage, "second")
    assert (stage.status("first").phase, stage.status("shared").phase) == ("Running", "Running")
    stage.delete("first")
    stage.to(20)
    stage.pod("third", containers=[asks("2")])
    stage.to(25)
    assert held(stage, "third") == "app 1,9"


def test_cpus_that_two_pods_claim_are_given_to_no_third() -> None:
    stage = stage_with(STATIC)
    for name in ("first", "second"):
        stage.pod(name, containers=[asks("2")])
    stage.to(5)
    tamper(stage, stage.item("first").meta.annotations[HOLDINGS].replace("1,9", "2,10"))
    stage.pod("third", containers=[asks("2")])
    stage.to(10)

    assert "another pod holds CPUs 2,10" in outcome(stage, "third")


def test_a_record_in_a_template_counts_for_nothing() -> None:
    stage = stage_with(STATIC)
    copied = {"annotations": {HOLDINGS: '{"uid":"x","containers":{"app":{"cpus":"1-7"}}}'}}
    stage.pod("shared", metadata=copied)
    stage.pod("own", metadata=copied, containers=[asks("2")])
    stage.to(5)

    assert [held(stage, name) for name in ("shared", "own")] == ["", "app 1,9"]
    assert HOLDINGS not in stage.item("shared").meta.annotations


def test_where_no_cpu_is_left_to_share_nothing_more_is_given_out() -> None:
    stage = stage_with({**STATIC, "cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}})
    stage.pod("first", containers=[asks("14")])
    stage.to(5)
    stage.pod("second", containers=[asks("1")])
    stage.to(10)

    assert held(stage, "first") == "app 1-7,9-15"
    assert outcome(stage, "second").startswith("UnexpectedAdmissionError: Pod was rejected: Allocate failed due to ")


# --- what must always hold

CONFIGURATIONS = [
    STATIC,
    RESTRICTED,
    MEMORY,
    WHOLE_CORES,
    {**STATIC, "cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}},
    {**STATIC, "cpuManagerPolicyOptions": {"distribute-cpus-across-numa": "true"}},
    {**RESTRICTED, "topologyManagerScope": "pod"},
]
SIZES = st.tuples(st.sampled_from(["1", "2", "3", "4", "7", "500m"]), st.sampled_from(["1Gi", "6Gi"]), st.booleans())
STEPS = st.lists(st.one_of(st.lists(SIZES, min_size=1, max_size=2), st.integers(0, 9), st.none()), max_size=14)
"""A pod with one or two containers comes, one of those that are there goes, or everything is restarted."""


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CONFIGURATIONS), STEPS)
def test_no_cpu_and_no_device_is_ever_held_by_two_pods(configuration: Doc, steps: list[Any]) -> None:
    stage = stage_with(configuration)
    there: list[str] = []
    for number, step in enumerate(steps):
        if step is None:
            stage = restarted(stage)
        elif isinstance(step, int):
            if there:
                stage.delete(there.pop(step % len(there)))
        else:
            sizes = [
                asks(cpu, memory, f"c{at}", **gpu("1" if device else "0"))
                for at, (cpu, memory, device) in enumerate(step)
            ]
            stage.pod(f"p{number}", initContainers=sizes[1:], containers=sizes[:1])
            there.append(f"p{number}")
        stage.to(number * 3)
        check(stage)


def check(stage: Stage) -> None:
    """Over the records of the pods that are not over."""
    cpus, devices = 0, set[str]()
    for item in stage.world.store.objects(POD):
        found = record(stage, item.name).get("containers", {})
        if item.view(Pod).is_terminal:
            assert not found
            continue
        own, ids = 0, set[str]()
        for name, each in found.items():
            got = parse_list(each.get("cpus", ""))
            asked = next(
                c for c in item.doc()["spec"]["initContainers" if name != "c0" else "containers"] if c["name"] == name
            )
            amount = asked["resources"]["limits"]["cpu"]
            assert got.bit_count() == (int(amount) if amount.isdigit() else 0)
            own |= got
            ids |= {*each.get("devices", {}).get("nvidia.com/gpu", ())}
        assert not own & cpus
        assert not own & parse_list("0,8")
        assert not ids & devices
        cpus, devices = cpus | own, devices | ids
