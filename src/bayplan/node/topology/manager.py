"""The topology manager: asks every provider where a container could go, decides, and lets each allocate there.

Its only state is the affinity decided for each container. An attempt is told as a value, `Admission`: who hinted
what, what the merge made of it, and what went wrong where. A refused pod keeps what its earlier containers got until
it is removed, as in the kubelet.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Self

import msgspec

from bayplan.node.errors import AllocationError, PolicyError
from bayplan.node.machine import NumaNode
from bayplan.node.needs import ContainerNeed, PodNeed
from bayplan.node.policies import TopologyPolicies
from bayplan.node.provider import Provider
from bayplan.node.sets import mask_of
from bayplan.node.topology.hint import NO_HINT, Hint, Hints
from bayplan.node.topology.merge import Merged, Numa, Why, listed, merge, only_single
from bayplan.node.topology.options import read_options

SINGLE = "single-numa-node"
_STRICT = ("restricted", SINGLE)
_POLICIES = ("best-effort", *_STRICT)
_SCOPES = ("container", "pod")

Providers = Mapping[str, Provider]
"""By name, in the order in which they are asked."""


class Choice(msgspec.Struct, frozen=True):
    """One merge: for a container, or for the whole pod where `container` is empty."""

    container: str
    hints: Mapping[str, Hints]
    """By provider."""
    best: Hint
    admitted: bool
    why: Why


class Refusal(msgspec.Struct, frozen=True):
    """Why a pod is refused. `reason` and `message` are those of its status; the rest tells whose allocation failed."""

    reason: str
    message: str
    container: str = ""
    provider: str = ""
    error: AllocationError | None = None


NOT_ALIGNED = Refusal("TopologyAffinityError", "Resources cannot be allocated with Topology locality")
"""The topology manager's own refusal, by what its policy makes of the hints."""


class Admission(msgspec.Struct, frozen=True):
    """How the attempt to admit a pod came out."""

    uid: str
    affinities: Mapping[str, Hint]
    """In force for each container after the attempt."""
    choices: tuple[Choice, ...] = ()
    """What was decided; where that is a refusal, it is the last one."""
    refusal: Refusal | None = None

    @property
    def admitted(self) -> bool:
        """Whether the pod may run."""
        return self.refusal is None


class TopologyManager:
    """Decides affinities by a policy. Raises PolicyError where the machine cannot have the policy."""

    def __init__(self, policies: TopologyPolicies, nodes: Sequence[NumaNode]) -> None:
        self.policies = policies
        self.affinities: Mapping[str, Mapping[str, Hint]] = {}
        self._numa = Numa(0) if policies.policy == "none" else _checked(policies, nodes)

    def affinity(self, uid: str, container: str) -> Hint:
        """What is in force for a container."""
        return self.affinities.get(uid, {}).get(container, NO_HINT)

    def decide(self, providers: Sequence[Hints]) -> tuple[Merged, bool]:
        """The affinity that the policy makes of the providers' hints, and whether it admits."""
        policy = self.policies.policy
        if policy == "none":
            return Merged(NO_HINT, Why.INDIFFERENT), True
        lists = [*listed(providers)]
        merged = merge([*only_single(lists)] if policy == SINGLE else lists, self._numa)
        if policy == SINGLE and merged.hint.nodes == self._numa.nodes:
            merged = Merged(Hint(None, merged.hint.preferred), merged.why)
        return merged, merged.hint.preferred or policy not in _STRICT

    def admit(self, pod: PodNeed, providers: Providers) -> Admission:
        """Try to give every container of the pod what it asks for."""
        choices: list[Choice] = []
        refusal = None
        for container in pod.containers:
            refusal = self._choose(pod, container, providers, choices) or self._allocate(pod, container, providers)
            if refusal is not None:
                break
        affinities = {each.name: self.affinity(pod.uid, each.name) for each in pod.containers}
        return Admission(pod.uid, affinities, tuple(choices), refusal)

    def forget(self, uid: str) -> None:
        """Drop the affinities of a pod that is gone."""
        self.affinities = {known: kept for known, kept in self.affinities.items() if known != uid}

    def fork(self) -> Self:
        """A copy to try things on."""
        return copy.copy(self)

    def _choose(
        self, pod: PodNeed, container: ContainerNeed, providers: Providers, choices: list[Choice]
    ) -> Refusal | None:
        """Decide the container's affinity and keep it. In scope pod the first decision is for all containers."""
        if self.policies.policy == "none":
            return None
        whole = self.policies.scope == "pod"
        if not (whole and choices):
            hints = {
                name: provider.pod_hints(pod) if whole else provider.hints(pod, container)
                for name, provider in providers.items()
            }
            merged, admitted = self.decide([*hints.values()])
            choices.append(Choice("" if whole else container.name, hints, merged.hint, admitted, merged.why))
        if not choices[-1].admitted:
            return NOT_ALIGNED
        of_pod = {**self.affinities.get(pod.uid, {}), container.name: choices[-1].best}
        self.affinities = {**self.affinities, pod.uid: of_pod}
        return None

    def _allocate(self, pod: PodNeed, container: ContainerNeed, providers: Providers) -> Refusal | None:
        for name, provider in providers.items():
            try:
                provider.allocate(pod, container, self.affinity(pod.uid, container.name))
            except AllocationError as error:
                return Refusal(error.reason, error.admission_message, container.name, name, error)
        return None


def _checked(policies: TopologyPolicies, nodes: Sequence[NumaNode]) -> Numa:
    """The NUMA nodes as the policy needs them, checked in the kubelet's order."""
    options = read_options(policies.options)
    mask = mask_of(node.id for node in nodes)
    distances = {node.id: node.distances for node in nodes} if options.prefer_closest else None
    if distances is not None and any(mask & ~mask_of(row) for row in distances.values()):
        raise PolicyError(
            "cannot discover NUMA topology: error getting NUMA distances from cadvisor",
            hint="a distance from every NUMA node to every other is needed to prefer the closest",
        )
    if len(nodes) > options.most_nodes:
        raise PolicyError(
            f"unsupported on machines with more than {options.most_nodes} NUMA Nodes",
            hint=f"this one has {len(nodes)}; the option max-allowable-numa-nodes raises the limit",
        )
    if policies.policy not in _POLICIES:
        raise PolicyError(f'unknown policy: "{policies.policy}"', hint=f"known: none, {', '.join(_POLICIES)}")
    if policies.scope not in _SCOPES:
        raise PolicyError(f'unknown scope: "{policies.scope}"', hint=f"known: {', '.join(_SCOPES)}")
    return Numa(mask, distances)
