"""What objects of custom kinds have in common at each step of a write: their schema is all that tells them apart.

Where a kind has a status subresource, status has a door of its own: neither side can change what is behind the other.
Source of truth: apiextensions-apiserver, pkg/registry/customresource.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors, quoted
from bayplan.cluster.embedded.admission.kinds.carry import put
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import path_segment_name, subdomain_name
from bayplan.cluster.embedded.custom.schema import validate
from bayplan.cluster.kinds import Kind

_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_IDENTITY = ("resourceVersion", "managedFields", "uid", "name", "namespace")
"""What an update of the status says of the object itself: it is checked, not taken over."""


class _Rules:
    """The steps and rules of one kind."""

    def __init__(self, kind: Kind, schema: Doc) -> None:
        self._status_apart = "status" in kind.subresources
        own = {key: value for key, value in schema.get("properties", {}).items() if key != "metadata"}
        required = [key for key in schema.get("required", ()) if key != "metadata"]
        self._schema = {**schema, "properties": own, "required": required}  # metadata is every object's

    def prepare(self, doc: Doc) -> None:
        if self._status_apart:
            doc.pop("status", None)

    def prepare_update(self, new: Doc, old: Doc) -> None:
        if self._status_apart:
            put(new, "status", old.get("status"))
        elif new.get("status") != old.get("status"):  # then it counts like everything else
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def prepare_status(self, new: Doc, old: Doc) -> None:
        said, status = new["metadata"], new.get("status")
        metadata = {**old["metadata"], **{key: said[key] for key in _IDENTITY if key in said}}
        new.clear()
        new |= {**old, "metadata": metadata}
        put(new, "status", status)

    def validate_new(self, doc: Doc, errors: Errors) -> None:
        for fault in subdomain_name(doc["metadata"].get("name", ""), False):
            errors.invalid("metadata.name", doc["metadata"]["name"], fault)
        self.validate(doc, None, errors)

    def validate(self, doc: Doc, _old: Doc | None, errors: Errors) -> None:
        validate({key: value for key, value in doc.items() if key != "metadata"}, self._schema, errors)


def strategy_for(kind: Kind, schema: Doc) -> Strategy:
    """The rules of a custom kind."""
    rules = _Rules(kind, schema)
    return Strategy(
        kind=kind,
        name_rule=path_segment_name,  # which also lets any finalizer pass; the name's own rule is in `validate_new`
        generation=True,
        prepare=rules.prepare,
        validate=rules.validate_new,
        prepare_update=rules.prepare_update,
        validate_update=rules.validate,
        prepare_status=rules.prepare_status,
        validate_status=rules.validate,
        warn=_finalizer_warnings,
        needs_version=True,
    )


def _finalizer_warnings(new: Doc, old: Doc | None) -> list[str]:
    """Finalizers may have any name, but one that says whose it is would be better."""
    known = {*_STANDARD_FINALIZERS, *((old or {}).get("metadata", {}).get("finalizers", ()))}
    added = sorted({*new["metadata"].get("finalizers", ())} - known)
    advice = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
    return [f"metadata.finalizers: {quoted(name)}: {advice}" for name in added if "/" not in name]
