"""Past templates of StatefulSets and DaemonSets, kept as ControllerRevisions.

A revision holds the patch that would bring its template back. The newest number is the template in force; going back to
an old template gives its revision a new number instead of making another. Source of truth: pkg/controller/history,
getStatefulSetRevisions, constructHistory in pkg/controller/daemon/update.go.
"""

from __future__ import annotations

import msgspec

from bayplan.cluster.embedded.controllers.contract import Create, Patch, View, Write
from bayplan.cluster.embedded.controllers.ownership import controlled, reference
from bayplan.cluster.embedded.controllers.stamping import same_template, template_body, template_hash
from bayplan.cluster.kinds import CONTROLLER_REVISION
from bayplan.cluster.objects import Object, Section
from bayplan.model.meta import ObjectMeta, Wire
from bayplan.model.pods import PodTemplate
from bayplan.model.workloads import ControllerRevision

REVISION_LABEL = "controller-revision-hash"
_MAX_PREFIX = 223


class _Spec(Wire, frozen=True):
    template: PodTemplate = PodTemplate()


class _Data(Wire, frozen=True):
    spec: _Spec = _Spec()


class Revision(msgspec.Struct, frozen=True):
    """One kept template; `item` is None while it is about to be made."""

    name: str
    number: int
    hash: str
    template: PodTemplate
    item: Object | None = None


class History(msgspec.Struct, frozen=True):
    """All kept templates by number, oldest first, the last in force, and the writes that make it so."""

    revisions: tuple[Revision, ...]
    collisions: int | None
    writes: tuple[Write, ...] = ()

    @property
    def update(self) -> Revision:
        """The one in force."""
        return self.revisions[-1]

    def named(self, name: str) -> Revision | None:
        """The one of that name, if it is kept."""
        return next((one for one in self.revisions if one.name == name), None)


def history(view: View, owner: Object, template: PodTemplate, collisions: int | None, label: str) -> History:
    """The history of an owner with `template` in force. `label` is where a revision carries its hash."""
    kept = sorted((_read(one, label) for one in controlled(view, owner, CONTROLLER_REVISION)), key=_age)
    equal = [one for one in kept if same_template(one.template, template)]
    number = kept[-1].number + 1 if kept else 1
    if not equal:
        made, collisions = _unused(view, owner, template, collisions, number)
        return History((*kept, made), collisions, (_create(owner, made, label),))
    found = equal[-1]
    if found is kept[-1]:
        return History(tuple(kept), collisions)
    back = msgspec.structs.replace(found, number=number)
    others = (one for one in kept if one is not found)
    writes = (Patch(found.item, {"revision": number}),) if found.item else ()
    return History((*others, back), collisions, writes)


def _read(item: Object, label: str) -> Revision:
    kept = item.view(ControllerRevision)
    template = msgspec.json.decode(kept.data, type=_Data).spec.template
    return Revision(item.name, kept.revision, item.meta.labels.get(label, ""), template, item)


def _age(one: Revision) -> tuple[int, str, str]:
    created = one.item.meta.creation_timestamp if one.item else None
    return (one.number, created or "", one.name)


def _unused(
    view: View, owner: Object, template: PodTemplate, collisions: int | None, number: int
) -> tuple[Revision, int | None]:
    """A revision under a name that nobody has, and how many collisions that took."""
    while True:
        suffix = template_hash(template, collisions)
        name = f"{owner.name[:_MAX_PREFIX]}-{suffix}"
        if view.get(CONTROLLER_REVISION, owner.namespace, name) is None:
            return Revision(name, number, suffix, template), collisions
        collisions = (collisions or 0) + 1


def _create(owner: Object, made: Revision, label: str) -> Create:
    meta = ObjectMeta(
        name=made.name,
        namespace=owner.namespace,
        labels={**made.template.metadata.labels, label: made.hash},
        annotations=owner.meta.annotations,
        owner_references=(reference(owner),),
    )
    data = {"spec": {"template": {**template_body(made.template), "$patch": "replace"}}}
    sections = {"data": Section(msgspec.json.encode(data)), "revision": Section(str(made.number).encode())}
    return Create(CONTROLLER_REVISION, meta, sections)
