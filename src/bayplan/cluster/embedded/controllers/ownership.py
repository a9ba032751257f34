"""Whose an object is: who controls it, who takes it in, who lets it go.

An owner keeps what its selector matches. What it controls and no longer matches, it releases at its next look. What
matches and has no controller is adopted by `Adoption`, which looks at each orphan once when it appears or changes, and
at all orphans of a namespace when an owner appears: so no owner ever searches the cluster for strays. Adoptions stand
before the owners in the list of controllers, so that an owner counts what it adopted before it makes more.

Source of truth: pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from bayplan.cluster.embedded.controllers.contract import NOTHING, Concern, Outcome, Patch, View
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import (
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEPLOYMENT,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Kind,
)
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant
from bayplan.model.meta import KubernetesObject, LabelSelector, OwnerReference
from bayplan.model.pods import Pod
from bayplan.model.selectors import NOTHING as SELECTS_NOTHING
from bayplan.model.selectors import Selector, from_label_selector
from bayplan.model.workloads import DaemonSet, Deployment, ReplicaSet, ReplicationController, StatefulSet

_NUMBERED = re.compile(r"(.*)-([0-9]+)")
_WANT_RUNNING = (REPLICA_SET, REPLICATION_CONTROLLER)  # the others adopt a pod that has ended, too


def reference(owner: Object) -> OwnerReference:
    """How a dependent names its controller."""
    return OwnerReference(
        api_version=owner.kind.api_version,
        kind=owner.kind.name,
        name=owner.name,
        uid=owner.uid,
        controller=True,
        block_owner_deletion=True,
    )


def controls(owner: Object, item: Object) -> bool:
    """Whether an object is controlled by this owner."""
    controller = item.meta.controller
    return controller is not None and controller.uid == owner.uid


def controlled(view: View, owner: Object, kind: Kind) -> list[Object]:
    """What an owner controls, in the order in which it came."""
    return [item for item in view.owned_by(owner.uid, kind) if controls(owner, item)]


def parted(owner: Object, items: Iterable[Object]) -> tuple[list[Object], list[Patch]]:
    """What an owner keeps of what it controls, and how it lets go of the rest."""
    selector = selector_of(owner)
    kept, released = [], []
    for item in items:
        if belongs(owner, selector, item):
            kept.append(item)
        elif owner.meta.deletion_timestamp is None:
            released.append(release(owner, item))
    return kept, released


def belongs(owner: Object, selector: Selector, item: Object) -> bool:
    """Whether an owner would have an object: its selector matches, and a StatefulSet's pods bear its name."""
    if not selector.matches(item.meta.labels):
        return False
    return owner.kind is not STATEFUL_SET or item.kind is not POD or ordinal_of(owner.name, item.name) is not None


def ordinal_of(owner: str, name: str) -> int | None:
    """The number in the name of a StatefulSet's pod; None if it is no name of this set's."""
    found = _NUMBERED.fullmatch(name)
    return int(found[2]) if found is not None and found[1] == owner else None


def release(owner: Object, item: Object) -> Patch:
    """Take an owner off an object."""
    return _owned(item, tuple(one for one in item.meta.owner_references if one.uid != owner.uid))


def adopt(owner: Object, item: Object) -> Patch:
    """Put an object under an owner's control."""
    others = tuple(one for one in item.meta.owner_references if one.uid != owner.uid)
    return _owned(item, (*others, reference(owner)))


def _owned(item: Object, owners: tuple[OwnerReference, ...]) -> Patch:
    return Patch(item, {"metadata": {"uid": item.uid, "ownerReferences": msgspec.to_builtins(owners)}})


def selector_of(owner: Object) -> Selector:
    """What an owner selects; nothing where the selector is empty, though upstream's validation lets none be."""
    match owner.view(KubernetesObject):
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet() as found:
            return from_label_selector(found.spec.selector) or SELECTS_NOTHING
        case ReplicationController() as found:
            return from_label_selector(LabelSelector(match_labels=found.spec.selector)) or SELECTS_NOTHING
        case other:
            raise TypeError(f"{other.KIND} selects nothing")


class Adoption:
    """The controller that gives orphans of one kind to owners that select them."""

    def __init__(self, kind: Kind, owners: tuple[Kind, ...]) -> None:
        self.name = f"{kind.name.lower()}-adoption"
        self._kind = kind
        self._owners = owners
        self.watches: Mapping[Kind, Concern] = {kind: _orphaned, **dict.fromkeys(owners, self._selected)}

    def _selected(self, change: Change, view: View) -> Iterable[Key]:
        """A new owner concerns the orphans that it selects. Selectors do not change later."""
        if change.type is not ChangeType.ADDED:
            return
        owner, selector = change.new, selector_of(change.new)
        for item in view.orphans(self._kind, owner.namespace):
            if belongs(owner, selector, item):
                yield item.key

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:  # noqa: ARG002 - the contract's signature
        item = view.get(self._kind, *key)
        if item is None or item.meta.controller is not None or item.meta.deletion_timestamp is not None:
            return NOTHING
        for kind in self._owners:
            for owner in view.objects(kind, item.namespace):
                if _adopts(owner, item):
                    return Outcome([adopt(owner, item)])
        return NOTHING


def _orphaned(change: Change, _view: View) -> Iterable[Key]:
    new, old = change.new.meta, change.old
    if change.type is ChangeType.DELETED or new.controller is not None:
        return ()
    if old is None or old.meta.labels != new.labels or old.meta.owner_references != new.owner_references:
        return (change.new.key,)
    return ()


def _adopts(owner: Object, item: Object) -> bool:
    if owner.meta.deletion_timestamp is not None or not belongs(owner, selector_of(owner), item):
        return False
    return owner.kind not in _WANT_RUNNING or not item.view(Pod).is_terminal


ADOPTIONS = (
    Adoption(POD, (REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, DAEMON_SET)),
    Adoption(REPLICA_SET, (DEPLOYMENT,)),
    Adoption(CONTROLLER_REVISION, (STATEFUL_SET, DAEMON_SET)),
)
