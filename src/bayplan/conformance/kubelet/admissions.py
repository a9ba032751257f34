"""What the recordings of the managers share: attempts to admit a pod, hints, the topology manager's settings."""

from __future__ import annotations

from bayplan.conformance.kubelet.cases import Case
from bayplan.node.errors import AllocationError
from bayplan.node.needs import PodNeed
from bayplan.node.policies import TopologyPolicies
from bayplan.node.sets import NodeSet, ids_of, mask_of
from bayplan.node.topology.hint import Hint, Hints
from bayplan.node.topology.manager import Admission, Providers, TopologyManager


def attempt(step: Case, pod: PodNeed, providers: Providers, topology: TopologyManager | None) -> Case:
    """Admit a pod under the topology manager or, without one, by the affinities that the step gives its containers."""
    if topology is not None:
        admission = topology.admit(pod, providers)
        error = admission.refusal.error if admission.refusal else None
        return {**admission_of(admission), "error": error and error.message}
    for container in pod.containers:
        affinity = step["affinity"].get(container.name) or {"numa": None, "preferred": False}
        nodes = None if affinity["numa"] is None else mask_of(affinity["numa"])
        for provider in providers.values():
            try:
                provider.allocate(pod, container, Hint(nodes, affinity["preferred"]))
            except AllocationError as error:
                return {"admit": False, "error": error.message, "failed_container": container.name}
    return {"admit": True, "error": None, "failed_container": ""}


def policies_of(asked: Case) -> TopologyPolicies:
    """The topology manager's settings."""
    return TopologyPolicies(asked["policy"], asked.get("scope", "container"), asked.get("options") or {})


def admission_of(admission: Admission) -> Case:
    """An admission in the recordings' form, but for the managers' own errors."""
    refusal = admission.refusal
    return {
        "admit": admission.admitted,
        "reason": refusal.reason if refusal else "",
        "message": refusal.message if refusal else "",
        "failed_container": refusal.container if refusal else "",
        "stored_affinity": {
            name: {"numa": _ids(hint.nodes), "preferred": hint.preferred} for name, hint in admission.affinities.items()
        },
    }


def hints_of(hints: Hints) -> Case | None:
    """A provider's hints in the recordings' form."""
    if hints is None:
        return None
    return {
        name: None if each is None else [[_ids(hint.nodes), hint.preferred] for hint in each]
        for name, each in hints.items()
    }


def _ids(nodes: NodeSet | None) -> list[int] | None:
    return None if nodes is None else [*ids_of(nodes)]
