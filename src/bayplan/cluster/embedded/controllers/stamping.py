"""Making pods from templates, and telling templates apart.

All pods of one template share one Section, so their spec is held and decoded once. A template's hash is short, made of
letters that spell nothing, and depends on nothing but the template and the number of collisions its owner has seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from bayplan.cluster.embedded.controllers.contract import Create, Delete, Emit, View
from bayplan.cluster.embedded.controllers.ownership import reference
from bayplan.cluster.kinds import NAMESPACE, POD
from bayplan.cluster.objects import Object, Section
from bayplan.model.meta import ObjectMeta
from bayplan.model.pods import PodTemplate

POD_TEMPLATE_HASH = "pod-template-hash"
_SAFE = "bcdfghjklmnpqrstvwxz2456789"  # as generated names: no vowels, nothing that reads as a word
_MAX_PREFIX = 253  # of a DNS subdomain


def spec_section(template: PodTemplate) -> Section:
    """A template's spec, to be shared by all pods made from it."""
    return Section(bytes(template.spec))


def pod_meta(
    template: PodTemplate, owner: Object, *, name: str = "", labels: Mapping[str, str] | None = None
) -> ObjectMeta:
    """The metadata of a pod of this owner: its template's, with more labels where given."""
    meta = template.metadata
    return ObjectMeta(
        name=name,
        generate_name="" if name else name_prefix(owner.name),
        namespace=owner.namespace,
        labels={**meta.labels, **(labels or {})},
        annotations=meta.annotations,
        finalizers=meta.finalizers,
        owner_references=(reference(owner),),
    )


def name_prefix(name: str) -> str:
    """What the generated names of an owner's pods begin with."""
    return f"{name}-" if len(name) < _MAX_PREFIX else name


def create_pod(owner: Object, meta: ObjectMeta, spec: Section, component: str) -> Create:
    """A pod to be made, and what its owner says of it."""
    return Create(
        POD,
        meta,
        {"spec": spec},
        then=Emit(owner, "Normal", "SuccessfulCreate", "Created pod: {name}", component),
        refused=Emit(owner, "Warning", "FailedCreate", "Error creating: {error}", component),
    )


def delete_pod(owner: Object, pod: Object, component: str) -> Delete:
    """A pod to be deleted, and what its owner says of it."""
    return Delete(pod, then=Emit(owner, "Normal", "SuccessfulDelete", "Deleted pod: {name}", component))


def is_ending(view: View, namespace: str) -> bool:
    """Whether a namespace is being deleted, so that nothing can be made in it."""
    found = view.get(NAMESPACE, "", namespace)
    return found is None or found.meta.deletion_timestamp is not None


def template_body(template: PodTemplate, labels: Mapping[str, str] | None = None) -> dict[str, object]:
    """A template as plain values, its spec still bytes; with other labels where given."""
    meta = template.metadata if labels is None else msgspec.structs.replace(template.metadata, labels=dict(labels))
    return {"metadata": msgspec.to_builtins(meta), "spec": template.spec}


def template_hash(template: PodTemplate, collisions: int | None) -> str:
    """A name for a template; another one for each collision."""
    meta = template.metadata
    content = msgspec.json.encode((meta.labels, meta.annotations, collisions), order="sorted") + bytes(template.spec)
    number = int.from_bytes(hashlib.blake2b(content, digest_size=4).digest(), "big")
    return "".join(_SAFE[ord(digit) % len(_SAFE)] for digit in str(number))


def same_template(one: PodTemplate, other: PodTemplate) -> bool:
    """Whether two templates make the same pods; the label that only tells templates apart does not count."""
    return (
        _told_labels(one) == _told_labels(other)
        and one.metadata.annotations == other.metadata.annotations
        and one.metadata.finalizers == other.metadata.finalizers
        and (bytes(one.spec) == bytes(other.spec) or msgspec.json.decode(one.spec) == msgspec.json.decode(other.spec))
    )


def _told_labels(template: PodTemplate) -> dict[str, str]:
    return {key: value for key, value in template.metadata.labels.items() if key != POD_TEMPLATE_HASH}
