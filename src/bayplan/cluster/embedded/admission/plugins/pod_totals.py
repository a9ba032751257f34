"""What a pod asks for and may use in all, as exact quantities that remember how they were written.

    total = max( containers + sidecars,  largest of: an init container + the sidecars started before it )
            replaced per resource by the pod's own amount where it has one

Limits of a namespace judge that; a quota charges it with overhead, and a container that was resized in place with the
larger of what is asked, allocated and in force.

Source of truth: component-helpers resource/helpers.go; LimitRanger has a copy that knows pod-level cpu and memory only.
`bayplan.model.resources` is the same formula in the scheduler's base units, which have no suffix to print.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.pods.pod_resources import add, aggregate, amounts_of, raise_to, summed
from bayplan.model.quantity import Quantity
from bayplan.model.resources import CPU, MEMORY, is_pod_level

Totals = dict[str, Quantity]
Side = Literal["requests", "limits"]
_NOTHING: Mapping[str, str] = {}


def limited_total(pod: Doc, side: Side) -> Totals:
    """What LimitRanger holds against limits of type Pod."""
    spec = pod["spec"]
    total = aggregate(spec, side)
    own = amounts_of(spec.get("resources"), side)
    return total | {name: amount for name, amount in own.items() if name in (CPU, MEMORY)}


def asked_total(pod: Doc, side: Side) -> Totals:
    """What the spec comes to with overhead. Overhead adds to limits only where there is a limit."""
    return _finished(pod["spec"], side, aggregate(pod["spec"], side))


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
            return amounts_of(container.get("resources"), side)
        use = {} if infeasible else amounts_of(container.get("resources"), side)
        raise_to(use, amounts_of(found["resources"], side))
        if side == "requests":
            raise_to(use, amounts_of({side: found.get("allocatedResources", _NOTHING)}, side))
        return use

    return _finished(pod["spec"], side, summed(pod["spec"], of))


def has_pod_level(spec: Doc) -> bool:
    """Whether the pod as a whole asks for anything or is limited in anything."""
    own = spec.get("resources", {})
    return any(is_pod_level(name) for side in ("requests", "limits") for name in own.get(side, ()))


def _finished(spec: Doc, side: Side, total: Totals) -> Totals:
    own = amounts_of(spec.get("resources"), side)
    total.update((name, amount) for name, amount in own.items() if is_pod_level(name))
    overhead = amounts_of({side: spec.get("overhead", _NOTHING)}, side)
    if side == "limits":
        overhead = {name: amount for name, amount in overhead.items() if total.get(name)}
    add(total, overhead)
    return total
