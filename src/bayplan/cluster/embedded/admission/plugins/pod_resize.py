"""A pod is resized in place only on a node that can do it and has the room.

Source of truth: plugin/pkg/admission/podresize. Linux nodes can do it, and a node that does not say what it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.cluster.embedded.admission.fields import Doc, quoted
from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.cluster.embedded.admission.plugins.base import Rule, forbidden
from bayplan.cluster.embedded.admission.plugins.pod_totals import Totals, asked_total
from bayplan.cluster.kinds import NODE, POD
from bayplan.model.errors import Cause
from bayplan.model.quantity import Quantity, parse


class PodResizeValidator(Rule):
    """Looks at bound pods whose spec changes."""

    name = "PodResizeValidator"

    def wants(self, request: Request) -> bool:
        return request.kind is POD and request.operation == "UPDATE" and request.subresource == "resize"

    def validate(self, request: Request, state: State) -> None:
        name = request.doc["spec"].get("nodeName", "")
        if not name or request.old is None or request.old["spec"] == request.doc["spec"]:
            return
        node = state.get(NODE, "", name)
        if node is None:
            raise forbidden(request, f"node {quoted(name)} not found")
        system = node["metadata"].get("labels", {}).get("kubernetes.io/os", "linux")
        if system != "linux":
            why = f"pod resize is only supported on linux nodes, node {quoted(name)} is {quoted(system)}"
            raise forbidden(request, why, Cause(reason="UnsupportedPlatform"))
        short = list(_shortages(asked_total(request.doc, "requests"), node.get("status", {}).get("allocatable", {})))
        if short:
            why = f"node didn't have enough allocatable resources: {'; '.join(short)}"
            raise forbidden(request, why, Cause(reason="NodeCapacity"))


def _shortages(asked: Totals, allocatable: Doc) -> Iterator[str]:
    for resource, unit in (("cpu", Quantity.milli), ("memory", Quantity.value)):
        have = parse(allocatable.get(resource, "0"))
        want = asked.get(resource, Quantity())
        if want > have:
            yield f"{resource}, requested: {unit(want)}, allocatable: {unit(have)}"
