"""A small cluster to play workload stories on: the controllers, and hands that bind, start and remove pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Bind,
    Concern,
    Controller,
    Delete,
    Outcome,
    SetStatus,
    View,
    itself,
)
from bayplan.cluster.embedded.controllers.daemon_set import DaemonSetController
from bayplan.cluster.embedded.controllers.daemon_set_nodes import target_node
from bayplan.cluster.embedded.controllers.deployment import DeploymentController
from bayplan.cluster.embedded.controllers.ownership import ADOPTIONS
from bayplan.cluster.embedded.controllers.replica_set import ReplicaSetController
from bayplan.cluster.embedded.controllers.stateful_set import StatefulSetController
from bayplan.cluster.embedded.store import Key
from bayplan.cluster.embedded.world import World
from bayplan.cluster.kinds import EVENT, NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, rfc3339
from bayplan.model.pods import Pod

START = Instant(1_767_225_600 * SECOND)


class Hands:
    """Scheduler and kubelet in one: what is to run runs and is ready at once, what is deleted goes at once.

    `starts` holds pods back before they are ready, `ends` before they are gone.
    """

    name = "hands"
    watches: Mapping[Kind, Concern] = {POD: itself}

    def __init__(self) -> None:
        self.starts: Callable[[Object], bool] = lambda _pod: True
        self.ends: Callable[[Object], bool] = lambda _pod: True

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(POD, *key)
        if item is None:
            return NOTHING
        pod = item.view(Pod)
        if item.meta.deletion_timestamp is not None:
            return Outcome([Delete(item, grace=0)] if self.ends(item) else [])
        if not pod.spec.node_name:
            return Outcome([Bind(item, target_node(pod) or "node-0")])
        if pod.status.phase == "Pending" and self.starts(item):
            return Outcome([SetStatus(item, running(now))])
        return NOTHING


def running(now: Instant, *, ready: bool = True) -> dict[str, Any]:
    """The status of a pod that runs."""
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": rfc3339(now)}
    return {"phase": "Running", "conditions": [condition]}


class Stage(World):
    """A world with the workload controllers, three nodes, and hands."""

    def __init__(self, *more: Controller, nodes: int = 3, hands: bool = True) -> None:
        self.hands = Hands()
        workloads: Sequence[Controller] = (
            *ADOPTIONS,
            DeploymentController(),
            ReplicaSetController(),
            StatefulSetController(),
            DaemonSetController(),
            *more,
        )
        super().__init__([*workloads, *([self.hands] if hands else [])], seed=1, start=START)
        for number in range(nodes):
            self.add_node(f"node-{number}")

    def add_node(self, name: str, **spec: Any) -> None:
        """A node, as it is once it has registered and is ready."""
        body = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": spec}
        self.server.create(NODE, "", body)
        self.patch(NODE, name, {"spec": {"taints": spec.get("taints")}}, namespace="")

    def create(self, kind: Kind, name: str, spec: dict[str, Any], **meta: Any) -> Object:
        """Store an object in the namespace `default`, and let the cluster settle."""
        made = self.server.create(kind, "default", {"metadata": {"name": name, **meta}, "spec": spec}).object
        self.settle()
        return made

    def patch(self, kind: Kind, name: str, patch: dict[str, Any], namespace: str = "default") -> None:
        """Merge-patch an object, and let the cluster settle."""
        self.server.patch(kind, namespace, name, "application/merge-patch+json", msgspec.json.encode(patch))
        self.settle()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.advance(Instant(self.now + round(seconds * SECOND)))

    def status(self, kind: Kind, name: str) -> dict[str, Any]:
        """An object's status."""
        found: dict[str, Any] = self.server.get(kind, "default", name).sections["status"].plain()
        return found

    def pods(self, **labels: str) -> list[Object]:
        """The pods in the namespace that have these labels, by name."""
        return [pod for pod in self.store.objects(POD, "default") if labels.items() <= pod.meta.labels.items()]

    def names(self, **labels: str) -> list[str]:
        """Their names."""
        return [pod.name for pod in self.pods(**labels)]

    def set_status(self, pod: Object, status: dict[str, Any]) -> None:
        """What the kubelet finds out about a pod."""
        self.server.write_status(pod, status)
        self.settle()

    def events(self, about: str) -> list[str]:
        """The Events about the objects of a name, each as `Reason: message`, in the order in which they last came."""
        found = sorted(self.store.objects(EVENT, "default"), key=lambda event: event.version)
        return [
            f"{event.sections['reason'].plain()}: {event.sections['message'].plain()}"
            for event in found
            if event.sections["involvedObject"].plain()["name"] == about
        ]


def template(image: str = "web:1", labels: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod template with one container."""
    container = {"name": "main", "image": image}
    return {"metadata": {"labels": {"app": "web", **(labels or {})}}, "spec": {"containers": [container], **spec}}


def workload(replicas: int | None = None, image: str = "web:1", **spec: Any) -> dict[str, Any]:
    """The spec of a workload of `app=web`."""
    size = {} if replicas is None else {"replicas": replicas}
    return {"selector": {"matchLabels": {"app": "web"}}, "template": template(image), **size, **spec}
