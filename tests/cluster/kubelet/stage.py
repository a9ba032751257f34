"""A world with one node and a virtual kubelet, and short ways to put pods on it and to tell what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bayplan.cluster.embedded.controllers.contract import Controller
from bayplan.cluster.embedded.deletion import DeleteOptions
from bayplan.cluster.embedded.kubelet.behaviour import PREFIX, Defaults
from bayplan.cluster.embedded.kubelet.controller import KubeletController
from bayplan.cluster.embedded.store import Change, ChangeType
from bayplan.cluster.embedded.world import World
from bayplan.cluster.kinds import EVENT, NODE, POD
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant
from bayplan.model.pods import ContainerStatus, Pod, PodStatus

START = Instant(1_767_225_600 * SECOND)
EXACT = Defaults(jitter=0)
"""Pull 2 s, start 1 s, shutdown 1 s, init containers 1 s, whoever the pod is."""
Doc = dict[str, Any]


def container(name: str = "app", **fields: Any) -> Doc:
    """A container."""
    return {"name": name, "image": "registry.test/app:1", "imagePullPolicy": "IfNotPresent", **fields}


def state(status: ContainerStatus) -> str:
    """`running`, `exit 1` or why it waits; with the number of restarts."""
    now = status.state
    if now.running is not None:
        text = "running" if status.ready else "unready"
    elif now.terminated is not None:
        text = f"exit {now.terminated.exit_code} {now.terminated.reason}"
    else:
        assert now.waiting is not None
        text = now.waiting.reason
    return f"{text} x{status.restart_count}" if status.restart_count else text


class Stage:
    """The world, and what was seen in it: a line for each change of a pod, a line for each event."""

    def __init__(self, defaults: Defaults = EXACT, more: Sequence[Controller] = ()) -> None:
        self.kubelet = KubeletController(defaults)
        self.world = World([self.kubelet, *more], seed=1, start=START)
        self.seen: list[tuple[float, str]] = []
        self.events: list[tuple[float, str, str]] = []
        self.world.store.listeners.append(self._see)

    def _see(self, change: Change) -> None:
        at = (self.world.now - START) / SECOND
        if change.new.kind is EVENT:
            doc = change.new.doc()
            self.events.append((at, doc["reason"], doc["message"]))
        elif change.new.kind is POD:
            status = change.new.view(Pod).status
            parts = [state(each) for each in (*status.init_container_statuses, *status.container_statuses)]
            line = "gone" if change.type is ChangeType.DELETED else " | ".join([status.phase, *parts])
            if not self.seen or self.seen[-1][1] != line:
                self.seen.append((at, line))

    def node(self, name: str = "node-1", **meta: Any) -> Object:
        """A node of 4 cores, 8 GiB, 2 GPUs."""
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "2"}
        doc = {"metadata": {"name": name, **meta}, "status": {"capacity": capacity}}
        found = self.world.server.create(NODE, "", doc).object
        self.world.settle()
        return found

    def pod(self, name: str = "p", behaviour: dict[str, str] | None = None, **spec: Any) -> None:
        """A pod, bound to node-1 unless told otherwise."""
        annotations = {f"{PREFIX}{key}": value for key, value in (behaviour or {}).items()}
        meta = spec.pop("metadata", {})
        doc = {
            "metadata": {"name": name, "annotations": annotations, **meta},
            "spec": {"nodeName": "node-1", "containers": [container()], **spec},
        }
        self.world.server.create(POD, "default", doc)

    def to(self, second: float) -> None:
        """Let time pass up to a second after the start."""
        self.world.advance(Instant(START + round(second * SECOND)))
        self.check_settled()

    def check_settled(self) -> None:
        """The kubelet, asked again, has nothing to write."""
        for kind in (POD, NODE):
            for item in self.world.store.objects(kind):
                outcome = self.kubelet.reconcile(item.key, self.world.store, self.world.now)
                assert not outcome.writes, (item, outcome.writes)
                assert outcome.again is None or outcome.again > self.world.now

    def delete(self, name: str = "p", grace: int | None = None) -> None:
        """Ask for a pod's deletion."""
        self.world.server.delete(POD, "default", name, DeleteOptions(grace=grace))

    def item(self, name: str = "p") -> Object:
        """A pod as stored."""
        return self.world.server.get(POD, "default", name)

    def status(self, name: str = "p") -> PodStatus:
        """A pod's status."""
        return self.item(name).view(Pod).status

    def patch_status(self, change: Doc, name: str = "p") -> None:
        """Write into a pod's status as a client does."""
        doc = self.item(name).doc()
        doc["status"] |= change
        self.world.server.update(POD, "default", name, doc, subresource="status")

    def annotate_node(self, value: str | None, name: str = "node-1") -> None:
        """Stop (or start) a node's kubelet."""
        doc = self.world.server.get(NODE, "", name).doc()
        doc["metadata"].setdefault("annotations", {})
        if value is None:
            del doc["metadata"]["annotations"]["bayplan.dev/kubelet"]
        else:
            doc["metadata"]["annotations"]["bayplan.dev/kubelet"] = value
        self.world.server.update(NODE, "", name, doc)
