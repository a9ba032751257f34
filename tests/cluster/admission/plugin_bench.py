"""A bench for plugins: a state of plain documents, and a run of PLUGINS over one write."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugin import Operation, Request
from bayplan.cluster.embedded.admission.plugins import PLUGINS
from bayplan.cluster.kinds import KINDS, NAMESPACE, Kind


class Documents:
    """A State that holds documents and the statuses that plugins wrote."""

    def __init__(self, docs: Iterable[Doc] = ()) -> None:
        self.docs = [{"kind": "Namespace", "metadata": {"name": "team"}}, *docs]
        self.written: dict[str, Doc] = {}

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        return next((doc for doc in self.list(kind, namespace) if doc["metadata"]["name"] == name), None)

    def list(self, kind: Kind, namespace: str = "") -> list[Doc]:
        found = [doc for doc in self.docs if doc["kind"] == kind.name]
        if namespace:
            found = [doc for doc in found if doc["metadata"].get("namespace", "team") == namespace]
        return sorted(found, key=lambda doc: str(doc["metadata"]["name"]))

    def replace_status(self, kind: Kind, namespace: str, name: str, status: dict[str, Any]) -> None:
        assert self.get(kind, namespace, name) is not None
        self.written[name] = status


def thing(kind: str, name: str, **fields: Any) -> Doc:
    """A document of a kind."""
    return {"kind": kind, "metadata": {"name": name}, **fields}


def container(name: str = "c", **fields: Any) -> Doc:
    """A container with as little as a decoded one has."""
    return {"name": name, "image": "x:1", "resources": {}, **fields}


def pod(*containers: Doc, status: Doc | None = None, **spec: Any) -> Doc:
    """A pod named `p`; of one plain container unless told otherwise."""
    spec = {"containers": list(containers or [container()]), "securityContext": {}, **spec}
    return thing("Pod", "p", spec=spec, status=status or {"phase": "Pending", "qosClass": "BestEffort"})


def submit(
    doc: Doc,
    *state: Doc,
    old: Doc | None = None,
    operation: Operation | None = None,
    subresource: str = "",
    dry_run: bool = False,
    namespace: str = "team",
) -> tuple[Request, Documents]:
    """Run every plugin over the write, mutations first. The documents of the state must come out unchanged."""
    kind = KINDS[doc["kind"]]
    documents = Documents(state)
    before = copy.deepcopy(documents.docs)
    request = Request(
        kind,
        operation or ("CREATE" if old is None else "UPDATE"),
        namespace if kind.namespaced and kind is not NAMESPACE else "",
        copy.deepcopy(doc),
        old,
        subresource,
        dry_run,
    )
    wanted = [plugin for plugin in PLUGINS if plugin.wants(request)]
    for plugin in wanted:
        plugin.mutate(request, documents)
    for plugin in wanted:
        plugin.validate(request, documents)
    assert documents.docs == before
    return request, documents
