"""What a person sees of a cluster: on a terminal, and in lines."""

from __future__ import annotations

import asyncio
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.display.lines import happening_line, summary_line, usage_lines
from bayplan.cli.display.picture import Picture, picture
from bayplan.cli.display.pod_words import status_word, why_waiting
from bayplan.cli.display.screen import Teams, screen
from bayplan.cli.display.show import Viewer
from bayplan.cli.display.slots import Slots
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.pods import Pod
from bayplan.simulate.scenario_file import parse_scenario, shipped
from bayplan.simulate.stage import Stage
from bayplan.simulate.tally import Usage
from tests.cli.scenes import EVENTS, NO_ROOM, NODES, NOW, PODS, node, pod

_START = parse_rfc3339("2026-01-01T00:00:00Z")


def _scene(slots: Slots | None = None) -> Picture:
    return picture(NODES, PODS, EVENTS, NOW, slots or Slots())


def _drawn(seen: Picture, *, height: int = 40, colour: bool = False, width: int = 100) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, color_system="standard" if colour else None)
    console.print(screen(seen, Teams(), title="×60", height=height))
    return out.getvalue()


def test_the_screen_shows_nodes_cells_queue_and_events(snapshot: SnapshotAssertion) -> None:
    assert _drawn(_scene()) == snapshot


def test_the_screen_has_colours_where_they_are_welcome(snapshot: SnapshotAssertion) -> None:
    assert _drawn(_scene(), colour=True) == snapshot


def test_a_low_window_shows_the_first_nodes_and_says_how_many_more(snapshot: SnapshotAssertion) -> None:
    nodes = [node(f"gpu-{number:03}", 8) for number in range(200)]
    drawn = _drawn(picture(nodes, PODS, EVENTS, NOW, Slots()), height=24)
    assert drawn == snapshot
    assert len(drawn.splitlines()) <= 24


def test_the_lines_say_the_same(snapshot: SnapshotAssertion) -> None:
    seen = _scene()
    assert "\n".join([*map(happening_line, seen.happenings), summary_line(seen)]) == snapshot


def test_the_summary_accounts_for_everything(snapshot: SnapshotAssertion) -> None:
    usage = Usage(
        span=5400 * SECOND,
        created=12,
        succeeded=6,
        failed=2,
        running=3,
        pending=1,
        waits=11,
        median_wait=4.0,
        longest_wait=4000.0,
        gpu_hours={"nlp": 80.25, "platform": 0.0, "vision": 20.0},
        idle_gpu_hours=43.75,
    )
    refused = {"create Pod research: Forbidden": 2}
    assert "\n".join(usage_lines(usage, " at 60 times its speed", refused, {"storm": 1, "help": 3})) == snapshot


def test_an_empty_cluster_can_be_looked_at() -> None:
    seen = picture([], [], [], NOW, Slots())
    assert "GPUs 0/0 0%" in _drawn(seen)
    assert summary_line(seen).endswith("failed 0")


@pytest.mark.slow
def test_a_seed_and_an_instant_give_one_picture(snapshot: SnapshotAssertion) -> None:
    stage = Stage(shipped(), seed=7, start=_START)
    viewer = Viewer(stage)
    asyncio.run(stage.rehearse(Instant(_START + 2 * 3600 * SECOND)))
    assert _drawn(viewer.look()) == snapshot
    assert "\n".join(viewer.news()) == snapshot


_STORMY = """\
nodes:
  - {name: gpu, count: 2, capacity: {cpu: 16, memory: 64Gi, nvidia.com/gpu: 4}}
  - {name: plain, count: 1, capacity: {cpu: 16, memory: 64Gi}, taints: [{key: own, effect: NoSchedule}]}
teams: [{name: vision}]
workloads:
  - name: serve
    namespace: vision
    kind: Deployment
    spec: {replicas: 3, template: {spec: {containers: [{name: c, image: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}}
  - name: train
    namespace: vision
    kind: Pod
    arrivals: {count: 2, start: 5m}
    spec: {containers: [{name: c, image: c, resources: {limits: {nvidia.com/gpu: 3}}}]}
outages: [{node: gpu-2, at: 1h, lasts: 5m}]
events:
  - {name: shut, at: 10m, do: {cordon: {nodes: [gpu-1]}}}
  - {name: more, at: 26h, do: {addNodes: {group: gpu, count: 2}}}
  - {when: {pending: {above: 0}, for: 20m}, do: {scale: {workload: serve, replicas: 4}}}
"""


def test_the_scenario_its_timeline_and_why_pods_wait_are_seen(snapshot: SnapshotAssertion) -> None:
    stage = Stage(parse_scenario("stormy.yaml", _STORMY), seed=1, start=_START)
    viewer = Viewer(stage, "stormy")
    asyncio.run(stage.rehearse(Instant(_START + 12 * 60 * SECOND)))
    assert _drawn(viewer.look(), width=120) == snapshot
    assert "\n".join(viewer.news()) == snapshot
    asyncio.run(stage.rehearse(Instant(_START + 27 * 60 * SECOND)))
    assert "\n".join(viewer.news()) == snapshot


@pytest.mark.parametrize(
    ("item", "word"),
    [
        pytest.param(pod("a/b", "n"), "Running", id="a pod that runs"),
        pytest.param(pod("a/b", "n", going=True), "Terminating", id="a pod that is being deleted"),
        pytest.param(pod("a/b", phase="Pending", said="no"), "Pending", id="a pod without a node"),
        pytest.param(
            pod("a/b", "n", phase="Pending", state={"waiting": {"reason": "ContainerCreating"}}),
            "ContainerCreating",
            id="a pod that starts",
        ),
        pytest.param(
            pod("a/b", "n", phase="Failed", state={"terminated": {"exitCode": 3}}), "ExitCode:3", id="an exit code"
        ),
        pytest.param(
            pod("a/b", "n", phase="Succeeded", state={"terminated": {"reason": "Completed"}}), "Completed", id="an end"
        ),
    ],
)
def test_a_pod_s_word_is_kubectl_s(item: Object, word: str) -> None:
    assert status_word(item.view(Pod)) == word


def test_the_scheduler_s_count_is_the_reason() -> None:
    waiting = pod("a/b", phase="Pending", said=NO_ROOM).view(Pod)
    assert why_waiting(waiting) == "1 node(s) had untolerated taint(s), 3 Insufficient nvidia.com/gpu"
    assert why_waiting(pod("a/b", phase="Pending", said="gated").view(Pod)) == "gated"


def test_a_pod_stays_on_its_cells_while_others_come_and_go() -> None:
    slots = Slots()
    assert slots.place("n", 4, {"a": 1, "b": 2}) == ["a", "b", "b", None]
    assert slots.place("n", 4, {"b": 2}) == [None, "b", "b", None]
    assert slots.place("n", 4, {"b": 2, "c": 2}) == ["c", "b", "b", "c"]
    assert slots.place("n", 2, {"b": 2}) == ["b", "b"]


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 8), max_size=5), max_size=6))
def test_as_many_cells_are_taken_as_are_held_and_fit(steps: list[dict[str, int]]) -> None:
    slots = Slots()
    for holders in steps:
        placed = slots.place("n", 8, holders)
        assert len(placed) == 8
        assert sum(holder is not None for holder in placed) == min(8, sum(holders.values()))
        assert all(placed.count(holder) <= count for holder, count in holders.items())


def test_each_team_has_a_letter_of_its_own() -> None:
    teams = Teams()
    assert [teams.letter(team) for team in ("vision", "voice", "vi", "vision")] == ["V", "O", "I", "V"]
