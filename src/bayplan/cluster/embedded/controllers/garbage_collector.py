"""What nobody owns any more goes, and what waits for its dependents goes after them.

An object lives as long as one of its owners does. An owner is found by kind and name and must have the uid that the
reference names; where a reference names a kind that this cluster does not know, nothing is decided. A deletion in the
foreground waits for the dependents that block it; one that orphans takes the owner off its dependents first.

Objects of all kinds are looked at, so a key is the namespace and `Kind.group/name`.
Source of truth: pkg/controller/garbagecollector.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

import msgspec

from bayplan.cluster.embedded.controllers.contract import (
    ANY_CUSTOM,
    NOTHING,
    Concern,
    Delete,
    Outcome,
    Patch,
    View,
    Write,
)
from bayplan.cluster.embedded.deletion import FOREGROUND, ORPHAN, Propagation
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import EVENT, KINDS, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant
from bayplan.model.meta import ObjectMeta, OwnerReference


class Tie(Enum):
    """What a reference to an owner is worth."""

    SOLID = "the owner is there"
    DANGLING = "there is no such owner"
    WAITING = "the owner waits for its dependents to go"
    UNKNOWN = "the owner cannot be looked up"


def key_of(item: Object) -> Key:
    """The collector's key of an object."""
    return (item.namespace, f"{item.kind.qualified}/{item.name}")


def _concerned(change: Change, view: View) -> Iterable[Key]:
    new, old = change.new, change.old
    if change.type is ChangeType.DELETED:
        return _left_behind(new, view)
    if old is None:
        found = any(_tie(each, new, view) is not Tie.SOLID for each in new.meta.owner_references)
        return (key_of(new),) if found or _is_waiting(new.meta) else ()
    if _is_waiting(new.meta) and not _is_waiting(old.meta):
        return (*map(key_of, view.owned_by(new.uid)), key_of(new))
    if new.meta.owner_references != old.meta.owner_references:
        return (*_waiting_owners(old, view), key_of(new))
    return ()


def _left_behind(gone: Object, view: View) -> Iterable[Key]:
    """Whom the end of an object concerns: its dependents, and the owners that waited for it."""
    yield from map(key_of, view.owned_by(gone.uid))
    yield from _waiting_owners(gone, view)


def _waiting_owners(item: Object, view: View) -> Iterable[Key]:
    for each in item.meta.owner_references:
        owner = _owner(each, item, view)
        if owner is not None and _is_waiting(owner.meta):
            yield key_of(owner)


def _is_waiting(meta: ObjectMeta) -> bool:
    """Whether a deleted object is held by what the collector has to do."""
    return meta.deletion_timestamp is not None and (FOREGROUND in meta.finalizers or ORPHAN in meta.finalizers)


class GarbageCollector:
    """Deletes what has lost its owners."""

    name = "garbage-collector-controller"
    watches: Mapping[Kind, Concern] = {kind: _concerned for kind in (*KINDS.values(), ANY_CUSTOM) if kind is not EVENT}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:  # noqa: ARG002 - the contract's signature
        qualified, _, name = key[1].partition("/")
        kind = view.registry.qualified(qualified)
        item = None if kind is None else view.get(kind, key[0], name)
        return NOTHING if item is None else Outcome(collect(item, view))


def collect(item: Object, view: View) -> Sequence[Write]:
    """What the collector does about one object."""
    meta = item.meta
    if meta.deletion_timestamp is None:
        return _judged(item, view)
    if ORPHAN in meta.finalizers:
        freed = [_owned_by_others(each, {item.uid}) for each in view.owned_by(item.uid)]
        return [*freed, _without_finalizer(item, ORPHAN)]
    if FOREGROUND in meta.finalizers and not any(_blocks(each, item) for each in view.owned_by(item.uid)):
        return [_without_finalizer(item, FOREGROUND)]
    return ()


def _judged(item: Object, view: View) -> Sequence[Write]:
    """Whether an object stays, stays without some of its owners, or goes."""
    ties = {each.uid: _tie(each, item, view) for each in item.meta.owner_references}
    found = set(ties.values())
    if not found or Tie.UNKNOWN in found:
        return ()
    if Tie.SOLID in found:
        lost = {uid for uid, tie in ties.items() if tie is not Tie.SOLID}
        return [_owned_by_others(item, lost)] if lost else ()
    dependents = view.owned_by(item.uid)
    if Tie.WAITING in found and dependents:
        circle = any(_is_waiting(each.meta) and FOREGROUND in each.meta.finalizers for each in dependents)
        unblock = [_unblocked(item)] if circle else []
        return [*unblock, Delete(item, propagation="Foreground")]
    return [Delete(item, propagation=_propagation(item.meta))]


def _tie(reference: OwnerReference, item: Object, view: View) -> Tie:
    kind = view.registry.find(reference.api_version, reference.kind)
    if kind is None or (kind.namespaced and not item.namespace):
        return Tie.UNKNOWN
    owner = _owner(reference, item, view)
    if owner is None:
        return Tie.DANGLING
    waits = owner.meta.deletion_timestamp is not None and FOREGROUND in owner.meta.finalizers
    return Tie.WAITING if waits else Tie.SOLID


def _owner(reference: OwnerReference, item: Object, view: View) -> Object | None:
    kind = view.registry.find(reference.api_version, reference.kind)
    owner = None if kind is None else view.get(kind, item.namespace if kind.namespaced else "", reference.name)
    return owner if owner is not None and owner.uid == reference.uid else None


def _blocks(dependent: Object, owner: Object) -> bool:
    return any(each.uid == owner.uid and each.block_owner_deletion for each in dependent.meta.owner_references)


def _propagation(meta: ObjectMeta) -> Propagation:
    """A wish that stands on the object already is honoured."""
    if ORPHAN in meta.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in meta.finalizers else "Background"


def _owned_by_others(item: Object, lost: set[str]) -> Patch:
    return _with_owners(item, tuple(each for each in item.meta.owner_references if each.uid not in lost))


def _unblocked(item: Object) -> Patch:
    owners = (msgspec.structs.replace(each, block_owner_deletion=False) for each in item.meta.owner_references)
    return _with_owners(item, tuple(owners))


def _with_owners(item: Object, owners: tuple[OwnerReference, ...]) -> Patch:
    return Patch(item, {"metadata": {"uid": item.uid, "ownerReferences": msgspec.to_builtins(owners) or None}})


def _without_finalizer(item: Object, finalizer: str) -> Patch:
    others = [each for each in item.meta.finalizers if each != finalizer]
    return Patch(item, {"metadata": {"uid": item.uid, "finalizers": others or None}})
