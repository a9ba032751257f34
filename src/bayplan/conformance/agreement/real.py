"""The lab's side: objects are created one by one, and the real scheduler's word on each pod is awaited.

Order is what makes the comparison sound, and the scheduler's informers keep it for one kind of object:
- Pods: whatever happened to pods before a pod was created, the scheduler knows when it comes to that pod.
- Nodes: they are created one by one while the scheduler runs, so it meets them in that order. (Those that it finds at
  its start come in no order: the initial list goes through a hash map.) A pod that only the newest version of one node
  can take tells when all changes of nodes before have arrived.

On how many nodes an image is, the scheduler knows for each node as of that node's own last change. In a cluster the
kubelets' heartbeats keep that fresh; here every node gets one after nodes have changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, asynccontextmanager

import msgspec

from bayplan.cluster.kinds import KINDS, NODE, POD, Kind
from bayplan.cluster.lab.lab import LabOptions
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.objects import Object
from bayplan.cluster.port import WatchEvent
from bayplan.conformance.agreement.documents import Document
from bayplan.conformance.agreement.judging import Answer
from bayplan.conformance.agreement.shapes import Shape
from bayplan.model.errors import TemporaryError
from bayplan.model.pods import Pod
from bayplan.scheduling.pods import PodKey

PROBE = "node-probe"
_PROBE_LABEL = "bayplan.io/probe"
_PATIENCE = 30.0
"""Seconds for an answer: the scheduler tries again after ten at most."""


class SilentSchedulerError(TemporaryError):
    """The real scheduler did not say what it does with a pod."""

    code = "BP-V003"


class Seen(msgspec.Struct, frozen=True):
    """The scheduler's word on a pod, the pod as it is then, and who has gone since the word before."""

    answer: Answer
    pod: Object
    gone: frozenset[PodKey]


def options(shape: Shape) -> LabOptions:
    """A lab with nobody but the scheduler in it: no kubelet starts the pods, no controller taints the nodes."""
    return LabOptions(
        controllers=False,
        kwok=False,
        service_accounts=False,
        scheduler_config={"parallelism": shape.parallelism, "percentageOfNodesToScore": shape.percentage},
        apiserver_flags=("--disable-admission-plugins=TaintNodesByCondition",),
    )


class Real:
    """A cluster with a real scheduler, and a watch on its pods."""

    def __init__(self, cluster: LiveCluster, events: AsyncGenerator[WatchEvent]) -> None:
        self.cluster = cluster
        self._events = events
        self._probes = 0

    @classmethod
    @asynccontextmanager
    async def open(cls, cluster: LiveCluster) -> AsyncGenerator[Real]:
        """Follow the pods for as long as the block lasts."""
        since = (await cluster.list(POD)).revision
        async with aclosing(_pod_events(cluster, since)) as events:
            yield cls(cluster, events)

    async def create(self, document: Document) -> Object:
        """Create an object; one with a status the API server would drop gets it afterwards."""
        kind = _kind_of(document)
        meta = document["metadata"]
        made = await self.cluster.create(kind, document, meta.get("namespace", ""))
        if "status" in document and kind is not NODE:
            body = {"status": document["status"]}
            made = await self.cluster.patch(kind, body, made.name, made.namespace, subresource="status")
        return made

    async def delete(self, item: Object) -> None:
        """Delete an object; pods here have no grace period."""
        await self.cluster.delete(item.kind, item.name, item.namespace)

    async def answer(self, pod: Object) -> Seen:
        """Wait until the scheduler binds a pod or says that it cannot. Raises SilentSchedulerError."""
        gone: set[PodKey] = set()
        try:
            async with asyncio.timeout(_PATIENCE):
                async for event in self._events:
                    assert event.object is not None
                    if event.type == "DELETED":
                        gone.add(event.object.key)
                    elif event.object.uid == pod.uid and event.object.version > pod.version:
                        answer = answer_of(event.object.view(Pod))
                        if answer is not None:
                            return Seen(answer, event.object, frozenset(gone))
        except TimeoutError:
            pass
        raise SilentSchedulerError(f"no word on pod {pod.namespace}/{pod.name} within {_PATIENCE:.0f} s")

    async def settle(self, nodes: Iterable[str]) -> Object:
        """A heartbeat of each node; return once the scheduler has heard them all, with the node that told of it."""
        self._probes += 1
        beat = {"metadata": {"annotations": {"bayplan.io/heartbeat": str(self._probes)}}}
        await asyncio.gather(*(self.cluster.patch(NODE, beat, name) for name in nodes))
        mark = {_PROBE_LABEL: str(self._probes)}
        node = await self.cluster.patch(NODE, {"metadata": {"labels": mark}}, PROBE)
        pod = await self.create(_probe_pod(mark))
        seen = await self.answer(pod)
        while not seen.answer.node:
            seen = await self.answer(seen.pod)
        await self.delete(pod)
        return node


async def _pod_events(cluster: LiveCluster, since: str) -> AsyncGenerator[WatchEvent]:
    """What happens to pods. A server ends each watch after a while; it is then taken up where it ended."""
    while True:
        async for event in cluster.watch(POD, since=since):
            since = event.revision
            yield event


def answer_of(pod: Pod) -> Answer | None:
    """What a pod's own state tells of the scheduler's word on it."""
    if pod.spec.node_name:
        return Answer(node=pod.spec.node_name)
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return Answer(message=condition.message, nominated=pod.status.nominated_node_name)
    return None


def probe_node() -> Document:
    """A node that nobody else goes to."""
    amounts = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": PROBE},
        "spec": {"taints": [{"key": _PROBE_LABEL, "effect": "NoSchedule"}], "unschedulable": True},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _probe_pod(mark: dict[str, str]) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"probe-{mark[_PROBE_LABEL]}", "namespace": "default"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": mark,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "registry.example/probe:1"}],
        },
    }


def _kind_of(document: Document) -> Kind:
    return KINDS[document["kind"]]
