"""What a pod asks for and may use in all, as exact quantities that remember how they were written.

    total = max( containers + sidecars,  largest of: an init container + the sidecars started before it )
            replaced per resource by the pod's own amount where it has one

Limits of a namespace judge that; a quota charges it with overhead, and a container that was resized in place with the
larger of what is asked, allocated and in force.

Source of truth: component-helpers resource/helpers.go; LimitRanger has a copy that knows pod-level cpu and memory only.
`bayplan.model.resources` is the same formula in the scheduler's base units, which have no suffix to print.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.model.quantity import Quantity, parse
from bayplan.model.resources import CPU, MEMORY, is_pod_level

Totals = dict[str, Quantity]
Side = Literal["requests", "limits"]
_NOTHING: Mapping[str, str] = {}


def limited_total(pod: Doc, side: Side) -> Totals:
    """What LimitRanger holds against limits of type Pod."""
    spec = pod["spec"]
    total = _aggregate(spec, lambda container, _: _amounts(container.get("resources"), side))
    own = _amounts(spec.get("resources"), side)
    return total | {name: amount for name, amount in own.items() if name in (CPU, MEMORY)}


def asked_total(pod: Doc, side: Side) -> Totals:
    """What the spec comes to with overhead. Overhead adds to limits only where there is a limit."""
    return _finished(pod["spec"], side, _aggregate(pod["spec"], lambda c, _: _amounts(c.get("resources"), side)))


def charged_total(pod: Doc, side: Side) -> Totals:
    """What a quota charges: as asked, or more while a resize is under way."""
    status = pod.get("status", {})
    statuses = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
    in_force = {one.get("name", ""): one for one in statuses if "resources" in one}
    if not in_force:
        return asked_total(pod, side)
    infeasible = any(
        one.get("type") == "PodResizePending" and one.get("reason") == "Infeasible"
        for one in status.get("conditions", ())
    )

    def of(container: Doc, resizable: bool) -> Totals:
        found = in_force.get(container["name"]) if resizable else None
        if found is None:
            return _amounts(container.get("resources"), side)
        use = {} if infeasible else _amounts(container.get("resources"), side)
        _raise_to(use, _amounts(found["resources"], side))
        if side == "requests":
            _raise_to(use, _amounts({side: found.get("allocatedResources", _NOTHING)}, side))
        return use

    return _finished(pod["spec"], side, _aggregate(pod["spec"], of))


def has_pod_level(spec: Doc) -> bool:
    """Whether the pod as a whole asks for anything or is limited in anything."""
    own = spec.get("resources", {})
    return any(is_pod_level(name) for side in ("requests", "limits") for name in own.get(side, ()))


def _finished(spec: Doc, side: Side, total: Totals) -> Totals:
    own = _amounts(spec.get("resources"), side)
    total.update((name, amount) for name, amount in own.items() if is_pod_level(name))
    overhead = _amounts({side: spec.get("overhead", _NOTHING)}, side)
    if side == "limits":
        overhead = {name: amount for name, amount in overhead.items() if total.get(name)}
    _add(total, overhead)
    return total


def _aggregate(spec: Doc, of: Callable[[Doc, bool], Totals]) -> Totals:
    """`of` says what one container counts for, given whether it can be resized."""
    total: Totals = {}
    for container in spec.get("containers", ()):
        _add(total, of(container, True))
    sidecars: Totals = {}
    peak: Totals = {}
    for container in spec.get("initContainers", ()):
        sidecar = container.get("restartPolicy") == "Always"
        use = of(container, sidecar)
        if sidecar:
            _add(total, use)
            _add(sidecars, use)
            _raise_to(peak, sidecars)
        else:
            _add(use, sidecars)
            _raise_to(peak, use)
    _raise_to(total, peak)
    return total


def _amounts(resources: Mapping[str, Mapping[str, str]] | None, side: Side) -> Totals:
    return {name: parse(text) for name, text in (resources or {}).get(side, _NOTHING).items()}


def _add(total: Totals, more: Totals) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: Totals, other: Totals) -> None:
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount
