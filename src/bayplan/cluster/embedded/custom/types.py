"""The custom kinds of a cluster, kept up with its CustomResourceDefinitions.

A definition takes effect as soon as it is stored, unless another has taken its names; its conditions follow when the
controller has looked at it. It ceases to when it is gone, after all its objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bayplan.cluster.embedded.custom.definition import CustomForm, Definition, read_definition
from bayplan.cluster.embedded.custom.rules import DEFINITIONS
from bayplan.cluster.embedded.forms import Form, typed_form
from bayplan.cluster.embedded.store import Change, ChangeType, Store
from bayplan.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, Kind, is_built_in
from bayplan.cluster.objects import Object
from bayplan.model.errors import NotFound

_CONFLICTS = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


def conflict_of(item: Object, others: Iterable[Object]) -> tuple[str, str] | None:
    """Which name of a definition an older one of its group has already: reason and message."""
    spec: dict[str, Any] = item.sections["spec"].plain()
    taken: set[str] = set()
    for other in others:
        theirs = other.sections["spec"].plain()
        if theirs["group"] == spec["group"] and _age(other) < _age(item):
            names = theirs["names"]
            taken |= {names[field] for field in _CONFLICTS} | {*names.get("shortNames", ())}
    for field, reason in _CONFLICTS.items():
        if spec["names"][field] in taken:
            return reason, f'"{spec["names"][field]}" is already in use'
    short = [name for name in spec["names"].get("shortNames", ()) if name in taken]
    return ("ShortNamesConflict", f'"{short[0]}" is already in use') if short else None


def _age(item: Object) -> tuple[str, str]:
    return (item.meta.creation_timestamp or "", item.name)


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

    def custom(self, kind: Kind) -> CustomForm | None:
        """The form of a kind that the table does not have."""
        return self._forms.get(kind)

    def _changed(self, change: Change) -> None:
        item = change.new
        if item.kind != CUSTOM_RESOURCE_DEFINITION:
            return
        if (
            change.old is not None
            and change.old.sections["spec"] is item.sections["spec"]
            and change.type is not ChangeType.DELETED
        ):
            return
        self._forget(item.name)
        if change.type is not ChangeType.DELETED:
            self._learn(item)
        else:  # names that were taken may be free now
            for other in self._store.objects(CUSTOM_RESOURCE_DEFINITION):
                if other.name not in self._definitions:
                    self._learn(other)

    def _learn(self, item: Object) -> None:
        if conflict_of(item, self._store.objects(CUSTOM_RESOURCE_DEFINITION)) is not None:
            return
        definition = read_definition(item.doc())
        if not definition.forms:
            return
        self._definitions[item.name] = definition
        self._forms |= {form.kind: form for form in definition.forms}
        self._store.registry.define(definition.kinds, definition.scale)

    def _forget(self, name: str) -> None:
        known = self._definitions.pop(name, None)
        if known is not None:
            for kind in known.kinds:
                del self._forms[kind]
            self._store.registry.undefine(known.kinds[0])
