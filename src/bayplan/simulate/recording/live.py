"""A recording replayed on a real scheduler, in compressed order: what happened, in the order of the recording, at once.

A real scheduler has its own clock, so time does not pass as it did. Instead, each step waits until the scheduler has
answered for every pod so far: bound it, or said why not. An end is a deletion here. A pod that was refused is tried
again when the scheduler sees fit, which may be some steps late; and whatever goes by time (tolerations of a taint, the
patience of a Job) does not happen. Owners, volumes and claims for devices are left out. A pod that is bound at its
first try was bound when it arrived, another at the recorded time of the step under way.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from bayplan.cluster.kinds import NAMESPACE, NODE, POD, PRIORITY_CLASS
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.reflector import Reflector
from bayplan.cluster.live.reflector_core import Change
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant
from bayplan.model.errors import AlreadyExists, ApiError, NotFound
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.scheduling.whatif.needs import can_be_tolerated
from bayplan.simulate.recording.comparison import Replayed, Stay
from bayplan.simulate.recording.replay import Names, Outcome, Step, changed, first_nodes, is_kept, replayed, steps
from bayplan.simulate.recording.story import PodLife, Story

Doc = dict[str, Any]
_LEFT_OUT = ("serviceAccountName", "serviceAccount", "runtimeClassName", "resourceClaims", "overhead")
_NOT_READY = "node.kubernetes.io/not-ready"


class _Sight:
    """What is known of the cluster's pods and nodes, and whoever waits for news of them."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        """By uid."""
        self.gone: set[str] = set()
        self.nodes: dict[str, Node] = {}
        self._news = asyncio.Condition()

    async def follow(self, cluster: LiveCluster, kind: Any) -> None:
        """Until cancelled."""
        async with Reflector(cluster, kind) as batches:
            async for batch in batches:
                async with self._news:
                    for change in batch.changes:
                        self._take(change)
                    self._news.notify_all()

    def _take(self, change: Change) -> None:
        item = change.object
        if item.kind is NODE:
            self.nodes.pop(item.name, None)
            if change.type != "DELETED":
                self.nodes[item.name] = item.view(Node)
        elif change.type == "DELETED":
            self.gone.add(item.uid)
        else:
            self.pods[item.uid] = item.view(Pod)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once something holds."""
        async with self._news:
            await self._news.wait_for(holds)

    def answered(self, uid: str) -> bool:
        """Whether the scheduler has said something of a pod, or it is no more."""
        pod = self.pods.get(uid)
        if pod is None:
            return uid in self.gone
        said = condition(pod.status.conditions, "PodScheduled")
        return bool(pod.spec.node_name) or said is not None or uid in self.gone


class LiveReplay:
    """One replay on a cluster that is there for it alone."""

    def __init__(self, story: Story, cluster: LiveCluster, *, keep_placed: bool = False) -> None:
        self._story, self._cluster = story, cluster
        self._keep = keep_placed
        self._sight = _Sight()
        self._names = Names(story)
        self._made: dict[str, Object] = {}
        self._open: set[str] = set()
        """New uids of pods that the scheduler has not answered for."""
        self._stays: dict[str, Stay] = {}
        self._faces: dict[str, Object] = {}
        self._refusals: Counter[str] = Counter()

    async def run(
        self, *, stopping: Callable[[], bool] = lambda: False, reached: Callable[[Instant], None] = lambda _: None
    ) -> Outcome:
        """Do it all, unless stopped before. Raises ApiError where namespaces or nodes cannot be made."""
        following = [asyncio.create_task(self._sight.follow(self._cluster, kind)) for kind in (NODE, POD)]
        work = asyncio.create_task(self._steps(stopping, reached))
        try:
            await asyncio.wait([work, *following], return_when=asyncio.FIRST_COMPLETED)
            for each in following:
                if each.done():
                    each.result()  # it ends only by an error
            return await work
        finally:
            for task in (work, *following):
                task.cancel()
            await asyncio.gather(work, *following, return_exceptions=True)

    async def _steps(self, stopping: Callable[[], bool], reached: Callable[[Instant], None]) -> Outcome:
        await self._prepare()
        at = self._story.began
        for step in steps(self._story, ends=True):
            if stopping():
                break
            if step.what != "pod":
                await self._settle(at)
            at = step.at
            reached(at)
            try:
                await self._do(step)
            except ApiError as error:
                self._refusals[f"{type(error).__name__}: {error.message}"] += 1
        else:
            at = self._story.ended
        await self._settle(at)
        lives = (life for life in self._story.pods.values() if life.uid in self._made)
        told = [self._told(life) for life in lives if not is_kept(life, keep_placed=self._keep)]
        return Outcome(told, self._refusals, at)

    def _told(self, life: PodLife) -> Replayed:
        return replayed(life, self._stays.get(self._made[life.uid].uid, Stay()))

    async def _settle(self, at: Instant) -> None:
        """Wait for the scheduler's answers, and note what it has decided."""
        await self._sight.until(lambda: all(map(self._sight.answered, self._open)))
        for recorded, made in self._made.items():
            pod = self._sight.pods.get(made.uid)
            if pod is not None and pod.spec.node_name and made.uid not in self._stays:
                arrived = self._story.pods[recorded].arrived
                self._stays[made.uid] = Stay(pod.spec.node_name, arrived if made.uid in self._open else at)
        self._open.clear()

    async def _prepare(self) -> None:
        spaces = {life.last.namespace for life in self._story.pods.values()}
        for space in sorted(spaces):
            with suppress(AlreadyExists):
                await self._cluster.create(NAMESPACE, {"metadata": {"name": space}})
        for item in self._story.around.values():
            if item.kind is PRIORITY_CLASS:
                body = {**item.doc(), "metadata": {"name": item.name}}
                with suppress(AlreadyExists):
                    await self._cluster.create(PRIORITY_CLASS, body)
        nodes = first_nodes(self._story)
        for node in nodes:
            await self._put_node(node)
        names = {node.name for node in nodes}
        await self._sight.until(lambda: all(_is_up(self._sight.nodes.get(name)) for name in names))

    async def _put_node(self, node: Object) -> None:
        if not changed(self._faces.get(node.name), node):
            return
        if node.name in self._faces:  # labels, taints and sizes change together: made anew
            await self._cluster.delete(NODE, node.name)
        self._faces[node.name] = node
        await self._cluster.create(NODE, _node(node))

    async def _do(self, step: Step) -> None:
        match step.item:
            case PodLife() as life if step.what == "pod":
                body = life.document(keep_place=self._keep and life.there_before)
                body["metadata"] |= {"name": self._names.fresh(life), "annotations": {}, "ownerReferences": []}
                made = await self._cluster.create(POD, _bare(body), life.last.namespace)
                self._made[life.uid] = made
                self._open.add(made.uid)
            case PodLife() as life:
                await self._leave(life, step.at)
            case node if step.what == "node":
                await self._put_node(node)
            case node:
                self._faces.pop(node.name, None)
                await self._cluster.delete(NODE, node.name)

    async def _leave(self, life: PodLife, at: Instant) -> None:
        made = self._made.get(life.uid)
        if made is None:
            return
        with suppress(NotFound):
            await self._cluster.delete(POD, made.name, made.namespace, grace=0, uid=made.uid)
        await self._sight.until(lambda: made.uid in self._sight.gone)
        stay = self._stays.get(made.uid, Stay())
        self._stays[made.uid] = msgspec.structs.replace(stay, left=at)


def _is_up(node: Node | None) -> bool:
    return node is not None and not any(taint.key == _NOT_READY for taint in node.spec.taints)


def _node(item: Object) -> Doc:
    """A node as it is made again, without what tells of its condition."""
    node = item.view(Node)
    meta = {"name": item.name, "labels": item.meta.labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    taints = [msgspec.to_builtins(each) for each in node.spec.taints if can_be_tolerated(each)]
    status = {"capacity": node.status.capacity, "allocatable": node.status.allocatable}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "spec": {"taints": taints, "unschedulable": node.spec.unschedulable},
        "status": status,
    }


def _bare(body: Doc) -> Doc:
    """A pod that needs nothing but a node."""
    spec = {key: value for key, value in body["spec"].items() if key not in _LEFT_OUT}
    spec["schedulerName"] = "default-scheduler"
    spec["volumes"] = [{"name": each["name"], "emptyDir": {}} for each in spec.get("volumes") or ()]
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        (container.get("resources") or {}).pop("claims", None)
    return {**body, "spec": spec}
