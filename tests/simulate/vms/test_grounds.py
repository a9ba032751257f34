"""Following a cluster: what went while nobody listened is not there any more."""

from __future__ import annotations

from typing import cast

from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.simulate.vms.grounds import LiveGround, VirtualGround
from bayplan.simulate.vms.launcher import OURS
from bayplan.simulate.vms.mirror import Mirror
from bayplan.testing import fake_cluster, node, pod


async def test_nodes_and_pods_that_went_while_the_api_was_away_are_forgotten() -> None:
    label, _, ours = OURS.partition("=")
    cluster = fake_cluster(node("a"), node("b"), *(pod(name).labelled({label: ours}) for name in ("stays", "goes")))
    ground, mirror = LiveGround(cast(LiveCluster, cluster), "test"), Mirror("default")
    await ground.follow(mirror)
    assert (sorted(mirror.nodes), sorted(mirror.pods)) == (["a", "b"], ["goes", "stays"])

    await ground._stop()
    await cluster.delete(NODE, "a")
    await cluster.delete(POD, "goes", "default", grace=0)
    await ground.follow(mirror)

    assert (sorted(mirror.nodes), sorted(mirror.pods)) == (["b"], ["stays"])
    await ground._stop()


async def test_waiting_in_vain_takes_as_long_as_it_was_to_last() -> None:
    ground = VirtualGround(fake_cluster())
    before = ground.now()
    assert not await ground.until(lambda: False, 7.5)
    assert ground.now() - before == 7_500_000
