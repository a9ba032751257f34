"""A recording as a replay needs it: the life of every pod, the nodes' coming and going, what stood around them.

A pod arrives when it may be scheduled first (its gates gone), runs for as long as it ran, and goes when it was deleted,
unless it had ended by itself. Its owner does nothing: whoever replaced a pod is part of the recording already.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bayplan.cluster.embedded.kubelet.behaviour import PREFIX
from bayplan.cluster.kinds import (
    CONTROLLER_REVISION,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    LIMIT_RANGE,
    NODE,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RESOURCE_QUOTA,
    STATEFUL_SET,
    Kind,
)
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.pods import ContainerState, Pod
from bayplan.scheduling.gpus.asking import DEVICES
from bayplan.simulate.recording.file import Entry
from bayplan.simulate.twin.kinds import AROUND

Doc = dict[str, Any]
_MIRROR = "kubernetes.io/config.mirror"
_SERVED = ("nodeName", "schedulingGates", "ephemeralContainers", "priority", "preemptionPolicy")
"""What the API server or its clients fill in later; it does so again."""
_OWNERS = (REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)
_SPREADING = frozenset(kind.name for kind in _OWNERS)
_MAKERS = (DEPLOYMENT, DAEMON_SET, CONTROLLER_REVISION, JOB, CRON_JOB)
_FURNITURE = frozenset(AROUND) - {RESOURCE_QUOTA, LIMIT_RANGE, *_MAKERS}
"""What is put around the pods of a replay: owners too, as far as spreading goes by them. Quotas and limits are not,
since the pods were admitted already."""


class PodLife(msgspec.Struct, kw_only=True):
    """What became of a pod. Instants are those of the recording; None: not within it."""

    uid: str
    last: Object
    arrived: Instant
    there_before: bool = False
    """Whether the recording found it there."""
    bound: Instant | None = None
    node: str = ""
    started: Instant | None = None
    ended: Instant | None = None
    failed: bool = False
    gone: Instant | None = None

    @property
    def name(self) -> str:
        """`namespace/name`."""
        return f"{self.last.namespace}/{self.last.name}"

    @property
    def fixed(self) -> bool:
        """Whether nobody but its node decides on it: a static pod."""
        return _MIRROR in self.last.meta.annotations

    @property
    def left(self) -> Instant | None:
        """When it let go of what it held."""
        times = [at for at in (self.ended, self.gone) if at is not None]
        return min(times) if times else None

    @property
    def deleted(self) -> Instant | None:
        """When somebody deleted it before its end."""
        return self.gone if self.ended is None else None

    def document(self, *, keep_place: bool = False) -> Doc:
        """The pod as it is created again: without a place, behaving as it did, owned by those who spread their pods."""
        spec = {key: value for key, value in self.last.sections["spec"].plain().items() if key not in _SERVED}
        own = self.last.meta
        said = {key: text for key, text in own.annotations.items() if key != DEVICES and not key.startswith(PREFIX)}
        meta = {
            "name": own.name,
            "namespace": own.namespace,
            "labels": own.labels,
            "annotations": {**said, **self._behaviour()},
            "ownerReferences": [msgspec.to_builtins(each) for each in own.owner_references if each.kind in _SPREADING],
        }
        if self.ended is not None:
            spec["restartPolicy"] = "Never"
        if self.node and (keep_place or self.fixed):
            spec["nodeName"] = self.node
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def _behaviour(self) -> dict[str, str]:
        said: dict[str, str] = {"run-for": "forever"}
        if self.bound is not None and self.started is not None:
            said |= {"pull": "0s", "start": _span(max(0, self.started - self.bound))}
        if self.ended is not None:
            began = max(self.started or self.bound or self.arrived, self.arrived)
            said |= {"run-for": _span(max(SECOND, self.ended - began)), "exit-code": str(int(self.failed))}
        return {PREFIX + word: text for word, text in said.items()}


class Story(msgspec.Struct):
    """All of a recording."""

    began: Instant
    ended: Instant
    pods: dict[str, PodLife]
    nodes: list[tuple[Instant, str, Object]]
    """ADDED, MODIFIED and DELETED nodes, as they came."""
    around: dict[tuple[Kind, str, str], Object]
    """The rest, as it was last."""
    whole: bool = False
    """Whether the file tells all that was there at the beginning."""


def story_of(entries: Iterable[Entry], began: Instant) -> Story:
    """The story that entries tell."""
    story = Story(began, began, {}, [], {})
    for entry in entries:
        story.ended = max(story.ended, entry.at)
        item = entry.object
        if entry.type == "SYNCED":
            story.whole, story.began = True, entry.at
        elif item is None:
            continue
        elif item.kind is POD:
            _take_pod(story, entry, item)
        elif item.kind is NODE:
            story.nodes.append((entry.at, entry.type, item))
        elif item.kind in _FURNITURE and entry.type != "DELETED":
            story.around[(item.kind, *item.key)] = item
    for life in story.pods.values():
        if life.there_before:
            life.arrived = story.began
    return story


def _take_pod(story: Story, entry: Entry, item: Object) -> None:
    life = story.pods.get(item.uid)
    if entry.type == "DELETED":
        if life is not None:
            life.gone = entry.at  # until then it held what it had, however long its deletion took
        return
    pod = item.view(Pod)
    if life is None:
        if pod.spec.scheduling_gates or pod.is_terminal:
            return
        at = _told(pod.metadata.creation_timestamp, entry.at) if entry.late else entry.at
        life = story.pods[item.uid] = PodLife(uid=item.uid, last=item, arrived=at, there_before=not story.whole)
    _advance(life, entry.at, pod)
    life.last = item


def _advance(life: PodLife, at: Instant, pod: Pod) -> None:
    if pod.spec.node_name and life.bound is None:
        life.bound, life.node = at, pod.spec.node_name
    states = [each.state for each in pod.status.container_statuses]
    if life.started is None and any(each.running or each.terminated for each in states):
        life.started = _told(_first_start(states), at)
    if pod.is_terminal and life.ended is None:
        life.ended, life.failed = at, pod.status.phase == "Failed"


def _first_start(states: Iterable[ContainerState]) -> str | None:
    found = [state.running or state.terminated for state in states]
    return min((each.started_at for each in found if each is not None and each.started_at), default=None)


def _told(text: str | None, otherwise: Instant) -> Instant:
    """The time that an object names; objects say whole seconds, so never later than it was heard of."""
    return otherwise if not text else min(otherwise, parse_rfc3339(text))


def _span(micros: int) -> str:
    return f"{max(0, micros) / SECOND:.3f}s"
