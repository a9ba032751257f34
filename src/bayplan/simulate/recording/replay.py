"""A recording replayed in the embedded engine: its pods arrive and go in virtual time, and a policy places them.

Nodes come, change and go as they did. Pods come without a place, run for as long as they ran, and are deleted when they
were; their owners are there, for spreading goes by them, and make nothing. So placements differ from the recorded ones
by what the policy decides and by nothing else; where pods wait longer they also end later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Literal

import msgspec

from bayplan.cluster.embedded.assembly import standard_controllers
from bayplan.cluster.embedded.controllers.disruption import DisruptionController
from bayplan.cluster.embedded.controllers.event_expiry import EventExpiry
from bayplan.cluster.embedded.controllers.node_lifecycle import NodeLifecycle
from bayplan.cluster.embedded.controllers.pod_collector import PodCollector
from bayplan.cluster.embedded.controllers.taint_eviction import TaintEviction
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.kubelet.behaviour import Defaults
from bayplan.cluster.embedded.kubelet.controller import KubeletController
from bayplan.cluster.embedded.scheduler import SchedulerController
from bayplan.cluster.embedded.store import Change, ChangeType
from bayplan.cluster.kinds import NAMESPACE, NODE, POD
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant, VirtualClock
from bayplan.model.errors import ApiError, NotFound
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.scheduling.configuration import SchedulerConfiguration
from bayplan.scheduling.plugins.gpu_policies.fragmentation import TypicalPod, typical
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.policies import profile
from bayplan.scheduling.whatif.needs import can_be_tolerated
from bayplan.simulate.driver import passing
from bayplan.simulate.policy import counting
from bayplan.simulate.recording.comparison import Replayed, Stay
from bayplan.simulate.recording.story import PodLife, Story
from bayplan.simulate.twin.filling import fill
from bayplan.simulate.twin.snapshot import Snapshot

_PROMPT = Defaults(pull=0, start=0, shutdown=0, init=0, jitter=0.0)
"""Pods tell themselves how long they take."""
_AT_WORK = (
    SchedulerController, KubeletController, NodeLifecycle, TaintEviction, PodCollector, DisruptionController,
    EventExpiry,
)  # fmt: skip
"""Nobody makes pods here: those of the recording come, and no others."""


class Step(msgspec.Struct, frozen=True):
    """Something that is done at an instant: a node or a pod comes, changes or goes."""

    at: Instant
    what: Literal["node", "lost", "pod", "leave"]
    item: Object | PodLife


class Outcome(msgspec.Struct, frozen=True):
    """What came of a replay."""

    pods: list[Replayed]
    refusals: Counter[str]
    """Pods that were not taken, by reason."""
    until: Instant
    """How far it came."""


def policy_of(name: str, story: Story, seed: int = 0) -> SchedulerConfiguration:
    """What the scheduler is configured with for a policy; FGD expects the recorded pods. Raises KeyError."""
    infos = [PodInfo(life.last.view(Pod)) for life in story.pods.values()]
    asked = (TypicalPod(each.nonzero.cpu, each.gpus.ask.milli, each.gpus.ask.number) for each in infos)
    found = profile(name, typical(asked), seed)
    return SchedulerConfiguration((counting(found, shares=any(each.gpus.ask.is_for_share for each in infos)),))


def steps(story: Story, *, ends: bool = False) -> list[Step]:
    """All that is done after the beginning, in order; with `ends`, pods that end by themselves are ended then."""
    found = [
        Step(at, "lost" if kind == "DELETED" else "node", item) for at, kind, item in story.nodes if at > story.began
    ]
    for life in story.pods.values():
        found.append(Step(life.arrived, "pod", life))
        left = life.left if ends else life.deleted
        if left is not None:
            found.append(Step(max(left, life.arrived), "leave", life))
    rank = {"node": 0, "lost": 0, "pod": 1, "leave": 2}
    return sorted(found, key=lambda step: (step.at, rank[step.what], _age(step.item)))  # of equals, as they were heard


def _age(item: Object | PodLife) -> str:
    """Pods that came together come oldest first. Nodes have none: one that was made anew within one batch goes first
    and then comes, and of a node whose going is inferred nobody says how old it was."""
    return item.last.meta.creation_timestamp or "" if isinstance(item, PodLife) else ""


def first_nodes(story: Story) -> list[Object]:
    """The nodes that were there at the beginning."""
    there: dict[str, Object] = {}
    for at, kind, item in story.nodes:
        if at <= story.began:
            there[item.name] = item
            if kind == "DELETED":
                del there[item.name]
    return [*there.values()]


class Names:
    """Names for pods: one that was taken before gets a number, since its first bearer may still be there.

    Never a number that makes it the name of another recorded pod.
    """

    def __init__(self, story: Story) -> None:
        self._recorded = {life.last.key for life in story.pods.values()}
        self._number: dict[tuple[str, str], int] = {}

    def fresh(self, life: PodLife) -> str:
        """The name that a pod gets."""
        namespace, name = life.last.key
        number = self._number.get(life.last.key, 0) + 1
        while number > 1 and (namespace, f"{name}-{number}") in self._recorded:
            number += 1
        self._number[life.last.key] = number
        return name if number == 1 else f"{name}-{number}"


class EmbeddedReplay:
    """One replay in the embedded engine."""

    def __init__(
        self, story: Story, scheduler: SchedulerConfiguration | None, *, keep_placed: bool = False, seed: int = 0
    ) -> None:
        self._story = story
        self._keep = keep_placed
        self._schedulers = {"default-scheduler"} if scheduler is None else scheduler.by_name().keys()
        clock = VirtualClock(story.began)
        controllers = [each for each in standard_controllers(scheduler, _PROMPT) if isinstance(each, _AT_WORK)]
        self.cluster = EmbeddedCluster(controllers, clock=clock, seed=seed)
        around = (*story.around.values(), *first_nodes(story))
        fill(self.cluster, Snapshot(story.began, "", around))
        self._names = Names(story)
        self._made: dict[str, tuple[str, str]] = {}
        """The names that pods got, and their new uids, by the recorded uid."""
        self._stays: dict[str, Stay] = {}
        """By the new uid."""
        self._refusals: Counter[str] = Counter()
        self.cluster.world.store.listeners.append(self._note)

    async def run(
        self, *, stopping: Callable[[], bool] = lambda: False, reached: Callable[[Instant], None] = lambda _: None
    ) -> Outcome:
        """Do it all, unless stopped before."""
        await self.cluster.advance(0)  # the nodes are ready
        for step in steps(self._story):
            if stopping():
                break
            await passing(self.cluster, step.at)
            reached(step.at)
            try:
                await self._do(step)
            except ApiError as error:
                self._refusals[f"{type(error).__name__}: {error.message}"] += 1
        else:
            await passing(self.cluster, self._story.ended)
        now = self.cluster.clock.now()
        return Outcome([*self._told(now)], self._refusals, now)

    async def _do(self, step: Step) -> None:
        match step.item:
            case PodLife() as life if step.what == "pod":
                await self._create(life)
            case PodLife() as life:
                await self._delete(life)
            case node if step.what == "node":
                if changed(self.cluster.world.store.get(NODE, "", node.name), node):
                    fill(self.cluster, Snapshot(step.at, "", (node,)))
            case node:
                await self.cluster.delete(NODE, node.name)

    async def _create(self, life: PodLife) -> None:
        body = life.document(keep_place=self._keep and life.there_before)
        body["metadata"]["name"] = self._names.fresh(life)
        if body["spec"].get("schedulerName") not in self._schedulers:
            body["spec"]["schedulerName"] = min(self._schedulers)
        if self.cluster.world.store.get(NAMESPACE, "", life.last.namespace) is None:
            await self.cluster.create(NAMESPACE, {"metadata": {"name": life.last.namespace}})
        made = await self.cluster.create(POD, body, life.last.namespace)
        self._made[life.uid] = made.name, made.uid

    async def _delete(self, life: PodLife) -> None:
        name, uid = self._made.get(life.uid, ("", ""))
        if name:
            with suppress(NotFound):  # it may have been evicted
                await self.cluster.delete(POD, name, life.last.namespace, grace=0, uid=uid)

    def _note(self, change: Change) -> None:
        if change.kind is not POD:
            return
        now, pod = self.cluster.world.now, change.new.view(Pod)
        stay = self._stays.get(change.new.uid, Stay())
        if pod.spec.node_name and stay.bound is None:
            stay = Stay(pod.spec.node_name, now)
        if stay.left is None and (change.type is ChangeType.DELETED or pod.is_terminal):
            stay = msgspec.structs.replace(stay, left=now)
        self._stays[change.new.uid] = stay

    def _told(self, until: Instant) -> Iterator[Replayed]:
        """Every pod that came so far and that a scheduler decides on."""
        for life in self._story.pods.values():
            kept = is_kept(life, keep_placed=self._keep)
            if life.arrived <= until and not kept and life.uid in self._made:
                stay = self._stays.get(self._made[life.uid][1], Stay())
                yield replayed(life, stay)


def is_kept(life: PodLife, *, keep_placed: bool) -> bool:
    """Whether a pod has its place without anybody deciding on it."""
    return life.fixed or (keep_placed and life.there_before and bool(life.node))


def replayed(life: PodLife, stay: Stay) -> Replayed:
    """A pod's recorded life beside another."""
    return Replayed(life.name, life.arrived, Stay(life.node, life.bound, life.left), stay)


def changed(present: Object | None, node: Object) -> bool:
    """Whether a node's new version differs in anything that decisions go by: heartbeats do not."""
    return present is None or _face(present) != _face(node)


def _face(item: Object) -> tuple[object, ...]:
    node = item.view(Node)
    ready = condition(node.status.conditions, "Ready")
    taints = tuple(each for each in node.spec.taints if can_be_tolerated(each))
    return item.meta.labels, taints, node.spec.unschedulable, node.status.allocatable, ready and ready.status
