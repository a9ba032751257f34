"""What admission plugins see of the store: documents, read once a version, and writes that wait for the request."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.store import Store
from bayplan.cluster.kinds import Kind
from bayplan.cluster.objects import Object, Section


class StoreState:
    """The store behind admission.plugin.State. The kinds that plugins look at are few and change seldom."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._documents: dict[tuple[Kind, str, str], tuple[int, Doc]] = {}

    def document(self, item: Object) -> Doc:
        """An object's document, shared: not to be changed."""
        key = (item.kind, item.namespace, item.name)
        known = self._documents.get(key)
        if known is None or known[0] != item.version:
            known = self._documents[key] = (item.version, item.doc())
        return known[1]

    def transaction(self) -> Transaction:
        """A view for one request."""
        return Transaction(self)


class Transaction:
    """One request's view of the state. What plugins write is stored when the request itself is, or not at all."""

    def __init__(self, state: StoreState) -> None:
        self._state = state
        self._pending: list[tuple[Kind, str, str, dict[str, Any]]] = []

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        """One object, or None."""
        item = self._state.store.get(kind, namespace, name)
        return None if item is None else self._state.document(item)

    def list(self, kind: Kind, namespace: str = "") -> list[Doc]:
        """The objects of a kind, ordered by name."""
        return [self._state.document(item) for item in self._state.store.objects(kind, namespace or None)]

    def replace_status(self, kind: Kind, namespace: str, name: str, status: dict[str, Any]) -> None:
        """Write another object's status, once the request succeeds."""
        self._pending.append((kind, namespace, name, status))

    def commit(self) -> None:
        """The request succeeded."""
        store = self._state.store
        for kind, namespace, name, status in self._pending:
            item = store.get(kind, namespace, name)
            assert item is not None, f"{kind.name} {namespace}/{name} went away within a request"
            store.put(kind, item.meta, {**item.sections, "status": Section(msgspec.json.encode(status))})
