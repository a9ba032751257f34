"""The contract between a controller and the world that runs it.

A controller is pure. It says which changes concern which of its objects (`watches`), looks at the cluster through
`View`, and answers with the writes it wants and the instant at which it wants to look again. The world applies the
writes in order, through the same API as any client: a write may be refused (quota, conflict, gone), and the controller
is then told and looks again after a back-off. Calling `reconcile` again on its own result returns nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from bayplan.cluster.embedded.deletion import Propagation
from bayplan.cluster.embedded.store import Change, Key
from bayplan.cluster.kinds import Kind, KindRegistry
from bayplan.cluster.objects import Object, Section
from bayplan.model.clock import Instant
from bayplan.model.meta import ObjectMeta


class View(Protocol):
    """What a controller sees: the present state, read-only (embedded.store.Store is one)."""

    @property
    def registry(self) -> KindRegistry:
        """The kinds there are."""
        ...

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """One object."""
        ...

    def objects(self, kind: Kind, namespace: str | None = None) -> Iterable[Object]:
        """The objects of a kind, in one namespace or in all, in order."""
        ...

    def owned_by(self, uid: str, kind: Kind | None = None) -> Sequence[Object]:
        """The objects that name an owner, in the order in which they came."""
        ...

    def orphans(self, kind: Kind, namespace: str) -> Sequence[Object]:
        """The pods, ReplicaSets or ControllerRevisions of a namespace that nobody controls."""
        ...

    def pods_on(self, node: str) -> Sequence[Object]:
        """The pods bound to a node."""
        ...


class Write(msgspec.Struct, frozen=True):
    """One thing a controller wants done."""


class Create(Write, frozen=True):
    """Store a new object. `sections` are passed on as they are: a pod's spec is its template's, bytes and all.

    `meta.name` may be empty with `meta.generate_name` set. `then`/`refused` are what to say of it, if anything:
    Events on the owner, `{name}` standing for the created object's name and `{error}` for the refusal.
    """

    kind: Kind
    meta: ObjectMeta
    sections: dict[str, Section]
    then: Emit | None = None
    refused: Emit | None = None
    instead: Callable[[str], Sequence[Write]] | None = None
    """What else is to be written when it is refused, given the refusal's message."""
    follow: Callable[[Object], Sequence[Write]] | None = None
    """What else is to be written once it is made, given what was made."""


class Delete(Write, frozen=True):
    """Delete one incarnation of an object; its being gone already is fine."""

    item: Object
    grace: int | None = None
    propagation: Propagation | None = None
    then: Emit | None = None


class SetStatus(Write, frozen=True):
    """Replace an object's status, whatever its version: the status belongs to the controller. Unchanged is no write.

    A status that is already encoded is stored as it is.
    """

    item: Object
    status: dict[str, Any] | Section


class Patch(Write, frozen=True):
    """Merge-patch an object's metadata or spec, or a subresource of it."""

    item: Object
    patch: dict[str, Any]
    subresource: str = ""


class Bind(Write, frozen=True):
    """Assign a pod to a node, with annotations that say more of it."""

    item: Object
    node: str
    then: Emit | None = None
    annotations: dict[str, str] = {}


class Emit(Write, frozen=True):
    """Record an Event about an object. Repeats of the same are counted on one Event, as upstream's recorder does."""

    about: Object
    type: str
    reason: str
    message: str
    component: str
    field: str = ""
    """The part of the object it is about: `spec.containers{app}`."""
    host: str = ""
    """The machine that the component speaks from."""
    related: Object | None = None
    """For whom it was done."""


class Outcome(msgspec.Struct, frozen=True):
    """What one look led to."""

    writes: Sequence[Write] = ()
    again: Instant | None = None
    """When to look again even if nothing changes."""


NOTHING = Outcome()

ANY_CUSTOM = Kind("*", "*", "*", "*", namespaced=True)
"""Stands in `watches` for every custom kind, whichever there are."""

Concern = Callable[[Change, View], Iterable[Key]]
"""Which of a controller's objects a change of some other object concerns."""


class Gathered:
    """A concern that can wait: all changes within `span` of the first lead to one look.

    `waits` says which objects can; by default all of them.
    """

    def __init__(
        self, concern: Concern, span: int, waits: Callable[[Key, View], bool] = lambda _key, _view: True
    ) -> None:
        self._concern = concern
        self.span = span
        self.waits = waits

    def __call__(self, change: Change, view: View) -> Iterable[Key]:
        return self._concern(change, view)


class Controller(Protocol):
    """One controller."""

    name: str
    watches: Mapping[Kind, Concern]
    """The kinds whose changes matter, each with whom they matter to. Called for every such change: be quick."""

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        """What is to be done about one object now; it may be gone."""
        ...


def itself(change: Change, _view: View) -> Iterable[Key]:
    """A change of the controller's own kind concerns the object that changed."""
    return (change.new.key,)


def _named(item: Object, kind: Kind) -> tuple[Key, ...]:
    reference = item.meta.controller if item.meta.owner_references else None
    return ((item.namespace, reference.name),) if reference is not None and reference.kind == kind.name else ()


def owner_of(kind: Kind) -> Concern:
    """A change of a dependent concerns its controlling owner, when that is of this kind."""

    def owner(change: Change, _view: View) -> Iterable[Key]:
        now = _named(change.new, kind)
        old = change.old
        if old is None or old.meta.owner_references == change.new.meta.owner_references:
            return now
        return (*now, *_named(old, kind))

    return owner
