"""Every pod of a load goes where upstream's own scheduling cycle puts it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from benchmarks.scheduling_load import SCENARIOS, Load, Step, load

from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.profiles import default_profile
from benchmarks import scheduling_peer
from tests.scheduling.random_world import World

pytestmark = pytest.mark.slow
ALL, ADAPTIVE = 100, 0


@pytest.fixture(scope="module", autouse=True)
def peer() -> None:
    try:
        scheduling_peer.build()
    except LabUnavailableError as error:
        pytest.skip(str(error))


def placements(given: Load, percentage: int) -> dict[str, str]:
    """Where each pod goes; "" for one that fits nowhere."""
    scheduler = FastScheduler(default_profile(percentage_of_nodes_to_score=percentage))
    found: dict[str, str] = {}
    for each in given.nodes:
        scheduler.put_node(msgspec.convert(each, Node))
    for step in given.steps:
        if step.create is None:
            namespace, _, name = (step.delete or "").partition("/")
            scheduler.drop_pod((namespace, name))
            continue
        pod = PodInfo(msgspec.convert(step.create, Pod))
        chosen = scheduler.choose(pod)
        found["/".join(pod.key)] = chosen if isinstance(chosen, str) else ""
        if isinstance(chosen, str):
            scheduler.put_pod(pod, chosen)
    return found


def anything(seed: int, nodes: int, steps: int) -> Load:
    """Nodes and pods that touch every rule, some of them deleted."""
    world, random = World(seed), Random(seed)
    taken: list[Step] = []
    present: list[str] = []
    for _ in range(steps):
        if present and random.random() < 0.15:
            taken.append(Step(delete=present.pop(random.randrange(len(present)))))
            continue
        pod = world.pod()
        if not pod.terminating:
            meta = msgspec.structs.replace(pod.pod.metadata, uid=pod.pod.metadata.name)
            taken.append(Step(create=_plain(msgspec.structs.replace(pod.pod, metadata=meta))))
            present.append("/".join(pod.key))
    return Load([_plain(world.node(number)) for number in range(nodes)], 0, taken)


def _plain(item: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(item))


@pytest.mark.parametrize("percentage", [pytest.param(ALL, id="all nodes"), pytest.param(ADAPTIVE, id="some nodes")])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_loads_of_the_benchmark(scenario: str, percentage: int, tmp_path: Path) -> None:
    given = load(scenario, 300, 250, 50, seed=7)
    given.write(path := tmp_path / "load.json")
    assert placements(given, percentage) == scheduling_peer.run(path, percentage, 1, 0, placements=True).node_of


@pytest.mark.parametrize("percentage", [pytest.param(ALL, id="all nodes"), pytest.param(5, id="few nodes")])
@pytest.mark.parametrize("seed", range(4))
def test_pods_and_nodes_of_every_sort(seed: int, percentage: int, tmp_path: Path) -> None:
    given = anything(seed, 150, 400)
    given.write(path := tmp_path / "load.json")
    assert placements(given, percentage) == scheduling_peer.run(path, percentage, 1, 0, placements=True).node_of
