"""A new node starts with the not-ready taint, so that nothing lands on it before its controller has looked at it.

Source of truth: plugin/pkg/admission/nodetaint.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.cluster.embedded.admission.plugins.base import Rule
from bayplan.cluster.kinds import NODE

_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TaintNodesByCondition(Rule):
    """The taint goes when the node reports itself ready."""

    name = "TaintNodesByCondition"

    def wants(self, request: Request) -> bool:
        return request.kind is NODE and request.operation == "CREATE" and not request.subresource

    def mutate(self, request: Request, _state: State) -> None:
        taints = request.doc.setdefault("spec", {}).setdefault("taints", [])
        if not any(all(taint.get(part) == text for part, text in _NOT_READY.items()) for taint in taints):
            taints.append(dict(_NOT_READY))
