"""The refusals that every kind shares, in the API server's words."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.cluster.embedded.admission.fields import Errors
from bayplan.cluster.kinds import Kind
from bayplan.cluster.objects import Object
from bayplan.model.errors import AlreadyExists, Conflict, Details, Invalid, NotFound

_STORAGE_PATHS = {"services": "services/specs", "nodes": "minions"}


def _about(kind: Kind, name: str) -> Details:
    return Details(name=name, group=kind.group, kind=kind.plural)


def not_found(kind: Kind, name: str) -> NotFound:
    """There is no such object."""
    return NotFound(f'{kind.resource} "{name}" not found', details=_about(kind, name))


def already_exists(kind: Kind, name: str) -> AlreadyExists:
    """The name is taken."""
    return AlreadyExists(f'{kind.resource} "{name}" already exists', details=_about(kind, name))


def conflict(kind: Kind, name: str, why: str) -> Conflict:
    """The write does not fit the object as it is now."""
    return Conflict(f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}', details=_about(kind, name))


def modified(kind: Kind, name: str) -> Conflict:
    """The resourceVersion is not the present one."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, why)


def uid_precondition(kind: Kind, item: Object, uid: str) -> Conflict:
    """A write that names the uid of another incarnation."""
    path = "/".join(filter(None, (_STORAGE_PATHS.get(kind.plural, kind.plural), item.namespace, item.name)))
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{path}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {uid}, UID in object meta: {item.uid}"
    )
    return conflict(kind, item.name, why)


def uid_changed(item: Object, uid: str) -> Conflict:
    """A delete or eviction that names the uid of another incarnation."""
    kind = item.kind
    return Conflict(
        f'Operation cannot be fulfilled on {kind.name} "{item.name}": the UID in the precondition ({uid}) does not '
        f"match the UID in record ({item.uid}). The object might have been deleted and then recreated",
        details=Details(name=item.name, group=kind.group, kind=kind.name),
    )


def options_refused(kind: str, field: str, value: object, allowed: Iterable[str]) -> Invalid:
    """A bad query parameter of a write."""
    errors = Errors()
    errors.not_supported(field, value, allowed)
    details = Details(group="meta.k8s.io", kind=kind, causes=tuple(errors))
    return Invalid(f'{kind}.meta.k8s.io "" is invalid: {field}: {errors[0].message}', details=details)
