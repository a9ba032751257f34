"""A namespace's LimitRanges: defaults for containers that say nothing, bounds for containers, pods and claims.

Source of truth: plugin/pkg/admission/limitranger. Templates are not looked at; their pods are. Upstream walks maps in
random order, so of several violations the order here is one of its orders: by name.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.cluster.embedded.admission.plugins.base import Rule, forbidden
from bayplan.cluster.embedded.admission.plugins.pod_totals import limited_total
from bayplan.cluster.kinds import LIMIT_RANGE, PERSISTENT_VOLUME_CLAIM, POD
from bayplan.model.quantity import parse

_ANNOTATION = "kubernetes.io/limit-ranger"


class LimitRanger(Rule):
    """Pods at creation and at resize, claims at every write; nothing that is being deleted."""

    name = "LimitRanger"

    def wants(self, request: Request) -> bool:
        if request.operation == "DELETE" or (request.old and "deletionTimestamp" in request.old["metadata"]):
            return False
        if request.kind is POD:
            return request.subresource == ("" if request.operation == "CREATE" else "resize")
        return request.kind is PERSISTENT_VOLUME_CLAIM and not request.subresource

    def mutate(self, request: Request, state: State) -> None:
        if request.kind is POD:
            for found in state.list(LIMIT_RANGE, request.namespace):
                _set_defaults(request.doc, found)

    def validate(self, request: Request, state: State) -> None:
        violations = _pod_violations if request.kind is POD else _claim_violations
        for found in state.list(LIMIT_RANGE, request.namespace):
            faults = list(dict.fromkeys(violations(request.doc, _limits(found))))
            if faults:
                raise forbidden(request, faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")


def _limits(limit_range: Doc) -> list[Doc]:
    return limit_range.get("spec", {}).get("limits") or []


def _set_defaults(pod: Doc, limit_range: Doc) -> None:
    defaults: dict[str, dict[str, str]] = {"limits": {}, "requests": {}}
    for limit in _limits(limit_range):
        if limit.get("type") == "Container":
            defaults["limits"].update(limit.get("default", {}))
            defaults["requests"].update(limit.get("defaultRequest", {}))
    said: list[str] = []
    for field, word in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(field) or ():
            for side in ("requests", "limits"):
                added = _fill(container, side, defaults[side])
                if added:
                    said.append(f"{', '.join(added)} {side[:-1]} for {word} {container['name']}")
    if said:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(said)}"


def _fill(container: Doc, side: str, defaults: dict[str, str]) -> list[str]:
    resources = container.setdefault("resources", {})
    missing = sorted(defaults.keys() - resources.get(side, {}).keys())
    if missing:
        resources[side] = resources.get(side, {}) | {name: defaults[name] for name in missing}
    return missing


def _pod_violations(pod: Doc, limits: list[Doc]) -> Iterator[str]:
    spec = pod["spec"]
    for limit in limits:
        if limit.get("type") == "Container":
            for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
                resources = container.get("resources", {})
                yield from _violations("Container", limit, resources.get("requests", {}), resources.get("limits", {}))
        elif limit.get("type") == "Pod":
            requests = {name: str(amount) for name, amount in limited_total(pod, "requests").items()}
            ceilings = {name: str(amount) for name, amount in limited_total(pod, "limits").items()}
            yield from _violations("Pod", limit, requests, ceilings)


def _claim_violations(claim: Doc, limits: list[Doc]) -> Iterator[str]:
    requests = claim["spec"].get("resources", {}).get("requests", {})
    for limit in limits:
        if limit.get("type") == "PersistentVolumeClaim":
            for name, bound in sorted(limit.get("min", {}).items()):
                yield from _minimum("PersistentVolumeClaim", name, bound, requests.get(name), None)
            for name, bound in sorted(limit.get("max", {}).items()):
                yield from _maximum("PersistentVolumeClaim", name, bound, ("request", requests.get(name)))


def _violations(kind: str, limit: Doc, requests: dict[str, str], limits: dict[str, str]) -> Iterator[str]:
    for name, bound in sorted(limit.get("min", {}).items()):
        yield from _minimum(kind, name, bound, requests.get(name), limits.get(name))
    for name, bound in sorted(limit.get("max", {}).items()):
        yield from _maximum(kind, name, bound, ("limit", limits.get(name)), ("request", requests.get(name)))
    for name, bound in sorted(limit.get("maxLimitRequestRatio", {}).items()):
        yield from _ratio(kind, name, bound, requests.get(name), limits.get(name))


def _minimum(kind: str, name: str, bound: str, request: str | None, limit: str | None) -> Iterator[str]:
    if request is None:
        yield f"minimum {name} usage per {kind} is {bound}.  No request is specified"
        return
    for word, amount in (("request", request), ("limit", limit)):
        if amount is not None and parse(amount).milli() < parse(bound).milli():
            yield f"minimum {name} usage per {kind} is {bound}, but {word} is {amount}"
            return


def _maximum(kind: str, name: str, bound: str, *sides: tuple[str, str | None]) -> Iterator[str]:
    """The first side must be there; every side that is must not be above the bound."""
    word, amount = sides[0]
    if amount is None:
        yield f"maximum {name} usage per {kind} is {bound}.  No {word} is specified"
        return
    for word, amount in sides:
        if amount is not None and parse(amount).milli() > parse(bound).milli():
            yield f"maximum {name} usage per {kind} is {bound}, but {word} is {amount}"
            return


def _ratio(kind: str, name: str, bound: str, request: str | None, limit: str | None) -> Iterator[str]:
    head = f"{name} max limit to request ratio per {kind} is {bound}, but"
    if request is None or not parse(request):
        yield f"{head} no request is specified or request is 0"
    elif limit is None or not parse(limit):
        yield f"{head} no limit is specified or limit is 0"
    else:
        ratio = parse(limit).milli() / parse(request).milli()
        if ratio * 1000 > parse(bound).milli():
            yield f"{head} provided ratio is {ratio:f}"
