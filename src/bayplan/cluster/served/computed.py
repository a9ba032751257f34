"""Resources that are answered rather than stored: usage (metrics.k8s.io, for `kubectl top`) and access reviews."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.kubelet.usage import container_usage, usage
from bayplan.cluster.embedded.refusals import not_found
from bayplan.cluster.kinds import NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.cluster.served.routes import Route
from bayplan.model.clock import rfc3339

Doc = dict[str, Any]

NODE_METRICS = Kind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", namespaced=False)
POD_METRICS = Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", namespaced=True)
ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
COMPUTED = (NODE_METRICS, POD_METRICS, ACCESS_REVIEW)

_IDLE_NODE_CPU = 50  # thousandths of a core that a machine uses by itself
_IDLE_NODE_MEMORY = 512 << 20
_WINDOW = "15s"


def _usage(cpu: int, memory: int) -> Doc:
    return {"cpu": f"{cpu}m", "memory": f"{memory >> 10}Ki"}


class Computed:
    """The answers."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._store = cluster.world.store

    async def read(self, route: Route, labels: str) -> Doc:
        """One NodeMetrics or PodMetrics, or a list of them. Raises NotFound, BadRequest."""
        kind, of = (NODE_METRICS, NODE) if route.kind is NODE_METRICS else (POD_METRICS, POD)
        if route.name:
            item = self._store.get(of, route.home, route.name)
            found = [] if item is None else [*self._measured(kind, [item])]
            if not found:
                raise not_found(kind, route.name)
            return {"kind": kind.name, "apiVersion": kind.api_version, **found[0]}
        page = await self._cluster.list(of, route.namespace, labels=labels)
        return {
            "kind": f"{kind.name}List",
            "apiVersion": kind.api_version,
            "metadata": {"resourceVersion": page.revision},
            "items": [*self._measured(kind, page.items)],
        }

    def _measured(self, kind: Kind, items: Iterable[Object]) -> Iterable[Doc]:
        now = self._cluster.clock.now()
        for item in items:
            measured = self._node(item) if kind is NODE_METRICS else self._pod(item)
            if measured is not None:
                meta = {"name": item.name, "labels": item.meta.labels, "creationTimestamp": rfc3339(now)}
                if item.namespace:
                    meta["namespace"] = item.namespace
                yield {"metadata": meta, "timestamp": rfc3339(now), "window": _WINDOW, **measured}

    def _node(self, item: Object) -> Doc:
        now = self._cluster.clock.now()
        used = [usage(pod, now) for pod in self._store.pods_on(item.name)]
        cpu = _IDLE_NODE_CPU + sum(each.cpu for each in used)
        return {"usage": _usage(cpu, _IDLE_NODE_MEMORY + sum(each.memory for each in used))}

    def _pod(self, item: Object) -> Doc | None:
        """A pod that runs nothing has no measurement."""
        used = container_usage(item, self._cluster.clock.now())
        if not used:
            return None
        return {"containers": [{"name": name, "usage": _usage(each.cpu, each.memory)} for name, each in used.items()]}


def reviewed(review: Doc) -> Doc:
    """Whoever has the token may do everything."""
    return {
        "kind": ACCESS_REVIEW.name,
        "apiVersion": ACCESS_REVIEW.api_version,
        "metadata": {},
        "spec": review.get("spec", {}),
        "status": {"allowed": True, "reason": "the bearer of the token administers this cluster"},
    }
