"""The claims of a StatefulSet's pods: one for each claim template and ordinal, outliving the pod.

Whether a claim outlives the set or a scale-down is told by its owners: the set owns it if it goes with the set, a pod
that is to go for good owns it if it goes with the pod.

Source of truth: pkg/controller/statefulset/stateful_set_utils.go (updateClaimOwnerRefForSetAndPod).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.cluster.embedded.controllers.contract import Create, Emit, Patch, View
from bayplan.cluster.embedded.controllers.ownership import reference
from bayplan.cluster.kinds import PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from bayplan.cluster.objects import Object, Section
from bayplan.model.meta import ObjectMeta, OwnerReference
from bayplan.model.workloads import StatefulSet

COMPONENT = "statefulset-controller"


def claim_names(wanted: StatefulSet, ordinal: int) -> dict[str, str]:
    """The claims of one pod, by the names of their templates."""
    templates = wanted.spec.volume_claim_templates
    return {one.metadata.name: f"{one.metadata.name}-{wanted.metadata.name}-{ordinal}" for one in templates}


def missing_claims(item: Object, wanted: StatefulSet, ordinal: int, view: View) -> list[Create]:
    """The claims of one pod that are still to be made."""
    names = claim_names(wanted, ordinal)
    return [
        _create(item, wanted, names[template.metadata.name], ordinal, template.metadata, Section(bytes(template.spec)))
        for template in wanted.spec.volume_claim_templates
        if view.get(PERSISTENT_VOLUME_CLAIM, item.namespace, names[template.metadata.name]) is None
    ]


def _create(item: Object, wanted: StatefulSet, name: str, ordinal: int, template: ObjectMeta, spec: Section) -> Create:
    meta = ObjectMeta(
        name=name,
        namespace=item.namespace,
        labels={**template.labels, **wanted.spec.selector.match_labels},
        annotations=template.annotations,
    )
    pod, owner = f"{item.name}-{ordinal}", item.name
    done = f"Create Claim {name} Pod {pod} in StatefulSet {owner} success"
    refused = f"Create Claim {name} for Pod {pod} in StatefulSet {owner} failed error: {{error}}"
    return Create(
        PERSISTENT_VOLUME_CLAIM,
        meta,
        {"spec": spec},
        then=Emit(item, "Normal", "SuccessfulCreate", done, COMPONENT),
        refused=Emit(item, "Warning", "FailedCreate", refused, COMPONENT),
    )


def has_stale_claim(wanted: StatefulSet, ordinal: int, view: View) -> bool:
    """Whether a claim of a pod that is to be made still goes down with its predecessor."""
    if wanted.spec.persistent_volume_claim_retention_policy.when_scaled == "Retain":
        return False
    pod = f"{wanted.metadata.name}-{ordinal}"
    return any(
        _named(owner, POD.name, pod)
        for claim in _claims(wanted, ordinal, view)
        for owner in claim.meta.owner_references
    )


def vanishing_claim(wanted: StatefulSet, ordinal: int, view: View) -> str:
    """The name of a claim that a new pod would use and that is about to vanish; empty if there is none."""
    going = (one.name for one in _claims(wanted, ordinal, view) if one.meta.deletion_timestamp is not None)
    return next(going, "")


def might_use(wanted: StatefulSet, claim: str) -> bool:
    """Whether a claim has the name of one of the set's."""
    name, _, ordinal = claim.rpartition("-")
    templates = wanted.spec.volume_claim_templates
    return ordinal.isdigit() and any(name == f"{one.metadata.name}-{wanted.metadata.name}" for one in templates)


def retention(item: Object, wanted: StatefulSet, pod: Object, ordinal: int, view: View) -> list[Patch]:
    """The patches that make the claims of a pod go with whom the policy says."""
    patches = []
    for claim in _claims(wanted, ordinal, view):
        present = claim.meta.owner_references
        owners = _owners(item, wanted, pod, ordinal, present)
        if owners is not None and owners != present:
            patches.append(Patch(claim, {"metadata": {"ownerReferences": msgspec.to_builtins(owners)}}))
    return patches


def _owners(
    item: Object, wanted: StatefulSet, pod: Object, ordinal: int, present: tuple[OwnerReference, ...]
) -> tuple[OwnerReference, ...] | None:
    """Who is to own a claim; None where it is not ours to say, since it belongs to an earlier set or pod."""
    ours = [one for one in present if _named(one, STATEFUL_SET.name, item.name) or _named(one, POD.name, pod.name)]
    if any(one.uid not in (item.uid, pod.uid) for one in ours):
        return None
    others = tuple(one for one in present if one not in ours)
    policy = wanted.spec.persistent_volume_claim_retention_policy
    is_kept = policy.when_scaled == policy.when_deleted == "Retain"
    if is_kept or any(one.controller for one in others):
        return others
    first = wanted.spec.ordinals.start
    is_going = not first <= ordinal < first + wanted.spec.replicas
    if policy.when_scaled == "Delete" and is_going:
        return (*others, reference(pod))
    return (*others, reference(item)) if policy.when_deleted == "Delete" else others


def _named(owner: OwnerReference, kind: str, name: str) -> bool:
    return owner.kind == kind and owner.name == name


def _claims(wanted: StatefulSet, ordinal: int, view: View) -> Iterator[Object]:
    for name in claim_names(wanted, ordinal).values():
        claim = view.get(PERSISTENT_VOLUME_CLAIM, wanted.metadata.namespace, name)
        if claim is not None:
            yield claim
