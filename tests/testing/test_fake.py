"""The fake cluster, and waiting in virtual time."""

from __future__ import annotations

import pytest

from bayplan.cluster.kinds import NODE, POD
from bayplan.model.clock import SECOND, VirtualClock
from bayplan.model.errors import Invalid
from bayplan.testing import deployment, fake_cluster, job, namespace, node, pod, until, until_gone


async def test_it_holds_what_it_is_given() -> None:
    cluster = fake_cluster(namespace("shop"), node("n1"), pod("web", "shop"))

    assert (await cluster.get(NODE, "n1")).name == "n1"
    assert (await cluster.get(POD, "web", "shop")).namespace == "shop"


def test_what_the_api_server_refuses_is_refused() -> None:
    with pytest.raises(Invalid):
        fake_cluster(pod("Not_A_Name"))


async def test_nothing_moves_until_time_does() -> None:
    clock = VirtualClock()
    cluster = fake_cluster(node("n1"), deployment("web"), clock=clock)

    assert (await cluster.list(POD)).items == ()
    await cluster.advance(0)
    assert len((await cluster.list(POD)).items) == 1
    await cluster.advance(30)
    assert clock.now() == VirtualClock().now() + 30 * SECOND


async def test_the_same_seed_and_calls_give_the_same_bytes() -> None:
    async def story(seed: int) -> list[bytes]:
        cluster = fake_cluster(node("n1"), deployment("web").replicas(3), seed=seed)
        await cluster.advance(60)
        return [item.raw() for item in (await cluster.list(POD)).items]

    assert await story(1) == await story(1)
    assert await story(1) != await story(2)


async def test_until_takes_no_longer_than_it_has_to() -> None:
    training = job("training").behaves(pull="2s", start="1s", run_for="1h")
    cluster = fake_cluster(node("n1"), training)
    began = cluster.clock.now()

    done = await until(cluster, training, lambda it: it.status.succeeded == 1, within=7200)

    assert done.status.succeeded == 1
    assert 3600 <= (cluster.clock.now() - began) / SECOND < 3700


async def test_until_tells_how_far_it_came() -> None:
    cluster = fake_cluster(pod("x"))

    with pytest.raises(AssertionError, match=r'not as wished after 5 s: <Pod default/x at \d+> .*"phase":"Pending"'):
        await until(cluster, pod("x"), lambda it: it.status.phase == "Running", within=5)
    with pytest.raises(AssertionError, match="there is no Pod default/y"):
        await until(cluster, pod("y"), lambda _: True)


async def test_until_gone_waits_for_the_end() -> None:
    cluster = fake_cluster(node("n1"), pod("x"))
    await until(cluster, pod("x"), lambda it: it.status.phase == "Running")
    await cluster.delete(POD, "x", "default")

    await until_gone(cluster, pod("x"))

    assert (await cluster.list(POD)).items == ()
