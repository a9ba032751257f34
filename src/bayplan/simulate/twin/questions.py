"""What people ask of a twin: what else fits, how many more of this pod, which nodes to add, what would place a pod.

Every answer was run again: counts by the readable filters on another copy, a pod of one's own on a living copy, and
changes by a decision on the changed state (`scheduling.whatif`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bayplan.cluster.kinds import PERSISTENT_VOLUME_CLAIM
from bayplan.model.pods import Pod
from bayplan.scheduling.explanation import Explanation, explain
from bayplan.scheduling.framework import Profile
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.whatif.cluster_changes import AddNode
from bayplan.scheduling.whatif.shapes import shapes as shapes_there
from bayplan.simulate.twin.adding import Addition, smallest_addition
from bayplan.simulate.twin.capacity import MOST, Alike, Fit, alike, how_many, searching
from bayplan.simulate.twin.rerun import Rerun, as_stored, rerun
from bayplan.simulate.twin.shapes import GpuShape, gpu_shapes
from bayplan.simulate.twin.snapshot import Snapshot

Doc = dict[str, Any]


class Overview(msgspec.Struct, frozen=True):
    """What else fits."""

    nodes: int
    placed: int
    pending: int
    gpus: Sequence[tuple[GpuShape, Fit]]
    alike: Sequence[tuple[Alike, Fit]]
    others: int
    """Sorts of pods that are not shown."""
    waiting: Sequence[tuple[Alike, Explanation]]
    """Those that are pending, each sort once."""
    more_waiting: int
    """Sorts of pending pods that are not shown."""


class PodAnswer(msgspec.Struct, frozen=True):
    """What is to be said of one pod."""

    pod: Pod
    fit: Fit
    addition: Addition | None
    """For so many as were wished for, where not all fit."""
    explanation: Explanation | None
    """Where none fits: what would place one."""
    rerun: Rerun


def profile_for(snapshot: Snapshot, profile: Profile) -> Profile:
    """The profile that questions are decided by."""
    return searching(profile, volumes=PERSISTENT_VOLUME_CLAIM.resource not in snapshot.lacking)


def overview(snapshot: Snapshot, profile: Profile, *, top: int = 10, most: int = MOST) -> Overview:
    """What else fits; `top` sorts of pods, and as many of those that are pending."""
    state, profile = snapshot.state(), profile_for(snapshot, profile)
    pods = [pod for pod in snapshot.pods() if not pod.is_terminal]
    sorts = alike(pods)
    waiting = alike(pod for pod in pods if not pod.spec.node_name)
    placed = sum(bool(pod.spec.node_name) for pod in pods)
    return Overview(
        len(state.nodes),
        placed,
        len(pods) - placed,
        [(each, how_many(state, profile, each.pod, most)) for each in gpu_shapes(state)],
        [(each, how_many(state, profile, each.pod, most)) for each in sorts[:top]],
        max(0, len(sorts) - top),
        [(each, explain(state, profile, each.pod, suggestions=1)) for each in waiting[:top]],
        max(0, len(waiting) - top),
    )


async def ask_for(
    snapshot: Snapshot,
    profile: Profile,
    body: Doc,
    namespace: str,
    *,
    replicas: int | None = None,
    node_shapes: Sequence[AddNode] = (),
    most: int = MOST,
) -> PodAnswer:
    """How many more of a pod fit; with `replicas`, which nodes to add for so many. Raises ApiError for a bad pod."""
    state, profile = snapshot.state(), profile_for(snapshot, profile)
    pod = await as_stored(snapshot, body, namespace)
    fit = how_many(state, profile, pod, most)
    addition = None
    if replicas is not None and replicas > fit.number:
        addition = smallest_addition(state, profile, pod, replicas, node_shapes or shapes_there(state, PodInfo(pod)))
    explanation = None if fit.number else explain(state, profile, pod, suggestions=3)
    if addition is not None and addition.enough:
        again = await rerun(snapshot, profile, body, namespace, addition.wanted, addition.made())
    else:
        again = await rerun(snapshot, profile, body, namespace, fit.number + bool(fit.why))
    return PodAnswer(pod, fit, addition, explanation, again)
