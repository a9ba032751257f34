"""A pod that is given a node also gets the node's zone and region as labels.

Source of truth: plugin/pkg/admission/podtopologylabels. On a binding the labels go to the Binding, whose labels the
binding step copies to the pod.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.cluster.embedded.admission.plugins.base import Rule
from bayplan.cluster.kinds import NODE, POD

_COPIED = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def topology_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Those of a node's labels that its pods get too."""
    return {key: labels[key] for key in _COPIED if key in labels}


class PodTopologyLabels(Rule):
    """A node that does not exist gives no labels and is no fault."""

    name = "PodTopologyLabels"

    def wants(self, request: Request) -> bool:
        return request.kind is POD and request.operation == "CREATE" and request.subresource in ("", "binding")

    def mutate(self, request: Request, state: State) -> None:
        if request.subresource:
            target = request.doc.get("target", {})
            name = target.get("name", "") if target.get("kind") == "Node" else ""
        else:
            name = request.doc["spec"].get("nodeName", "")
        node = state.get(NODE, "", name) if name else None
        theirs = node["metadata"].get("labels", {}) if node else {}
        copied = topology_labels(theirs)
        if copied:
            request.doc["metadata"].setdefault("labels", {}).update(copied)
