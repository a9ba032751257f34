"""Recordings replayed in virtual time: the same policy decides the same, another one may not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, VirtualClock
from bayplan.model.meta import ObjectMeta
from bayplan.simulate.recording.comparison import Comparison, compared
from bayplan.simulate.recording.file import Recording
from bayplan.simulate.recording.replay import EmbeddedReplay, Names, policy_of
from bayplan.simulate.recording.story import PodLife, Story, story_of
from bayplan.testing import deployment, fake_cluster, job, pod
from tests.simulate.twin.clusters import Tape, gpu_node

START = VirtualClock().now()


def _read(path: Path) -> Story:
    recording = Recording(path)
    return story_of(recording.entries(), recording.began)


async def _replayed(story: Story, policy: str = "default", *, keep_placed: bool = False) -> Comparison:
    outcome = await EmbeddedReplay(story, policy_of(policy, story), keep_placed=keep_placed).run()
    assert not outcome.refusals
    return compared(outcome.pods, story.began, outcome.until)


@pytest.fixture
async def day(tmp_path: Path) -> Path:
    """Pods arrive, wait, end by themselves, are deleted; a node comes late."""
    path = tmp_path / "day.rec"
    cluster = fake_cluster(gpu_node("a"), gpu_node("b"))
    await cluster.advance(5)
    with Tape(cluster, path):
        await deployment("web").replicas(3).requests(cpu=1, gpu=1).create(cluster)
        await cluster.advance(30)
        await job("train").requests(cpu=4, gpu=7).behaves(run_for="10m").create(cluster)
        await cluster.advance(30)
        await pod("wide").requests(gpu=8).create(cluster)  # waits for the node that comes
        await cluster.advance(60)
        await gpu_node("c").create(cluster)
        await cluster.advance(120)
        await cluster.delete(POD, "wide", "default", grace=0)
        await pod("after").requests(gpu=2).create(cluster)
        await cluster.advance(900)
    return path


async def test_the_same_policy_places_every_pod_where_it_was(day: Path) -> None:
    story = _read(day)
    found = await _replayed(story)
    assert found.pods == found.both_placed == 6
    assert found.same_share == 1
    assert found.replayed.pending == found.recorded.pending
    assert found.replayed.most_pending == 1
    assert found.replayed.longest_wait == pytest.approx(found.recorded.longest_wait, abs=1.0)


async def test_another_policy_places_otherwise_and_the_same_seed_the_same(day: Path) -> None:
    story = _read(day)
    found = await _replayed(story, "gpupacking")
    assert found.both_placed == 6
    assert found.same_node < 6
    assert await _replayed(story, "gpupacking") == found


async def test_a_pod_lives_as_long_as_it_did(day: Path) -> None:
    story = _read(day)
    outcome = await EmbeddedReplay(story, None).run()
    train = next(each for each in outcome.pods if "train" in each.name)
    assert train.recorded.left
    assert train.replayed.left
    assert abs(train.recorded.left - train.replayed.left) < 2 * SECOND
    wide = next(each for each in outcome.pods if "wide" in each.name)
    assert wide.replayed.left == wide.recorded.left
    assert wide.replayed.node == "c"


async def test_pods_that_stood_at_the_beginning_may_keep_their_places(tmp_path: Path) -> None:
    path = tmp_path / "day.rec"
    cluster = fake_cluster(gpu_node("a"), gpu_node("b"), pod("old").requests(gpu=2).on("b"))
    await cluster.advance(5)
    with Tape(cluster, path):
        await pod("new").requests(gpu=8).create(cluster)
        await cluster.advance(60)
    story = _read(path)
    assert (await _replayed(story, keep_placed=True)).pods == 1
    replay = EmbeddedReplay(story, None, keep_placed=True)
    await replay.run()
    assert {item.name: item.doc()["spec"]["nodeName"] for item in replay.cluster.world.store.objects(POD)} == {
        "old": "b",
        "new": "a",
    }
    assert (await _replayed(story)).pods == 2


async def test_a_node_that_went_is_gone_in_the_replay_too(tmp_path: Path) -> None:
    path = tmp_path / "day.rec"
    cluster = fake_cluster(gpu_node("a"), gpu_node("b"))
    await cluster.advance(5)
    with Tape(cluster, path):
        await cluster.delete(NODE, "a")
        await cluster.advance(10)
        await pod("new").requests(gpu=1).create(cluster)
        await cluster.advance(60)
    found = await _replayed(_read(path))
    assert found.same_share == 1


def _node(uid: str, made: str, *, gpus: int) -> Object:
    body = gpu_node("a", gpus).having("metadata.uid", uid).having("metadata.creationTimestamp", made).document()
    return Object.from_raw(NODE, msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("batch", "there"),
    [
        pytest.param([("DELETED", "old"), ("ADDED", "new")], True, id="one that was made anew is there"),
        pytest.param([("DELETED", "forgotten"), ("ADDED", "new")], True, id="one whose going was inferred is there"),
        pytest.param([("MODIFIED", "old"), ("DELETED", "forgotten")], False, id="one that changed and went is gone"),
        pytest.param([("ADDED", "new"), ("DELETED", "new")], False, id="one that came and went is gone"),
    ],
)
async def test_what_a_node_did_within_one_batch_is_done_in_that_order(
    batch: list[tuple[str, str]], there: bool
) -> None:
    versions = {
        "old": _node("old", "2026-01-01T00:00:00Z", gpus=8),
        "new": _node("new", "2026-01-02T00:00:00Z", gpus=4),
        "forgotten": Object(NODE, ObjectMeta(name="a", uid="old"), {}, 0),
    }
    later = Instant(START + SECOND)
    nodes = [(START, "ADDED", versions["old"]), *((later, kind, versions[which]) for kind, which in batch)]
    replay = EmbeddedReplay(Story(START, later, {}, nodes, {}, whole=True), None)
    assert not (await replay.run()).refusals
    assert (replay.cluster.world.store.get(NODE, "", "a") is not None) == there


def _life(uid: str, name: str) -> PodLife:
    return PodLife(uid=uid, last=Object(POD, ObjectMeta(namespace="default", name=name, uid=uid), {}, 0), arrived=START)


def test_a_name_that_was_taken_before_gets_a_number_that_nobody_else_has() -> None:
    lives = {str(number): _life(str(number), name) for number, name in enumerate(("w", "w", "w-2", "w", "w-2"))}
    names = Names(Story(START, START, lives, [], {}))
    assert [names.fresh(life) for life in lives.values()] == ["w", "w-3", "w-2", "w-4", "w-2-2"]


async def test_a_replay_that_is_stopped_tells_how_far_it_came(day: Path) -> None:
    story = _read(day)
    looks = iter((False, False, True))
    outcome = await EmbeddedReplay(story, None).run(stopping=lambda: next(looks))
    assert story.began <= outcome.until < story.ended
    assert len(outcome.pods) == 2
