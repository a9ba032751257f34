"""Claims on devices (dynamic resource allocation).

ResourceClaim objects are not kept here, nor device classes in place of extended resources. So a pod that needs a claim
waits for it, in upstream's words for a claim that does not exist. To pods without claims all nodes are equal, and the
plugin says so with an explicit 0.

Source of truth: kube-scheduler 1.36 DynamicResources and dynamic-resource-allocation 0.36 resourceclaim.Name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.framework import NodeScore, Plugin, Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.model.pods import PodResourceClaim
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState


class DynamicResources(Plugin):
    """Holds pods back that wait for their claims."""

    name = "DynamicResources"

    def enqueue(self, pod: PodInfo) -> Refusal | None:
        """Names the first claim that is missing."""
        claims = pod.wants.spec.resource_claims
        return Refusal(self.name, (_missing(pod, claims[0]),), hopeless=True) if claims else None

    def filter(self, pod: PodInfo, state: ClusterState) -> Refusal | None:
        """The same again, for a pod whose claim went while it was in the queue."""
        return self.enqueue(pod)

    def score(self, pod: PodInfo, state: ClusterState, nodes: Sequence[NodeState]) -> NodeScore:
        """Always."""
        return _ALL_EQUAL


def _missing(pod: PodInfo, claim: PodResourceClaim) -> str:
    if claim.resource_claim_name is not None:
        return f'could not find ResourceClaim "{pod.namespace}/{claim.resource_claim_name}"'
    named = f'pod "{"/".join(pod.key)}"'
    if claim.resource_claim_template_name is not None:
        return f"{named}: ResourceClaim not created yet"
    return f'{named}, spec.resourceClaim "{claim.name}": none of the supported fields are set'


class _AllEqual(NodeScore):
    def score(self, node: NodeState) -> int:
        return 0


_ALL_EQUAL = _AllEqual()
