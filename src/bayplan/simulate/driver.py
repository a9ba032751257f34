"""Doing what the load says, through the port and when it is due: the same way in virtual and in real time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.port import Cluster, PatchType
from bayplan.model.clock import SECOND, Instant
from bayplan.model.errors import ApiError
from bayplan.simulate.actions import Action, Create, Delete, Evict, Patch, Scale, Target
from bayplan.simulate.load import Load

Reach = Callable[[Instant], Awaitable[None]]
"""Returns once it is that time: a clock's `sleep_until`, or something that makes time pass."""
Refused = Callable[[Action, ApiError], None]


async def drive(
    cluster: Cluster,
    load: Load,
    reach: Reach,
    until: Instant,
    *,
    refused: Refused,
    stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Do all that is due up to `until`, or until `stopping`; then it is that time.

    What the cluster refuses (a quota is full, the object went away by itself) is told to `refused` and is no reason to
    stop: users try such things.
    """
    for timed in load.until(until):
        if stopping():
            return
        await reach(timed.at)
        try:
            await do(timed.action, cluster)
        except ApiError as error:
            refused(timed.action, error)
    await reach(until)


async def passing(cluster: EmbeddedCluster, at: Instant) -> None:
    """Virtual time: let it become `at`."""
    left = at - cluster.clock.now()
    if left > 0:
        await cluster.advance(left / SECOND)


async def do(action: Action, cluster: Cluster) -> None:
    """Do one thing. Raises ApiError when it is refused."""
    match action:
        case Create(made):
            await cluster.create(made.kind, made.body, made.namespace)
        case Delete(kind, namespace, name):
            await cluster.delete(kind, name, namespace)
        case Scale(kind, namespace, name, replicas):
            await cluster.scale(kind, name, namespace, replicas)
        case Evict(_, namespace, name):
            await cluster.evict(name, namespace)
        case Patch(kind, namespace, name, patch):
            await cluster.patch(kind, patch, name, namespace, type=PatchType.MERGE)
        case _:
            raise TypeError(f"no way to do {action!r}")


def told(action: Action) -> str:
    """`create Job nlp/tune-7`: an action in a few words."""
    match action:
        case Create(made):
            return f"create {made.kind.name} {made.namespace}/{made.name}"
        case Target(kind, namespace, name):
            return f"{type(action).__name__.lower()} {kind.name} {namespace}/{name}"
        case _:
            raise TypeError(f"no words for {action!r}")
