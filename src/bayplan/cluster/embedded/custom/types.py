"""The custom kinds of a cluster, kept up with its CustomResourceDefinitions.

A definition takes effect as soon as it is stored, unless another has taken its names; its conditions follow when the
controller has looked at it. It ceases to when it is gone, after all its objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bayplan.cluster.embedded.custom.columns import columns_from
from bayplan.cluster.embedded.custom.definition import CustomForm, Definition, read_definition
from bayplan.cluster.embedded.custom.rules import DEFINITIONS
from bayplan.cluster.embedded.forms import Form, typed_form
from bayplan.cluster.embedded.store import Change, ChangeType, Store
from bayplan.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, Kind, is_built_in
from bayplan.cluster.objects import Object
from bayplan.cluster.tables.columns import Columns
from bayplan.cluster.tables.table import columns_of
from bayplan.model.errors import NotFound

Doc = dict[str, Any]
Said = tuple[str, str]
"""The reason and message of a condition."""
_CONFLICTS = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


def accepted_names(item: Object, others: Iterable[Object]) -> tuple[Doc, Said | None]:
    """The names of a definition that no earlier one of its group has, and what is said of the rest: the last counts."""
    spec: Doc = item.sections["spec"].plain()
    taken: set[str] = set()
    for other in others:
        theirs: Doc = other.sections["spec"].plain()
        if other.name != item.name and theirs["group"] == spec["group"] and _rank(other) < _rank(item):
            names = theirs["names"]
            taken |= {names[field] for field in _CONFLICTS if field != "shortNames"} | {*names.get("shortNames", ())}
    accepted: Doc = {"plural": "", "kind": ""}
    said = None
    for field, reason in _CONFLICTS.items():
        wanted = spec["names"].get(field, ())
        used = [name for name in (wanted if field == "shortNames" else (wanted,)) if name in taken]
        if used:
            said = (reason, ", ".join(f'"{name}" is already in use' for name in used))
        elif wanted:
            accepted[field] = wanted
    if "categories" in spec["names"]:
        accepted["categories"] = spec["names"]["categories"]
    return accepted, said


def _rank(item: Object) -> tuple[bool, int]:
    """Who goes first: a kind that was accepted stays so, else the first to come has its names."""
    accepted = item.sections["status"].plain()["acceptedNames"]["kind"] != ""
    return (not accepted, item.version)


class CustomTypes:
    """The forms of all kinds of one cluster."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._definitions: dict[str, Definition] = {}  # by the name of the CustomResourceDefinition
        self._forms: dict[Kind, CustomForm] = {CUSTOM_RESOURCE_DEFINITION: DEFINITIONS}
        store.listeners.append(self._changed)

    def form(self, kind: Kind) -> Form:
        """How documents of a kind are read. Raises NotFound for a kind that is not there."""
        found = self._forms.get(kind)
        if found is not None:
            return found
        if not is_built_in(kind):
            raise NotFound("the server could not find the requested resource")
        return typed_form(kind)

    def schema(self, kind: Kind) -> Doc | None:
        """The schema of a kind that the table does not have."""
        found = self._forms.get(kind)
        return None if found is None else found.schema

    def columns(self, kind: Kind) -> Columns:
        """The columns of a kind."""
        found = self._forms.get(kind)
        return columns_of(kind) if found is None or is_built_in(kind) else columns_from(found.columns)

    def _changed(self, change: Change) -> None:
        item, old = change.new, change.old
        if item.kind != CUSTOM_RESOURCE_DEFINITION:
            return
        if change.type is ChangeType.DELETED:
            self._forget(item.name)
            for other in self._store.objects(CUSTOM_RESOURCE_DEFINITION):
                if other.name not in self._definitions:
                    self._learn(other)  # names that were taken may be free now
        elif old is None or old.sections["spec"] is not item.sections["spec"]:
            self._learn(item)

    def _learn(self, item: Object) -> None:
        definition = read_definition(item.doc())
        _, conflict = accepted_names(item, self._store.objects(CUSTOM_RESOURCE_DEFINITION))
        if not definition.forms or conflict is not None:
            self._forget(item.name)
            return
        self._drop_forms(self._definitions.get(item.name))
        self._definitions[item.name] = definition
        self._forms |= {form.kind: form for form in definition.forms}
        self._store.registry.define(definition.kinds, definition.scale)

    def _forget(self, name: str) -> None:
        known = self._definitions.pop(name, None)
        if known is not None:
            self._drop_forms(known)
            self._store.registry.undefine(known.kinds[0])

    def _drop_forms(self, known: Definition | None) -> None:
        for kind in known.kinds if known is not None else ():
            del self._forms[kind]
