"""Random clusters and pods that touch every rule of the default plugins, to compare two ways to one decision."""

from __future__ import annotations

import random
from typing import Any, TypeVar

import msgspec

from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.policies import Namespace, Service
from bayplan.scheduling.pods import PodInfo

KindT = TypeVar("KindT")
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APPS = ("web", "api", "db", "batch")
SPACES = ("default", "team")
IMAGES = {"registry/a:1": 90, "registry/b:1": 700, "registry/c": 1500}
TAINTS = (
    {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
    {"key": "spot", "effect": "PreferNoSchedule"},
    {"key": "old", "value": "yes", "effect": "PreferNoSchedule"},
    {"key": "sick", "effect": "NoExecute"},
)


class World:
    """A source of objects."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._pods = 0
        self.plain = self.random.random() < 0.3
        """Whether pods bring no constraints between pods, so that totals are all there is."""

    def maybe(self, share: float) -> bool:
        """True in that share of cases."""
        return self.random.random() < share

    def node(self, number: int) -> Node:
        """A node; now and then one without a zone, memory or a hostname."""
        name = f"node-{number:03}"
        labels = {"disk": self.random.choice(("ssd", "hdd")), HOST: name, ZONE: self.random.choice("abc")}
        for key, share in ((ZONE, 0.06), (HOST, 0.04), ("disk", 0.3)):
            if self.maybe(share):
                del labels[key]
        cpu = self.random.choice((2, 4, 8))
        offers: dict[str, str] = {
            "cpu": str(cpu),
            "memory": f"{cpu * self.random.choice((2, 4))}Gi",
            "pods": str(self.random.choice((4, 8, 30))),
        }
        if self.maybe(0.3):
            offers["example.com/gpu"] = str(self.random.choice((1, 4)))
        if self.maybe(0.03):
            del offers[self.random.choice(("cpu", "memory"))]
        images = [
            {"names": [image if ":" in image else f"{image}:latest"], "sizeBytes": size << 20}
            for image, size in IMAGES.items()
            if self.maybe(0.4)
        ]
        return _as(
            Node,
            {
                "metadata": {"name": name, "labels": labels},
                "spec": {
                    "taints": [taint for taint in TAINTS if self.maybe(0.08)],
                    "unschedulable": self.maybe(0.04),
                },
                "status": {"allocatable": offers, "images": images},
            },
        )

    def pod(self) -> PodInfo:
        """A pod; many of them alike, some like no other."""
        self._pods += 1
        app = self.random.choice(APPS)
        labels = {"app": app} | ({"tier": self.random.choice("xy")} if self.maybe(0.5) else {})
        containers = [self._container() for _ in range(2 if self.maybe(0.1) else 1)]
        spec: dict[str, Any] = {"containers": containers, "priority": self.random.choice((0, 0, 0, 10))}
        self._for_nodes(spec)
        if not self.plain:
            self._for_pods(spec)
        meta: dict[str, Any] = {"name": f"pod-{self._pods}", "namespace": self.random.choice(SPACES), "labels": labels}
        if self.maybe(0.04):
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return PodInfo(_as(Pod, {"metadata": meta, "spec": spec}))

    def _container(self) -> dict[str, Any]:
        requests = {
            name: amount
            for name, amount, share in (
                ("cpu", self.random.choice(("100m", "250m", "1")), 0.85),
                ("memory", self.random.choice(("128Mi", "1Gi", "2Gi")), 0.85),
                ("example.com/gpu", "1", 0.08),
                ("ephemeral-storage", "1Gi", 0.01),
            )
            if self.maybe(share)
        }
        container: dict[str, Any] = {"name": "main", "resources": {"requests": requests}}
        container["image"] = self.random.choice(list(IMAGES)) if self.maybe(0.3) else "none"
        if self.maybe(0.05):
            container["ports"] = [{"containerPort": 80, "hostPort": self.random.choice((80, 81)), "protocol": "TCP"}]
        return container

    def _for_nodes(self, spec: dict[str, Any]) -> None:
        if self.maybe(0.3):
            spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}] + (
                [{"key": "spot", "operator": "Exists"}] if self.maybe(0.5) else []
            )
        if self.maybe(0.15):
            spec["nodeSelector"] = {"disk": "ssd"}
        expression = {"key": "disk", "operator": self.random.choice(("In", "NotIn")), "values": ["hdd"]}
        if self.maybe(0.2):
            wish = {"weight": self.random.choice((1, 40)), "preference": {"matchExpressions": [expression]}}
            _affinity(spec, "nodeAffinity")[PREFERRED] = [wish]
        if self.maybe(0.08):
            _affinity(spec, "nodeAffinity")[REQUIRED] = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}

    def _for_pods(self, spec: dict[str, Any]) -> None:
        for side in ("podAffinity", "podAntiAffinity"):
            if self.maybe(0.12):
                _affinity(spec, side)[REQUIRED] = [self._term()]
            if self.maybe(0.12):
                _affinity(spec, side)[PREFERRED] = [
                    {"weight": self.random.choice((1, 30, 100)), "podAffinityTerm": self._term()}
                    for _ in range(self.random.choice((1, 2)))
                ]
        if self.maybe(0.25):
            spec["topologySpreadConstraints"] = [self._constraint() for _ in range(self.random.choice((1, 2)))]

    def _term(self) -> dict[str, Any]:
        term: dict[str, Any] = {"topologyKey": self.random.choice((ZONE, HOST)), "labelSelector": self._selector()}
        if self.maybe(0.2):
            term["namespaceSelector"] = self.random.choice(({}, {"matchLabels": {"kind": "team"}}))
        return term

    def _constraint(self) -> dict[str, Any]:
        constraint: dict[str, Any] = {
            "topologyKey": self.random.choice((ZONE, HOST)),
            "maxSkew": self.random.choice((1, 2, 5)),
            "whenUnsatisfiable": self.random.choice(("DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway")),
            "labelSelector": self._selector(),
        }
        if self.maybe(0.2):
            constraint["nodeTaintsPolicy"] = "Honor"
        if self.maybe(0.2):
            constraint["nodeAffinityPolicy"] = "Ignore"
        if self.maybe(0.1):
            constraint["matchLabelKeys"] = ["tier"]
        if self.maybe(0.1) and constraint["whenUnsatisfiable"] == "DoNotSchedule":
            constraint["minDomains"] = 3
        return constraint

    def _selector(self) -> dict[str, Any]:
        return {"matchLabels": {"app": self.random.choice(APPS)}} if self.maybe(0.9) else {}

    def surroundings(self) -> list[Namespace | Service]:
        """Namespaces, and Services by which pods are spread that do not say."""
        spaces: list[Namespace | Service] = [
            _as(Namespace, {"metadata": {"name": name, "labels": {"kind": name}}}) for name in SPACES
        ]
        if self.maybe(0.4):
            spaces.append(self.service())
        return spaces

    def service(self) -> Service:
        """A Service that selects one of the apps."""
        app = self.random.choice(APPS)
        return _as(Service, {"metadata": {"name": app, "namespace": "default"}, "spec": {"selector": {"app": app}}})


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _affinity(spec: dict[str, Any], side: str) -> dict[str, Any]:
    found: dict[str, Any] = spec.setdefault("affinity", {}).setdefault(side, {})
    return found


def _as(kind: type[KindT], plain: dict[str, Any]) -> KindT:
    return msgspec.json.decode(msgspec.json.encode(plain), type=kind)
