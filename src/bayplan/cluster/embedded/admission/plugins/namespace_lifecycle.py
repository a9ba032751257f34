"""Objects live in namespaces that exist and are not on their way out.

Source of truth: apiserver pkg/admission/plugin/namespace/lifecycle.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.cluster.embedded.admission.plugins.base import Rule, forbidden, name_of
from bayplan.cluster.kinds import NAMESPACE
from bayplan.model.errors import Cause, Details, NotFound

_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle(Rule):
    """Runs before any validation: a missing namespace hides every other fault."""

    name = "NamespaceLifecycle"

    def wants(self, request: Request) -> bool:
        if request.kind is NAMESPACE:
            return request.operation == "DELETE"
        return request.operation != "DELETE" and request.namespace != ""

    def mutate(self, request: Request, state: State) -> None:
        if request.operation == "DELETE":
            return
        name = request.namespace
        namespace = state.get(NAMESPACE, "", name)
        if namespace is None:
            raise NotFound(f'namespaces "{name}" not found', details=Details(name, kind="namespaces"))
        if request.operation == "CREATE" and namespace.get("status", {}).get("phase") == "Terminating":
            raise forbidden(
                request,
                f"unable to create new content in namespace {name} because it is being terminated",
                Cause("metadata.namespace", "NamespaceTerminating", f"namespace {name} is being terminated"),
            )

    def validate(self, request: Request, _state: State) -> None:
        if request.operation == "DELETE" and name_of(request) in _IMMORTAL:
            raise forbidden(request, "this namespace may not be deleted")
