"""Nodes, as their kubelets register them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from bayplan.cluster.kinds import NODE
from bayplan.model.nodes import Node
from bayplan.testing.builder import Manifest, amounts

_PODS = "110"
"""The kubelet's own default."""


class NodeManifest(Manifest[Node]):
    """A node."""

    def offers(
        self,
        others: Mapping[str, str] | None = None,
        *,
        cpu: float | str | None = None,
        memory: str | None = None,
        gpu: int | None = None,
    ) -> Self:
        """What it has, all of it for pods."""
        return self._adding(amounts(cpu, memory, gpu, others or {}), "status.capacity", "status.allocatable")

    def tainted(self, key: str, value: str = "", *, effect: str = "NoSchedule") -> Self:
        """Repel pods that do not tolerate it."""
        taint = {"key": key, "effect": effect, **({"value": value} if value else {})}
        return self._appending("spec", "taints", taint)

    def cordoned(self) -> Self:
        """Take no new pods."""
        return self.having("spec.unschedulable", True)

    def condition(self, type_: str, status: str = "True") -> Self:
        """For views: a condition. On a cluster the node's kubelet says how it is."""
        return self._appending("status", "conditions", {"type": type_, "status": status})


def node(name: str = "node") -> NodeManifest:
    """A Linux node with 4 CPUs, 16Gi and room for 110 pods, until `offers` says otherwise."""
    labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    return NodeManifest.named(NODE, name).labelled(labels).offers({"pods": _PODS}, cpu=4, memory="16Gi")
