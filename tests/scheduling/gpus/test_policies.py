"""GPU policies: their formulas, the devices they choose, and the kept rows that must say the same as a fresh look."""

from __future__ import annotations

import random

import pytest

from bayplan.scheduling.cycle import decide
from bayplan.scheduling.decision import TieRule
from bayplan.scheduling.fast.scheduler import FastScheduler, is_columnar
from bayplan.scheduling.gpus.devices import left
from bayplan.scheduling.plugins.gpu_policies.fragmentation import TypicalPod, typical
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.policies import GPU_POLICIES, POLICIES, profile
from tests.scheduling.gpus.made import TYPICAL, node, placed, pod, random_cluster, random_pod
from tests.scheduling.gpus.plain_formulas import FORMULAS, fgd_by_device


@pytest.mark.parametrize("policy", GPU_POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_kept_rows_decide_as_a_fresh_look_does(policy: str, seed: int) -> None:
    chance = random.Random(f"{policy}/{seed}")
    scheduler = FastScheduler(profile(policy, TYPICAL, seed))
    random_cluster(chance, scheduler, 24)
    there: list[PodInfo] = []
    refusals = 0
    for number in range(220):
        info = random_pod(chance, number)
        fresh = scheduler.decide(info)
        assert scheduler.place(info) == fresh.node
        answer = scheduler.choose(info)
        if isinstance(answer, str):
            assert answer == fresh.node
            there.append(placed(scheduler, info, answer))
        else:
            refusals += 1
            assert (fresh.node, answer.fit_error) == ("", fresh.fit_error)
            assert dict(answer.refusals) == dict(fresh.refusals)
        if there and chance.random() < 0.15:
            scheduler.drop_pod(there.pop(chance.randrange(len(there))).key)
    assert there
    assert refusals


@pytest.mark.parametrize("policy", FORMULAS)
def test_scores_are_those_of_the_plain_formulas(policy: str) -> None:
    chance = random.Random(policy)
    scheduler = FastScheduler(profile(policy, TYPICAL))
    random_cluster(chance, scheduler, 25)
    plugin, _ = profile(policy, TYPICAL).scorers[0]
    compared = 0
    for number in range(120):
        info = random_pod(chance, number)
        decision = scheduler.decide(info)
        feasible = [there for there in scheduler.state.nodes if there.name in decision.feasible]
        scorer = plugin.score(info, scheduler.state, feasible)
        assert scorer is not None
        assert [scorer.score(there) for there in feasible] == [FORMULAS[policy](info, there) for there in feasible]
        compared += len(feasible)
        if decision.node:
            placed(scheduler, info, decision.node)
    assert compared > 500


def test_fgd_takes_the_device_that_made_the_score() -> None:
    chance = random.Random(3)
    scheduler = FastScheduler(profile("fgd", TYPICAL))
    scheduler.put_node(node("only", 96, 8))
    shares = 0
    for number in range(60):
        info = random_pod(chance, number)
        there = scheduler.state.node("only")
        assert there is not None
        if scheduler.decide(info).node and info.gpus.ask.is_share:
            points = fgd_by_device(info, there)
            best = max(points.values())
            assert scheduler.devices(info, "only") == (next(each for each, value in points.items() if value == best),)
            shares += 1
        if scheduler.decide(info).node:
            placed(scheduler, info, "only")
    assert shares > 5


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_has_rows_to_keep_or_the_readable_way(policy: str) -> None:
    assert is_columnar(profile(policy)) == (policy != "requestedtocapacityratio")


def test_of_equal_nodes_the_first_is_taken() -> None:
    scheduler = FastScheduler(profile("fgd", TYPICAL))
    for name in ("b", "a", "c"):
        scheduler.put_node(node(name))
    decision = decide(scheduler.state, profile("fgd", TYPICAL), pod("p", gpus=1))
    assert (decision.node, decision.rule, decision.best) == ("b", TieRule.FIRST, ("b", "a", "c"))
    assert scheduler.choose(pod("p", gpus=1)) == "b"


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], [1000, 1000, 1000, 1000], id="an empty node has all of its devices"),
        pytest.param([pod("a", share=300, devices=(2,))], [1000, 1000, 700, 1000], id="a share is taken of its device"),
        pytest.param([pod("a", gpus=2, devices=(1, 3))], [1000, 0, 1000, 0], id="whole devices are taken whole"),
        pytest.param(
            [pod("a", share=300), pod("b", share=300)], [400, 1000, 1000, 1000], id="unwritten shares are packed"
        ),
        pytest.param(
            [pod("a", gpus=1), pod("b", gpus=1, devices=(0,))], [0, 0, 1000, 1000], id="written ones go before others"
        ),
        pytest.param([pod("a", gpus=1, devices=(9,))], [1000] * 4, id="a device that is not there takes nothing"),
        pytest.param([pod("a"), pod("b", share=1000)], [1000] * 4, id="a share of all thousandths is no share"),
        pytest.param(
            [pod("a", gpus=1, devices=(0,)), pod("b", share=500, devices=(0,))], [0, 1000, 1000, 1000],
            id="too much on one device leaves nothing, not less",
        ),
    ],
)  # fmt: skip
def test_what_is_left_of_devices(pods: list[PodInfo], expected: list[int]) -> None:
    scheduler = FastScheduler(profile("fgd"))
    scheduler.put_node(node("n"))
    for each in pods:
        scheduler.put_pod(each, "n")
    there = scheduler.state.node("n")
    assert there is not None
    assert left(there) == expected


@pytest.mark.parametrize(
    ("there", "info", "reason"),
    [
        pytest.param(node("n", gpus=0), pod("p", share=100), "node(s) had no GPU", id="a node without GPUs"),
        pytest.param(
            node("n", gpus=1), pod("p", share=600), "node(s) had no GPU with enough left", id="no device with room"
        ),
        pytest.param(
            node("n", gpus=1), pod("p", gpus=1), "node(s) didn't have enough GPUs free", id="a device in use"
        ),
    ],
)  # fmt: skip
def test_why_a_node_will_not_do(there: object, info: PodInfo, reason: str) -> None:
    scheduler = FastScheduler(profile("gpupacking"))
    scheduler.put_node(there)  # type: ignore[arg-type]  # parametrised
    scheduler.put_pod(pod("held", share=500, devices=(0,)), "n")
    assert reason in scheduler.decide(info).fit_error


def test_random_gives_the_same_answer_when_asked_twice_and_others_to_others() -> None:
    scheduler = FastScheduler(profile("random", seed=7))
    for number in range(40):
        scheduler.put_node(node(f"n{number:02d}"))
    asked = [scheduler.choose(pod(f"p{number}", share=100)) for number in range(30)]
    assert asked == [scheduler.choose(pod(f"p{number}", share=100)) for number in range(30)]
    assert len(set(map(str, asked))) > 10


def test_typical_pods_are_the_most_frequent_until_enough() -> None:
    often, seldom, rare = TypicalPod(1000, 500, 1), TypicalPod(2000, 1000, 1), TypicalPod(9000, 1000, 8)
    found = typical([often] * 90 + [seldom] * 8 + [rare] * 2)
    assert [(each.cpu_milli, each.weight) for each in found] == [(1000, 90.0), (2000, 8.0)]
    assert typical([]) == ()
