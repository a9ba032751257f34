"""What all builders share: a document that grows by sentences and is never changed.

Every method gives a new builder, so tests may share a base and vary it. A builder knows its kind, so it can be created
on any `Cluster`, given to `fake_cluster`, or read as the slim struct that pure cores take. Nothing is checked here:
wrong values are the API server's to refuse, and tests may want exactly that.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar, cast

from bayplan.cluster.kinds import Kind
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Cluster
from bayplan.model import objects
from bayplan.model.meta import KubernetesObject

V = TypeVar("V", bound=KubernetesObject)
Doc = dict[str, Any]

GPU = "nvidia.com/gpu"


def place(document: Doc, path: str) -> Doc:
    """The object at a dotted path within a document, made where it is missing."""
    for key in path.split(".") if path else ():
        document = document.setdefault(key, {})
    return document


def amounts(cpu: float | str | None, memory: str | None, gpu: int | None, others: Mapping[str, str]) -> dict[str, str]:
    """A resource list from the words people use."""
    given = {"cpu": cpu, "memory": memory, GPU: gpu, **others}
    return {name: str(amount) for name, amount in given.items() if amount is not None}


@dataclasses.dataclass(frozen=True)
class Manifest(Generic[V]):
    """An object under construction."""

    kind: Kind
    body: Doc
    """The document so far: never changed, not to be changed."""

    @classmethod
    def named(cls, kind: Kind, name: str, namespace: str = "", **sections: Any) -> Self:
        """An object with nothing but a name, and what is given."""
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        head = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
        return cls(kind, {**head, **copy.deepcopy(sections)})

    # --- what it gives

    def document(self) -> Doc:
        """The object as plain JSON values of the caller's own."""
        return copy.deepcopy(self.body)

    def view(self) -> V:
        """The object as the slim struct of its kind. The API server's defaults are not in it: it was never stored."""
        return cast("V", objects.from_builtins(self.body, objects.KINDS[self.kind.name]))

    async def create(self, cluster: Cluster) -> Object:
        """Create it on a cluster; the answer is what was stored. Raises what `Cluster.create` does."""
        return await cluster.create(self.kind, self.document(), self.namespace)

    @property
    def name(self) -> str:
        """metadata.name."""
        return str(self.body["metadata"].get("name", ""))

    @property
    def namespace(self) -> str:
        """metadata.namespace; empty for cluster-scoped kinds."""
        return str(self.body["metadata"].get("namespace", ""))

    # --- what every object may have

    def having(self, path: str, value: object) -> Self:
        """Any field, by its dotted path: `having("spec.paused", True)`."""
        document = self.document()
        above, _, last = path.rpartition(".")
        place(document, above)[last] = value
        return self._made(document)

    def labelled(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add labels: as keywords, or in a mapping where a key is no Python name."""
        return self._adding({**(labels or {}), **more}, "metadata.labels")

    def annotated(self, annotations: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add annotations."""
        return self._adding({**(annotations or {}), **more}, "metadata.annotations")

    def owned_by(self, owner: Object) -> Self:
        """Make a stored object its controller."""
        reference = {
            "apiVersion": owner.kind.api_version,
            "kind": owner.kind.name,
            "name": owner.name,
            "uid": owner.uid,
            "controller": True,
        }
        return self._appending("metadata", "ownerReferences", reference)

    # --- for the builders of a kind

    def _made(self, document: Doc) -> Self:
        return dataclasses.replace(self, body=document)

    def _adding(self, values: Mapping[str, Any], *paths: str) -> Self:
        document = self.document()
        for path in paths:
            place(document, path).update(values)
        return self._made(document)

    def _appending(self, path: str, name: str, value: object) -> Self:
        document = self.document()
        place(document, path).setdefault(name, []).append(value)
        return self._made(document)


def manifest(kind: Kind, name: str, namespace: str = "", **sections: Any) -> Manifest[KubernetesObject]:
    """An object of a kind that has no builder of its own: `manifest(SERVICE, "web", "shop", spec={...})`."""
    return Manifest[KubernetesObject].named(kind, name, namespace or "default" * kind.namespaced, **sections)
