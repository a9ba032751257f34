"""Doing what a scenario says through the port, and saying it in a few words."""

from __future__ import annotations

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.port import Cluster, PatchType
from bayplan.model.clock import SECOND, Instant
from bayplan.model.errors import AlreadyExists, ApiError, TooManyRequests
from bayplan.simulate.actions import Action, Create, CreateOwned, Delete, Evict, MayLeave, Patch, Scale, Target
from bayplan.simulate.manifests import Doc, Made
from bayplan.simulate.vms.launcher import owner_reference
from bayplan.simulate.vms.reasons import forbidden_by


async def passing(cluster: EmbeddedCluster, at: Instant) -> None:
    """Virtual time: let it become `at`."""
    left = at - cluster.clock.now()
    if left > 0:
        await cluster.advance(left / SECOND)


async def do(action: Action, cluster: Cluster) -> None:
    """Do one thing. Raises ApiError when it is refused."""
    match action:
        case CreateOwned(made, owner):
            await cluster.create(made.kind, await _owned(made, owner, cluster), made.namespace)
        case Create(made):
            await cluster.create(made.kind, made.body, made.namespace)
        case Delete(kind, namespace, name):
            await cluster.delete(kind, name, namespace)
        case Scale(kind, namespace, name, replicas):
            await cluster.scale(kind, name, namespace, replicas)
        case Evict(_, namespace, name):
            await cluster.evict(name, namespace)
        case MayLeave(_, namespace, name):
            await cluster.evict(name, namespace, dry_run=True)
        case Patch(kind, namespace, name, patch):
            await cluster.patch(kind, patch, name, namespace, type=PatchType.MERGE)
        case _:
            raise TypeError(f"no way to do {action!r}")


async def _owned(made: Made, owner: Made, cluster: Cluster) -> Doc:
    """The document of an object that names its owner."""
    try:
        found = await cluster.create(owner.kind, owner.body, owner.namespace)
    except AlreadyExists:
        found = await cluster.get(owner.kind, owner.name, owner.namespace)
    meta = {**made.body["metadata"], "ownerReferences": [owner_reference(found.name, found.uid)]}
    return {**made.body, "metadata": meta}


def denial(action: Action, error: ApiError) -> str:
    """`evict Pod shop: budget api`: what was refused and why, in as few words as can be counted."""
    budget = forbidden_by(error)[1] if isinstance(error, TooManyRequests) else ""
    return f"{told(action).split('/')[0]}: {f'budget {budget}' if budget else error.reason}"


def told(action: Action) -> str:
    """`create Job nlp/tune-7`: an action in a few words."""
    match action:
        case Create(made):
            return f"create {made.kind.name} {made.namespace}/{made.name}"
        case MayLeave(kind, namespace, name):
            return f"ask to evict {kind.name} {namespace}/{name}"
        case Target(kind, namespace, name):
            return f"{type(action).__name__.lower()} {kind.name} {namespace}/{name}"
        case _:
            raise TypeError(f"no words for {action!r}")
