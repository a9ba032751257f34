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

_GENERATED_PREFIX = 58  # of 63 characters: five are random


class Identity(Protocol):
    """Where new objects get what is unique to them."""

    def uid(self) -> str:
        """A new UID."""
        ...

    def suffix(self) -> str:
        """Five random characters for a generated name."""
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
    if meta.get("namespace", "") not in ("", expected):
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if expected:
        meta["namespace"] = expected
    else:
        meta.pop("namespace", None)


def admit_create(
    strategy: Strategy, request: Request, plugins: Sequence[Plugin], state: State, identity: Identity
) -> None:
    """Make `request.doc`, decoded and defaulted, what is to be stored. Raises ApiError; then nothing is to be stored."""
    doc = request.doc
    meta = doc["metadata"]
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"][:_GENERATED_PREFIX] + identity.suffix()
    mine = [plugin for plugin in plugins if plugin.wants(request)]
    for plugin in mine:
        plugin.mutate(request, state)
    for dropped in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"):
        meta.pop(dropped, None)
    meta["uid"] = identity.uid()
    meta["creationTimestamp"] = identity.timestamp()
    if strategy.generation:
        meta["generation"] = 1
    strategy.prepare(doc)
    errors = Errors()
    validate_metadata(doc, namespaced=strategy.kind.namespaced, name_rule=strategy.name_rule, errors=errors)
    strategy.validate(doc, errors)
    if errors:
        raise invalid(strategy.kind, meta.get("name", ""), errors)
    request.warnings += strategy.warn(doc, None)
    for plugin in mine:
        plugin.validate(request, state)


def admit_update(strategy: Strategy, request: Request, plugins: Sequence[Plugin], state: State) -> None:
    """Make `request.doc` the new version of `request.old`. Raises ApiError; then the old version stands."""
    doc, old = request.doc, request.old
    assert old is not None
    mine = [plugin for plugin in plugins if plugin.wants(request)]
    for plugin in mine:
        plugin.mutate(request, state)
    keep_metadata(doc["metadata"], old["metadata"])
    errors = Errors()
    if request.subresource == "status":
        strategy.prepare_status(doc, old)
        _validate_update(strategy, doc, old, errors)
        strategy.validate_status(doc, old, errors)
    else:
        strategy.prepare_update(doc, old)
        if strategy.generation and differs(doc, old):
            doc["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        _validate_update(strategy, doc, old, errors)
        strategy.validate_update(doc, old, errors)
    if errors:
        raise invalid(strategy.kind, doc["metadata"].get("name", ""), errors)
    if not request.subresource:
        request.warnings += strategy.warn(doc, old)
    for plugin in mine:
        plugin.validate(request, state)


def _validate_update(strategy: Strategy, doc: Doc, old: Doc, errors: Errors) -> None:
    standard = strategy.name_rule is not path_segment_name
    validate_metadata_update(doc, old, errors, standard_finalizers=standard)


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
