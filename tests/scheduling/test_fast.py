"""The columnar path decides as the readable plugins do, on random clusters that keep changing."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.scheduling.arguments import NodeResourcesFitArgs, ResourceSpec, ScoringStrategy
from bayplan.scheduling.cycle import decide, next_start
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.framework import Profile
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.profiles import default_profile
from tests.scheduling.random_world import World


def _change_something(world: World, fast: FastScheduler, placed: list[PodInfo]) -> None:
    """One of the things that happen between arrivals."""
    roll = world.random.random()
    names = [node.name for node in fast.state.nodes]
    if roll < 0.12 and placed:
        fast.drop_pod(placed.pop(world.random.randrange(len(placed))).key)
    elif roll < 0.16 and placed:
        _relabel(world, fast, placed)
    elif roll < 0.19:
        fast.put_node(world.node(int(world.random.choice(names)[-3:])))
    elif roll < 0.20:
        fast.put_node(world.node(len(names) + 200))
    elif roll < 0.21 and len(names) > 3:
        fast.drop_node(world.random.choice(names))
    elif roll < 0.22:
        fast.put(world.service())
    elif roll < 0.24:
        fast.state.nominate(world.pod(), world.random.choice(names))


def _relabel(world: World, fast: FastScheduler, placed: list[PodInfo]) -> None:
    at = world.random.randrange(len(placed))
    old = placed[at]
    node = fast.state.place_of(old.key)
    if node is not None:
        meta = msgspec.structs.replace(old.pod.metadata, labels=world.pod().labels)
        placed[at] = PodInfo(msgspec.structs.replace(old.pod, metadata=meta))
        fast.put_pod(placed[at], node)


def _live(seed: int, nodes: int, arrivals: int, profile: Profile) -> tuple[int, int]:
    """Let pods arrive and compare each decision; how many found a place, and how many did not."""
    world = World(seed)
    fast = FastScheduler(profile)
    for each in world.surroundings():
        fast.put(each)
    for number in range(nodes):
        fast.put_node(world.node(number))
    templates = [world.pod() for _ in range(12)]
    placed: list[PodInfo] = []
    refused = 0
    for step in range(arrivals):
        pod = world.pod()
        if world.maybe(0.7):
            meta, like = pod.pod.metadata, world.random.choice(templates)
            meta = msgspec.structs.replace(meta, namespace=like.namespace, labels=like.labels)
            pod = PodInfo(msgspec.structs.replace(like.pod, metadata=meta))
        expected = decide(fast.state, profile, pod, fast.start)
        chosen = fast.choose(pod)
        assert (chosen if isinstance(chosen, str) else chosen.node) == expected.node, (seed, step, pod.pod)
        assert fast.start == next_start(expected)
        if isinstance(chosen, str):
            fast.put_pod(pod, chosen)
            placed.append(pod)
        else:
            assert chosen == expected
            refused += 1
        _change_something(world, fast, placed)
    return len(placed), refused


@pytest.mark.parametrize("seed", range(24))
def test_every_decision_is_that_of_the_readable_plugins(seed: int) -> None:
    placed, _ = _live(seed, nodes=25, arrivals=110, profile=default_profile(percentage_of_nodes_to_score=100))
    assert placed > 30


@pytest.mark.parametrize("seed", range(100, 104))
def test_sampling_and_rotation_are_the_same(seed: int) -> None:
    placed, _ = _live(seed, nodes=130, arrivals=60, profile=default_profile())
    assert placed > 30


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(ScoringStrategy("MostAllocated"), id="packing"),
        pytest.param(
            ScoringStrategy(resources=(ResourceSpec("cpu", 3), ResourceSpec("memory", 2))), id="weights of resources"
        ),
        pytest.param(
            ScoringStrategy(resources=(ResourceSpec("cpu"), ResourceSpec("example.com/gpu", 5))),
            id="a resource that columns do not score",
        ),
    ],
)
def test_other_strategies_are_the_same(strategy: ScoringStrategy) -> None:
    args = {"NodeResourcesFit": NodeResourcesFitArgs(scoring_strategy=strategy)}
    profile = default_profile(arguments=args, percentage_of_nodes_to_score=100)
    placed, _ = _live(7, nodes=25, arrivals=80, profile=profile)
    assert placed > 30
