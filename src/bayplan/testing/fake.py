"""The fake of the port `Cluster` is the embedded engine itself, in virtual time: nothing here but its set-up.

Nothing moves until time does: `await cluster.advance(30)` lets half a minute pass at once, `until` as much as it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, VirtualClock, seconds
from bayplan.model.meta import KubernetesObject
from bayplan.testing.builder import Manifest, V

_WITHIN = 600.0
"""Virtual seconds: as long as a Deployment may go without progress."""


def fake_cluster(*given: Manifest[Any], clock: VirtualClock | None = None, seed: int = 0) -> EmbeddedCluster:
    """A cluster with all controllers and a kubelet on every node, holding `given`, created in that order.

    The same seed and the same calls give the same bytes. Raises what `Cluster.create` does.
    """
    cluster = embedded_cluster(clock=VirtualClock() if clock is None else clock, seed=seed)
    for one in given:
        cluster.world.server.create(one.kind, one.namespace, one.document())
    return cluster


async def until(
    cluster: EmbeddedCluster, what: Manifest[V], holds: Callable[[V], bool], *, within: float = _WITHIN
) -> V:
    """Let virtual time pass until an object is as wished; the answer is how it is then.

    `what` is a builder of the object, or of any with its kind and name: `until(cluster, pod("web-0"), is_running)`.
    Raises AssertionError, with the object's last status, when it does not come to that within so many seconds.
    """
    found: V | None = None

    def is_as_wished() -> bool:
        nonlocal found
        item = _present(cluster, what)
        found = None if item is None else cast("V", item.view(KubernetesObject))
        return found is not None and holds(found)

    await _pass(cluster, is_as_wished, within, what)
    assert found is not None
    return found


async def until_gone(cluster: EmbeddedCluster, what: Manifest[Any], *, within: float = _WITHIN) -> None:
    """Let virtual time pass until there is no such object. Raises AssertionError when it stays longer."""
    await _pass(cluster, lambda: _present(cluster, what) is None, within, what)


def _present(cluster: EmbeddedCluster, what: Manifest[Any]) -> Object | None:
    return cluster.world.store.get(what.kind, what.namespace, what.name)


async def _pass(cluster: EmbeddedCluster, done: Callable[[], bool], within: float, what: Manifest[Any]) -> None:
    """From one moment at which something happens to the next."""
    end = Instant(cluster.clock.now() + seconds(within))
    await cluster.advance(0)
    while not done():
        due = cluster.world.next_timer
        if due is None or due > end:
            raise AssertionError(f"not as wished after {within:g} s: {_told(what, _present(cluster, what))}")
        await cluster.advance((due - cluster.clock.now()) / SECOND)


def _told(what: Manifest[Any], item: Object | None) -> str:
    if item is None:
        return f"there is no {what.kind.name} {what.namespace}/{what.name}"
    status = item.sections.get("status")
    return f"{item!r}" if status is None else f"{item!r} {status.raw.decode()}"
