"""A pod takes its overhead, node selector and tolerations from its RuntimeClass.

Source of truth: plugin/pkg/admission/runtimeclass, pkg/util/tolerations.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, quoted
from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.cluster.embedded.admission.plugins.base import Rule, forbidden
from bayplan.cluster.kinds import POD, RUNTIME_CLASS
from bayplan.model.quantity import parse

_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_WITHOUT_CLASS = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(Rule):
    """Overhead is the class's to say; the pod may repeat it and nothing else."""

    name = "RuntimeClass"

    def wants(self, request: Request) -> bool:
        return request.kind is POD and request.operation == "CREATE" and not request.subresource

    def mutate(self, request: Request, state: State) -> None:
        found = _class_of(request, state)
        if found is None:
            return
        spec = request.doc["spec"]
        if "overhead" in found:
            fixed = found["overhead"].get("podFixed", {})
            if spec.get("overhead") and not _same(spec["overhead"], fixed):
                raise forbidden(request, _MISMATCH)
            if fixed:
                spec["overhead"] = dict(fixed)
        if "scheduling" in found:
            _schedule(request, spec, found["scheduling"])

    def validate(self, request: Request, state: State) -> None:
        own = request.doc["spec"].get("overhead", {})
        found = _class_of(request, state)
        if found is not None and "overhead" in found:
            if not _same(own, found["overhead"].get("podFixed", {})):
                raise forbidden(request, _MISMATCH)
        elif own:
            raise forbidden(request, _WITHOUT_CLASS)


def _class_of(request: Request, state: State) -> Doc | None:
    name = request.doc["spec"].get("runtimeClassName")
    if name is None:
        return None
    found = state.get(RUNTIME_CLASS, "", name)
    if found is None:
        raise forbidden(request, f"pod rejected: RuntimeClass {quoted(name)} not found")
    return found


def _same(one: Doc, other: Doc) -> bool:
    return one.keys() == other.keys() and all(parse(one[key]) == parse(other[key]) for key in one)


def _schedule(request: Request, spec: Doc, scheduling: Doc) -> None:
    wanted = scheduling.get("nodeSelector", {})
    own = spec.get("nodeSelector", {})
    for key, value in wanted.items():
        if own.get(key, value) != value:
            raise forbidden(
                request,
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}",
            )
    if wanted:
        spec["nodeSelector"] = own | wanted
    merged = _merged(spec.get("tolerations", []) + scheduling.get("tolerations", []))
    if merged:
        spec["tolerations"] = merged


def _merged(tolerations: list[Doc]) -> list[Doc]:
    """Without those that another one covers; of equal ones the first stays."""
    kept: list[Doc] = []
    for i, one in enumerate(tolerations):
        later = (other for other in tolerations[i + 1 :] if other != one)
        if not any(_covers(other, one) for other in kept) and not any(_covers(other, one) for other in later):
            kept.append(dict(one))
    return kept


def _covers(wide: Doc, narrow: Doc) -> bool:
    if wide == narrow:
        return True
    exists = wide.get("operator") == "Exists"
    if wide.get("key") != narrow.get("key") and not (exists and "key" not in wide):
        return False
    if wide.get("effect", narrow.get("effect")) != narrow.get("effect"):
        return False
    if wide.get("effect") == "NoExecute" and "tolerationSeconds" in wide:
        seconds = narrow.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if exists:
        return True
    if wide.get("operator", "Equal") != "Equal":
        return False
    return narrow.get("operator") == "Equal" and narrow.get("value", "") == wide.get("value", "")
