"""A pod's priority is its class's: named, or the cluster's default, or none.

Source of truth: plugin/pkg/admission/priority.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.cluster.embedded.admission.plugins.base import Rule, forbidden
from bayplan.cluster.kinds import POD, PRIORITY_CLASS

_NO_CLASS: Doc = {"value": 0, "preemptionPolicy": "PreemptLowerPriority"}


class Priority(Rule):
    """Resolves the class of a new pod; keeps the cluster's default class single."""

    name = "Priority"

    def wants(self, request: Request) -> bool:
        return request.kind in (POD, PRIORITY_CLASS) and request.operation != "DELETE" and not request.subresource

    def mutate(self, request: Request, state: State) -> None:
        if request.kind is not POD:
            return
        spec = request.doc["spec"]
        if request.old is not None:
            for field in ("priority", "preemptionPolicy"):
                if field not in spec and field in request.old["spec"]:
                    spec[field] = request.old["spec"][field]
            return
        found = _class_of(request, spec, state)
        if found is not _NO_CLASS:
            spec["priorityClassName"] = found["metadata"]["name"]
        own, policy = found.get("value", 0), found.get("preemptionPolicy")
        if spec.setdefault("priority", own) != own:
            raise _computed(request, f"integer value of priority ({spec['priority']})", own)
        if policy is not None and spec.setdefault("preemptionPolicy", policy) != policy:
            raise _computed(request, f"string value of PreemptionPolicy ({spec['preemptionPolicy']})", policy)

    def validate(self, request: Request, state: State) -> None:
        if request.kind is not PRIORITY_CLASS or not request.doc.get("globalDefault"):
            return
        other = _default_class(state)
        if other is None:
            return
        name = other["metadata"]["name"]
        if request.operation == "CREATE" or name != request.doc["metadata"]["name"]:
            raise forbidden(request, f"PriorityClass {name} is already marked as default. Only one default can exist")


def _class_of(request: Request, spec: Doc, state: State) -> Doc:
    name = spec.get("priorityClassName", "")
    if not name:
        return _default_class(state) or _NO_CLASS
    found = state.get(PRIORITY_CLASS, "", name)
    if found is None:
        raise forbidden(request, f"no PriorityClass with name {name} was found")
    return found


def _default_class(state: State) -> Doc | None:
    """The class for pods that name none; the lowest, should a race have left several."""
    marked = (found for found in state.list(PRIORITY_CLASS) if found.get("globalDefault"))
    return min(marked, key=lambda found: found.get("value", 0), default=None)


def _computed(request: Request, given: str, computed: object) -> Exception:
    return forbidden(
        request,
        f"the {given} must not be provided in pod spec; "
        f"priority admission controller computed {computed} from the given PriorityClass name",
    )
