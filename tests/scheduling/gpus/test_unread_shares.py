"""A GPU share that cannot be read: the pod wants a GPU, so it goes nowhere, and the reason says what to mend."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.scheduling.cycle import decide
from bayplan.scheduling.decision import Decision
from bayplan.scheduling.explanation import explain
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.framework import Refusal
from bayplan.scheduling.gpus.asking import DEVICES, RESOURCE, SHARE, Ask, GpuHold, hold_of
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.policies import GPU_POLICIES, profile
from tests.scheduling.gpus.made import TYPICAL, node, pod


def sharing(text: str, name: str = "p") -> PodInfo:
    made = pod(name).pod
    meta = msgspec.structs.replace(made.metadata, annotations={SHARE: text})
    return PodInfo(msgspec.structs.replace(made, metadata=meta))


def three_nodes(policy: str = "fgd") -> FastScheduler:
    scheduler = FastScheduler(profile(policy, TYPICAL))
    for name in ("a", "b", "c"):
        scheduler.put_node(node(name, gpus=0 if name == "c" else 4))
    return scheduler


@pytest.mark.parametrize(
    ("requests", "annotations", "expected"),
    [
        pytest.param({}, {}, GpuHold(Ask(0, 0)), id="nothing said is nothing asked"),
        pytest.param({}, {SHARE: "460", DEVICES: "2"}, GpuHold(Ask(1, 460), (2,)), id="a share"),
        pytest.param({}, {SHARE: "4600"}, GpuHold(Ask(0, 0, "4600")), id="more than a GPU"),
        pytest.param({}, {SHARE: "1000"}, GpuHold(Ask(0, 0, "1000")), id="a whole GPU is no share"),
        pytest.param({}, {SHARE: "0"}, GpuHold(Ask(0, 0, "0")), id="nothing of a GPU"),
        pytest.param({}, {SHARE: "abc"}, GpuHold(Ask(0, 0, "abc")), id="no number"),
        pytest.param({}, {SHARE: ""}, GpuHold(Ask(0, 0, "")), id="an empty share"),
        pytest.param({}, {SHARE: "9" * 5000}, GpuHold(Ask(0, 0, "9" * 5000)), id="more digits than Python reads"),
        pytest.param({RESOURCE: 1}, {SHARE: "abc"}, GpuHold(Ask(1, 1000)), id="beside whole GPUs it is not looked at"),
        pytest.param(
            {RESOURCE: 1}, {DEVICES: f"1,{'9' * 5000}"}, GpuHold(Ask(1, 1000), (1,)), id="a device that is none"
        ),
    ],
)
def test_what_is_asked_for(requests: dict[str, int], annotations: dict[str, str], expected: GpuHold) -> None:
    assert hold_of(requests, annotations) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("4600", id="more than a GPU"),
        pytest.param("abc", id="no number"),
        pytest.param("", id="nothing at all"),
    ],
)
def test_every_node_refuses_and_the_reason_names_the_annotation(text: str) -> None:
    told = explain(three_nodes().state, profile("fgd", TYPICAL), sharing(text).pod)

    reason = f'annotation bayplan.dev/gpu-share expects thousandths of one GPU, 1 to 999, not "{text}"'
    refusal = Refusal("GpuShare", (reason,), hopeless=True)
    assert told.refusals == dict.fromkeys(("a", "b", "c"), (refusal,))
    assert refusal.code == "UnschedulableAndUnresolvable"
    assert (told.decision.node, told.decision.fit_error) == ("", f"0/3 nodes are available: {reason}.")


@pytest.mark.parametrize("policy", GPU_POLICIES)
def test_kept_rows_refuse_as_a_fresh_look_does(policy: str) -> None:
    scheduler = three_nodes(policy)
    assert scheduler.place(pod("plain"))  # what is kept for pods without a share is not taken for it
    for text in ("abc", "4600", "abc"):
        info = sharing(text)
        fresh = decide(scheduler.state, profile(policy, TYPICAL), info)
        answer = scheduler.choose(info)
        assert isinstance(answer, Decision)
        assert (scheduler.place(info), fresh.node, answer.fit_error) == ("", "", fresh.fit_error)
        assert dict(answer.refusals) == dict(fresh.refusals)
    assert scheduler.place(pod("plain"))


def test_where_nobody_counts_shares_it_is_an_annotation_like_any_other() -> None:
    scheduler = three_nodes("default")
    assert scheduler.place(sharing("abc")) == scheduler.decide(sharing("abc")).node != ""


def test_a_long_text_is_not_repeated_at_length() -> None:
    assert len(three_nodes().decide(sharing("x" * 5000)).fit_error) < 300
