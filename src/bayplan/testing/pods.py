"""Pods, and the pods within workloads: the same sentences build both.

Sentences about a container (`image`, `requests`, `probed`, ...) speak of the one named last: the main container at
first, then whichever `container`, `init_container` or `sidecar` added.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from bayplan.cluster.embedded.kubelet.behaviour import PREFIX
from bayplan.cluster.kinds import POD
from bayplan.model.pods import Pod
from bayplan.testing.builder import Doc, Manifest, V, amounts, place

IMAGE = "registry.example/app:1"


def pod_template(name: str) -> Doc:
    """The least that a pod is made of."""
    return {"containers": [{"name": name, "image": IMAGE}]}


@dataclasses.dataclass(frozen=True)
class PodShaped(Manifest[V]):
    """A pod, or what has a pod template."""

    template: ClassVar[str] = ""
    """Where the pod is within the document; the document itself for a pod."""

    last: tuple[str, int] = ("containers", 0)
    """The container named last."""

    # --- the pod

    def pod_labelled(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add labels to the pods."""
        return self._adding({**(labels or {}), **more}, self._in_pod("metadata.labels"))

    def behaves(self, **how: object) -> Self:
        """How virtual kubelets run it, in words of docs/behaviour.md: `behaves(run_for="90s", exit_code=1)`."""
        said = {PREFIX + word.replace("_", "-"): str(value) for word, value in how.items()}
        return self._adding(said, self._in_pod("metadata.annotations"))

    def pod_having(self, path: str, value: object) -> Self:
        """Any field of the pod's spec, by its path below it: `pod_having("terminationGracePeriodSeconds", 5)`."""
        return self.having(self._in_pod(f"spec.{path}"), value)

    def on(self, node: str) -> Self:
        """Bound to a node from the start."""
        return self.pod_having("nodeName", node)

    def selecting(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Only nodes with these labels."""
        return self._adding({**(labels or {}), **more}, self._in_pod("spec.nodeSelector"))

    def tolerates(
        self, key: str = "", value: str | None = None, *, effect: str = "", seconds: int | None = None
    ) -> Self:
        """Put up with a taint: of any value when none is given, of any key when that is missing too."""
        toleration: Doc = {"operator": "Exists"} if value is None else {"operator": "Equal", "value": value}
        toleration |= {"key": key} if key else {}
        toleration |= {"effect": effect} if effect else {}
        toleration |= {} if seconds is None else {"tolerationSeconds": seconds}
        return self._appending(self._in_pod("spec"), "tolerations", toleration)

    def spread(self, over: str, *, skew: int = 1, strictly: bool = True, **labels: str) -> Self:
        """Spread pods with these labels evenly over the values of a node label."""
        constraint = {
            "maxSkew": skew,
            "topologyKey": over,
            "whenUnsatisfiable": "DoNotSchedule" if strictly else "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels},
        }
        return self._appending(self._in_pod("spec"), "topologySpreadConstraints", constraint)

    def apart_from(self, *, within: str = "kubernetes.io/hostname", **labels: str) -> Self:
        """Never with pods of these labels within one value of a node label."""
        term = {"topologyKey": within, "labelSelector": {"matchLabels": labels}}
        rules = "requiredDuringSchedulingIgnoredDuringExecution"
        return self._appending(self._in_pod("spec.affinity.podAntiAffinity"), rules, term)

    def gated(self, gate: str) -> Self:
        """Not to be placed until the gate is taken away."""
        return self._appending(self._in_pod("spec"), "schedulingGates", {"name": gate})

    def prioritized(self, priority_class: str) -> Self:
        """With a priority class."""
        return self.pod_having("priorityClassName", priority_class)

    def restarting(self, policy: str) -> Self:
        """Always, OnFailure or Never."""
        return self.pod_having("restartPolicy", policy)

    # --- its containers

    def container(self, name: str, image: str = IMAGE, **fields: Any) -> Self:
        """One more container."""
        return self._with_container("containers", {"name": name, "image": image, **fields})

    def init_container(self, name: str, image: str = IMAGE, **fields: Any) -> Self:
        """A container that runs before the others."""
        return self._with_container("initContainers", {"name": name, "image": image, **fields})

    def sidecar(self, name: str, image: str = IMAGE, **fields: Any) -> Self:
        """A container that starts before the others and runs beside them."""
        return self.init_container(name, image, restartPolicy="Always", **fields)

    def image(self, image: str) -> Self:
        """What the container runs."""
        return self._in_container({"": {"image": image}})

    def requests(
        self,
        others: Mapping[str, str] | None = None,
        *,
        cpu: float | str | None = None,
        memory: str | None = None,
        gpu: int | None = None,
    ) -> Self:
        """What the container asks for. GPUs and other extended resources are limits as well: Kubernetes wants both."""
        asked = amounts(cpu, memory, gpu, others or {})
        extended = {name: amount for name, amount in asked.items() if "/" in name}
        return self._in_container({"resources.requests": asked, "resources.limits": extended})

    def limits(
        self,
        others: Mapping[str, str] | None = None,
        *,
        cpu: float | str | None = None,
        memory: str | None = None,
    ) -> Self:
        """What the container may use at most."""
        return self._in_container({"resources.limits": amounts(cpu, memory, None, others or {})})

    def probed(self, which: str, **probe: Any) -> Self:
        """A probe: `probed("readiness", httpGet={"port": 8080}, periodSeconds=5)`."""
        return self._in_container({"": {f"{which}Probe": probe}})

    # --- where things are

    def _in_pod(self, path: str) -> str:
        return f"{self.template}.{path}" if self.template else path

    def _in_container(self, added: Mapping[str, Mapping[str, Any]]) -> Self:
        document = self.document()
        group, index = self.last
        for path, values in added.items():
            if values:
                place(place(document, self._in_pod("spec"))[group][index], path).update(values)
        return self._made(document)

    def _with_container(self, group: str, container: Doc) -> Self:
        document = self.document()
        containers = place(document, self._in_pod("spec")).setdefault(group, [])
        containers.append(container)
        return dataclasses.replace(self, body=document, last=(group, len(containers) - 1))


class PodManifest(PodShaped[Pod]):
    """A pod."""

    def phase(self, phase: str, **status: Any) -> Self:
        """For views: what became of it. A real cluster sets the status itself and ignores this."""
        return self._adding({"phase": phase, **status}, "status")


def pod(name: str = "pod", namespace: str = "default") -> PodManifest:
    """A pod with one container of its name."""
    return PodManifest.named(POD, name, namespace, spec=pod_template(name))
