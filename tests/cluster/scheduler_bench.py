"""A world with nothing but a scheduler in it: the tests play users, kubelets and other controllers."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.embedded.controllers.contract import Outcome, View
from bayplan.cluster.embedded.scheduler import SchedulerController
from bayplan.cluster.embedded.store import Key
from bayplan.cluster.embedded.world import World
from bayplan.cluster.kinds import EVENT, NODE, POD, POD_DISRUPTION_BUDGET, PRIORITY_CLASS
from bayplan.model.clock import SECOND, Instant
from bayplan.model.meta import condition
from bayplan.model.pods import Pod
from bayplan.scheduling.configuration import SchedulerConfiguration

START = Instant(1_767_225_600 * SECOND)
Doc = dict[str, Any]


class Watched(SchedulerController):
    """The scheduler, with its looks counted."""

    looks = 0

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        self.looks += 1
        return super().reconcile(key, view, now)


class Bench:
    """What happens in the world, told by verbs. Nodes have 4 CPUs and 2 GPUs, pods ask for one CPU."""

    def __init__(self, configuration: SchedulerConfiguration | None = None) -> None:
        self.scheduler = Watched(configuration)
        self.world = World([self.scheduler], seed=1, start=START)

    # --- users

    def node(self, name: str, cpu: str = "4", labels: Doc | None = None, **spec: Any) -> None:
        capacity = {"cpu": cpu, "memory": "8Gi", "pods": "10", "nvidia.com/gpu": "2"}
        doc = {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"capacity": capacity}}
        self.world.server.create(NODE, "", doc)
        self.change_node(name, taints=spec.get("taints", []))  # without the taint that new nodes get

    def change_node(self, name: str, **spec: Any) -> None:
        doc = self.world.server.get(NODE, "", name).doc()
        doc["spec"] |= spec
        self.world.server.update(NODE, "", name, doc)

    def pod(self, name: str, cpu: str = "1", gpus: int = 0, labels: Doc | None = None, **spec: Any) -> None:
        resources: Doc = {"requests": {"cpu": cpu}}
        if gpus:
            resources["limits"] = {"nvidia.com/gpu": str(gpus)}
        spec = {"containers": [{"name": "c", "image": "i", "resources": resources}], **spec}
        meta = {"name": name, "labels": labels or {}, "finalizers": spec.pop("finalizers", [])}
        meta["annotations"] = spec.pop("annotations", {})
        if owner := spec.pop("owner", None):
            controller = {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": owner,
                "uid": owner,
                "controller": True,
            }
            meta["ownerReferences"] = [controller]
        self.world.server.create(POD, "default", {"metadata": meta, "spec": spec})

    def label_node(self, name: str, **labels: str) -> None:
        self.world.server.merge(self.world.server.get(NODE, "", name), {"metadata": {"labels": labels}})

    def priorities(self, *, policy: str = "PreemptLowerPriority", **values: int) -> None:
        for name, value in values.items():
            doc = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
            self.world.server.create(PRIORITY_CLASS, "", doc)

    def patch(self, name: str, **change: Any) -> None:
        patch = msgspec.json.encode(change)
        self.world.server.patch(POD, "default", name, "application/merge-patch+json", patch)

    def resize(self, name: str, cpu: str) -> None:
        change = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
        patch, type_ = msgspec.json.encode(change), "application/strategic-merge-patch+json"
        self.world.server.patch(POD, "default", name, type_, patch, subresource="resize")

    def delete(self, name: str) -> None:
        self.world.server.delete(POD, "default", name)

    # --- kubelets and controllers

    def run(self) -> None:
        """Every bound pod runs, those that are to go are gone."""
        for item in [*self.world.store.objects(POD)]:
            if item.meta.deletion_timestamp is not None:
                self.world.store.remove(POD, *item.key)
            elif item.view(Pod).spec.node_name and item.view(Pod).status.phase == "Pending":
                self.status(item.name, phase="Running", startTime=self.world.server.timestamp())

    def finish(self, name: str) -> None:
        self.status(name, phase="Succeeded")

    def status(self, name: str, **change: Any) -> None:
        item = self.world.server.get(POD, "default", name)
        self.world.server.write_status(item, {**item.sections["status"].plain(), **change})

    def budget(self, name: str, allowed: int, **labels: str) -> None:
        doc = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}
        made = self.world.server.create(POD_DISRUPTION_BUDGET, "default", doc).object
        counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
        self.world.server.write_status(made, {"disruptionsAllowed": allowed, **counts})

    # --- time

    def to(self, second: float) -> None:
        self.world.advance(Instant(START + round(second * SECOND)))

    # --- looking

    def where(self) -> dict[str, str]:
        return {each.name: each.view(Pod).spec.node_name for each in self.world.store.objects(POD)}

    def view(self, name: str) -> Pod:
        return self.world.server.get(POD, "default", name).view(Pod)

    def going(self) -> list[str]:
        """The pods that are to go."""
        items = self.world.store.objects(POD)
        return [each.name for each in items if each.meta.deletion_timestamp is not None]

    def events(self) -> list[tuple[str, str]]:
        docs = [each.doc() for each in self.world.store.objects(EVENT)]
        return [(each["reason"], each["message"]) for each in docs]

    def why(self, name: str) -> str:
        scheduled = condition(self.view(name).status.conditions, "PodScheduled")
        assert scheduled is not None
        assert (scheduled.status, scheduled.reason) == ("False", "Unschedulable")
        return scheduled.message
