"""Admission plugins: rules that look at other objects. They change a document before validation or refuse it after.

Order and meaning are kube-apiserver's: every `mutate` runs before validation, every `validate` after it. A refusal is
an ApiError (Forbidden, NotFound, ...), raised.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.kinds import Kind

Operation = Literal["CREATE", "UPDATE", "DELETE"]


class Request(msgspec.Struct):
    """One write on its way to the store. `doc` may be changed in place by `mutate`."""

    kind: Kind
    operation: Operation
    namespace: str
    doc: Doc
    old: Doc | None = None
    subresource: str = ""
    dry_run: bool = False
    warnings: list[str] = msgspec.field(default_factory=list)


class State(Protocol):
    """What a plugin may see of the cluster."""

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        """One object, or None. Cluster-scoped kinds have the namespace ''. Not to be changed."""
        ...

    def list(self, kind: Kind, namespace: str = "") -> list[Doc]:
        """The objects of a kind, in one namespace if given, ordered by name. Not to be changed."""
        ...

    def replace_status(self, kind: Kind, namespace: str, name: str, status: dict[str, Any]) -> None:
        """Write another object's status (a quota's `used`) together with the request."""
        ...


class Plugin(Protocol):
    """One rule set. `wants` keeps plugins that have nothing to say off the hot path."""

    name: str

    def wants(self, request: Request) -> bool:
        """Whether the plugin has anything to say on such a request."""
        ...

    def mutate(self, request: Request, state: State) -> None:
        """Change the document, or refuse it outright."""
        ...

    def validate(self, request: Request, state: State) -> None:
        """Refuse the document, or let it pass unchanged."""
        ...
