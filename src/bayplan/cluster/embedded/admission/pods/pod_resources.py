"""Resources of a pod as a whole: what its containers add up to, what is filled in from that, what must fit together.

Source of truth: component-helpers 0.36 resource/helpers.go (the sum), kubernetes 1.36 pkg/apis/core/v1/defaults.go and
pkg/apis/core/validation (the rules). Only cpu, memory and huge pages exist at pod level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pods.resources import (
    is_hugepages,
    round_resource_list,
    validate_resource_requirements,
)
from bayplan.model.quantity import Quantity, parse
from bayplan.model.resources import CPU, MEMORY, is_pod_level

Amounts = dict[str, Quantity]


def aggregate(spec: Doc, side: str) -> Amounts:
    """The containers' `requests` or `limits` together."""
    return summed(spec, lambda container, _: amounts_of(container.get("resources"), side))


def summed(spec: Doc, of: Callable[[Doc, bool], Amounts]) -> Amounts:
    """The same where `of` says what one container counts for, given whether it can be resized.

    Main containers and sidecars run side by side; a plain init container runs alone beside the sidecars before it.
    """
    total: Amounts = {}
    for container in spec.get("containers") or ():
        add(total, of(container, True))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers", ()):
        sidecar = container.get("restartPolicy") == "Always"
        own = of(container, sidecar)
        if sidecar:
            add(total, own)
            add(sidecars, own)
            raise_to(starting, sidecars)
        else:
            add(own, sidecars)
            raise_to(starting, own)
    raise_to(total, starting)
    return total


def amounts_of(resources: Mapping[str, Mapping[str, str]] | None, side: str) -> Amounts:
    """One side of resources."""
    return {name: parse(text) for name, text in (resources or {}).get(side, {}).items()}


def add(total: Amounts, more: Amounts) -> None:
    """Add, name by name."""
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def raise_to(total: Amounts, least: Amounts) -> None:
    """Raise what is less, name by name."""
    for name, amount in least.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def default_pod_resources(spec: Doc) -> None:
    """Fill in a Pod's own resources; its containers have their defaults already."""
    resources = spec.get("resources")
    if not resources:
        return
    limits, requests = dict(resources.get("limits", {})), dict(resources.get("requests", {}))
    if limits or requests:
        for name, amount in aggregate(spec, "limits").items():
            if is_hugepages(name) and name not in requests:
                limits.setdefault(name, str(amount))
    if limits:
        asked = {name: str(amount) for name, amount in aggregate(spec, "requests").items() if name in (CPU, MEMORY)}
        requests = {name: text for name, text in limits.items() if is_pod_level(name)} | asked | requests
    for field, amounts in (("limits", limits), ("requests", requests)):
        if amounts:
            round_resource_list(amounts)
            resources[field] = amounts


def validate_pod_resources(spec: Doc, path: str, errors: Errors) -> None:
    """A pod's own resources, and that its containers stay within them. `path` is the spec's."""
    resources = spec.get("resources")
    if resources is None:
        return
    path = f"{path}.resources"
    if (spec.get("os") or {}).get("name") == "windows":
        errors.forbidden(path, "may not be set for a windows pod")
        return
    if "claims" in resources:
        errors.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    claims = {claim["name"] for claim in spec.get("resourceClaims", ()) if claim.get("name")}
    validate_resource_requirements(resources, path, errors, pod_level=True, claim_names=claims)
    _validate_sums(spec, resources, path, errors)
    _validate_container_limits(spec, resources.get("limits", {}), path, errors)


def _validate_sums(spec: Doc, resources: Doc, path: str, errors: Errors) -> None:
    for field in ("requests", "limits"):
        own = resources.get(field, {})
        for name, amount in aggregate(spec, field).items():
            if name not in own or (field == "limits" and not is_hugepages(name)):
                continue
            if amount > parse(own[name]):
                text = f"must be greater than or equal to aggregate container {field} of {amount}"
                errors.invalid(f"{path}.{field}[{name}]", own[name], text)


def _validate_container_limits(spec: Doc, limits: Doc, path: str, errors: Errors) -> None:
    for i, container in enumerate(spec.get("containers") or ()):
        for name, text in container.get("resources", {}).get("limits", {}).items():
            if name in limits and parse(text) > parse(limits[name]):
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                errors.invalid(f"{path}.containers[{i}][{name}].limits", text, detail)
