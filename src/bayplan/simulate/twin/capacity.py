"""How many more of a pod fit: they are placed one by one on a copy of the cluster's state, until one is refused.

The scheduler that places them is the engine's own. What it says is checked by the readable filters, pod by pod on
another copy. Where pods do not care about each other across nodes, no other way of placing them would fit more, and the
number is exact; else it is what this scheduler gets to. Pods that are pending take no place; nobody is evicted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from bayplan.model.meta import ObjectMeta
from bayplan.model.pods import Pod, PodStatus
from bayplan.scheduling.cycle import decide
from bayplan.scheduling.decision import Decision
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.filtering import prepare
from bayplan.scheduling.framework import Profile
from bayplan.scheduling.pods import PodInfo, Wants
from bayplan.scheduling.state import ClusterState

MOST = 10_000
"""Enough for anybody; a count that gets here is told as "at least"."""
HOSTNAME = "kubernetes.io/hostname"
_ALL_NODES = 100

Placed = tuple[PodInfo, str]


class Fit(msgspec.Struct, frozen=True):
    """How many more of a pod fit, and where."""

    number: int
    nodes: Mapping[str, int]
    why: str
    """Why the next one does not fit; empty where nobody asked further."""
    exact: bool
    """Whether no other way of placing them fits more."""
    verified: bool
    """Whether the rerun with the readable filters came to the same."""


def searching(profile: Profile, *, volumes: bool = True) -> Profile:
    """A profile that looks at all nodes and evicts nobody; without volumes where these could not be read."""
    filters = profile.filters
    if not volumes:
        filters = tuple(each for each in filters if not each.name.startswith(("Volume", "NodeVolume")))
    return replace(profile, filters=filters, percentage_of_nodes_to_score=_ALL_NODES, preemption=None)


def another(pod: Pod, number: int) -> PodInfo:
    """One more pod like this one, as it would come to the scheduler."""
    meta = pod.metadata
    name = f"{meta.name or 'pod'}-more-{number}"
    made = ObjectMeta(name=name, namespace=meta.namespace, labels=meta.labels, annotations=meta.annotations)
    spec = replace(pod.spec, node_name="", scheduling_gates=())
    return PodInfo(Pod(metadata=made, spec=spec, status=PodStatus()))


def how_many(state: ClusterState, profile: Profile, pod: Pod, most: int = MOST) -> Fit:
    """How many more of a pod fit, `most` at most. The state stays as it is."""
    desk = FastScheduler(profile, state=state.copy())
    placed, refusal = place(desk, pod, most)
    verified = _verified(state.copy(), profile, placed, None if refusal is None else another(pod, len(placed)))
    why = "" if refusal is None else refusal.message
    return Fit(len(placed), Counter(node for _, node in placed), why, independent(pod), verified)


def place(desk: FastScheduler, pod: Pod, most: int, first: int = 0) -> tuple[list[Placed], Decision | None]:
    """Place so many, numbered from `first`, or until one is refused; that refusal."""
    placed: list[Placed] = []
    for number in range(first, first + most):
        info = another(pod, number)
        chosen = desk.choose(info)
        if isinstance(chosen, Decision):
            return placed, chosen
        info = info.with_devices(desk.devices(info, chosen))
        desk.put_pod(info, chosen)
        placed.append((info, chosen))
    return placed, None


def _verified(state: ClusterState, profile: Profile, placed: Iterable[Placed], one_more: PodInfo | None) -> bool:
    for info, name in placed:
        filters = prepare(profile, info, state)
        node = state.node(name)
        outside = filters.only is not None and name not in filters.only
        if node is None or outside or filters.whole or filters.check_among_nominated(node, info, state):
            return False
        state.put_pod(info, name)
    return one_more is None or not decide(state, profile, one_more).node


def independent(pod: Pod) -> bool:
    """Whether it does not matter to such pods which nodes others of them are on."""
    spec = pod.spec
    wants = PodInfo(pod).wants
    apart = all(term.topology_key == HOSTNAME for term in wants.anti_affinity)
    spread = any(each.when_unsatisfiable == "DoNotSchedule" for each in spec.topology_spread_constraints)
    claims = any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes)
    return apart and not wants.affinity and not spread and not claims and not spec.resource_claims


class Alike(msgspec.Struct, frozen=True):
    """Pods that ask for the same."""

    pod: Pod
    """One of them."""
    owner: str
    """`ReplicaSet/web-7d4b9`; empty for pods on their own."""
    placed: int
    pending: int


def alike(pods: Iterable[Pod]) -> Sequence[Alike]:
    """The pods that are not over, by what they ask for; the most frequent first. DaemonSets' are left out."""
    groups: dict[Wants, list[Pod]] = {}
    for pod in pods:
        owner = pod.metadata.controller
        if not pod.is_terminal and (owner is None or owner.kind not in ("DaemonSet", "Node")):
            groups.setdefault(PodInfo(pod).wants, []).append(pod)
    found = [_group(each) for each in groups.values()]
    return sorted(found, key=lambda each: (-each.placed - each.pending, each.pod.metadata.namespace, each.owner))


def _group(pods: Sequence[Pod]) -> Alike:
    first = min(pods, key=lambda pod: (pod.metadata.namespace, pod.metadata.name))
    owner = first.metadata.controller
    placed = sum(bool(pod.spec.node_name) for pod in pods)
    return Alike(first, f"{owner.kind}/{owner.name}" if owner else "", placed, len(pods) - placed)
