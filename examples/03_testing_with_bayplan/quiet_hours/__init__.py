"""Deployments that say so are scaled to nothing in their quiet hours, and back afterwards.

    metadata:
      annotations:
        quiet-hours.example.com: "22-6"        # from ten in the evening to six in the morning, UTC

What they had before stands in a second annotation, so a restart of the operator loses nothing.
"""

from __future__ import annotations

from bayplan.cluster.kinds import DEPLOYMENT
from bayplan.cluster.port import Cluster
from bayplan.model.clock import SECOND, Clock, Instant
from bayplan.model.errors import TemporaryError
from bayplan.model.workloads import Deployment

HOURS = "quiet-hours.example.com"
BEFORE = "quiet-hours.example.com/replicas-before"


def is_quiet(hours: str, now: Instant) -> bool:
    """Whether an hour lies in a span such as 22-6, which may pass midnight."""
    begin, end = (int(hour) for hour in hours.split("-"))
    hour = now // (3600 * SECOND) % 24
    return begin <= hour < end if begin <= end else hour >= begin or hour < end


def patch_for(deployment: Deployment, now: Instant) -> dict[str, object] | None:
    """What is to be changed about a Deployment now, if anything. It holds for the version that was seen."""
    annotations = deployment.metadata.annotations
    if HOURS not in annotations:
        return None
    quiet, replicas = is_quiet(annotations[HOURS], now), deployment.spec.replicas
    if quiet and replicas:
        before, wanted = str(replicas), 0
    elif not quiet and BEFORE in annotations:
        before, wanted = None, int(annotations[BEFORE])
    else:
        return None
    meta = {"resourceVersion": deployment.metadata.resource_version, "annotations": {BEFORE: before}}
    return {"metadata": meta, "spec": {"replicas": wanted}}


async def look(cluster: Cluster, clock: Clock) -> list[str]:
    """One look at all Deployments; the names of those that were changed."""
    changed = []
    for item in (await cluster.list(DEPLOYMENT)).items:
        patch = patch_for(item.view(Deployment), clock.now())
        if patch is None:
            continue
        try:
            await cluster.patch(DEPLOYMENT, patch, item.name, item.namespace)
        except TemporaryError:
            continue  # somebody else changed it meanwhile: the next look sees it anew
        changed.append(f"{item.namespace}/{item.name}")
    return changed
