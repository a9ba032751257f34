"""Every pod may stay five minutes on a node that fails, unless it says otherwise.

Source of truth: plugin/pkg/admission/defaulttolerationseconds.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.cluster.embedded.admission.plugins.base import Rule
from bayplan.cluster.kinds import POD

_SECONDS = 300
_FAILURES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class DefaultTolerationSeconds(Rule):
    """A toleration without key or without effect covers these taints too."""

    name = "DefaultTolerationSeconds"

    def wants(self, request: Request) -> bool:
        return request.kind is POD and request.operation != "DELETE" and not request.subresource

    def mutate(self, request: Request, _state: State) -> None:
        own = request.doc["spec"].setdefault("tolerations", [])
        covered = {one.get("key", "") for one in own if one.get("effect", "") in ("", "NoExecute")}
        if "" in covered:
            return
        own.extend(
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
            for key in _FAILURES
            if key not in covered
        )
