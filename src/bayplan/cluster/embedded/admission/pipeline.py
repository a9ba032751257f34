"""The order of work: what happens to a document between the client's bytes and the store.

    create   decode+default > plugins mutate > system metadata > prepare > validate > plugins validate
    update   the same, with the object as it was; immutable parts are put back before validation

Each step is somebody else's (strategy, plugin); only the order is here. Source of truth: apiserver registry/rest
BeforeCreate and BeforeUpdate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.metadata import validate_metadata, validate_metadata_update
from bayplan.cluster.embedded.admission.plugin import Plugin, Request, State
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import path_segment_name
from bayplan.cluster.kinds import Kind
from bayplan.model.errors import BadRequest, Cause, Details, Invalid

_SERVERS_OWN = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields")
_TRIES = 8  # for a generated name that nobody has, as upstream
_GENERATED_PREFIX = 58  # of 63 characters: five are random


class Identity(Protocol):
    """Where new objects get what is unique to them."""

    def uid(self) -> str:
        """A new UID."""
        ...

    def suffix(self) -> str:
        """Five random characters for a generated name."""
        ...

    def is_taken(self, kind: Kind, meta: Doc) -> bool:
        """Whether an object of that kind has the name already."""
        ...

    def timestamp(self) -> str:
        """The present second, as metadata writes it."""
        ...


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> Invalid:
    """The refusal of an object that breaks rules; repeated causes are told once."""
    distinct = tuple(dict.fromkeys(causes))
    told = [f"{cause.field}: {cause.message}" for cause in distinct]
    text = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    details = Details(name=name, group=kind.group, kind=kind.name, causes=distinct)
    return Invalid(f'{kind.qualified} "{name}" is invalid: {text}', details=details)


def match_namespace(doc: Doc, kind: Kind, namespace: str) -> None:
    """The namespace of the body must be the request's, if it says any. Raises BadRequest."""
    meta = doc["metadata"]
    expected = namespace if kind.namespaced else ""
    if expected and meta.get("namespace", "") not in ("", expected):
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if expected:
        meta["namespace"] = expected
    else:
        meta.pop("namespace", None)


def admit_create(
    strategy: Strategy, request: Request, plugins: Sequence[Plugin], state: State, identity: Identity
) -> None:
    """Make `request.doc`, decoded and defaulted, what is to be stored. Raises ApiError: then nothing is stored."""
    doc = request.doc
    meta = doc["metadata"]
    mine = [plugin for plugin in plugins if plugin.wants(request)]
    for plugin in mine:
        plugin.mutate(request, state)
    fill_metadata(meta, strategy, identity)
    strategy.prepare(doc)
    errors = Errors()
    validate_metadata(doc, namespaced=strategy.kind.namespaced, name_rule=strategy.name_rule, errors=errors)
    strategy.validate(doc, errors)
    if errors:
        raise invalid(strategy.kind, meta.get("name", ""), errors)
    request.warnings += strategy.warn(doc, None)
    for plugin in mine:
        plugin.validate(request, state)


def fill_metadata(meta: Doc, strategy: Strategy, identity: Identity) -> None:
    """What the server alone decides: a generated name, uid, time of creation; what a client may not set is dropped."""
    for dropped in _SERVERS_OWN:
        meta.pop(dropped, None)
    if not meta.get("name") and meta.get("generateName"):
        for _ in range(_TRIES):
            meta["name"] = meta["generateName"][:_GENERATED_PREFIX] + identity.suffix()
            if not identity.is_taken(strategy.kind, meta):
                break
    meta["uid"] = identity.uid()
    meta["creationTimestamp"] = identity.timestamp()
    if strategy.generation:
        meta["generation"] = 1


def admit_update(strategy: Strategy, request: Request, plugins: Sequence[Plugin], state: State) -> None:
    """Make `request.doc` the new version of `request.old`. Raises ApiError; then the old version stands."""
    doc, old = request.doc, request.old
    assert old is not None
    mine = [plugin for plugin in plugins if plugin.wants(request)]
    for plugin in mine:
        plugin.mutate(request, state)
    keep_metadata(doc["metadata"], old["metadata"])
    prepare, validate = {
        "": (strategy.prepare_update, strategy.validate_update),
        "status": (strategy.prepare_status, strategy.validate_status),
        "resize": (strategy.prepare_resize, strategy.validate_resize),
        "finalize": (strategy.prepare_finalize, strategy.validate_finalize),
    }[request.subresource]
    errors = Errors()
    prepare(doc, old)
    if strategy.generation and differs(doc, old):
        doc["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    standard = strategy.name_rule is not path_segment_name
    validate_metadata_update(doc, old, errors, standard_finalizers=standard)
    validate(doc, old, errors)
    if errors:
        raise invalid(strategy.kind, doc["metadata"].get("name", ""), errors)
    if not request.subresource:
        request.warnings += strategy.warn(doc, old)
    for plugin in mine:
        plugin.validate(request, state)


def keep_metadata(meta: Doc, old: Doc) -> None:
    """What a client cannot change, put back: generation, and where the client says nothing, uid and times."""
    for name in ("generation", "creationTimestamp", "deletionTimestamp"):
        if old.get(name) is not None:
            meta[name] = old[name]
        elif name == "generation":
            meta.pop(name, None)
    for name in ("uid", "deletionGracePeriodSeconds"):
        if old.get(name) is not None and meta.get(name) is None:
            meta[name] = old[name]
    meta.pop("selfLink", None)


def differs(doc: Doc, old: Doc) -> bool:
    """Whether anything but metadata and status changed: what a generation counts."""
    ignored = ("metadata", "status")
    return {k: v for k, v in doc.items() if k not in ignored} != {k: v for k, v in old.items() if k not in ignored}
