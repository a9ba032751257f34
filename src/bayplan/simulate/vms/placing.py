"""Pods for VMs: made, waited for, brought in line, removed. All of it through the port, all of it on one loop.

Nothing here looks at a thing again and again until it has changed: what is waited for is what the mirror is told.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import TypeVar, cast

import msgspec

from bayplan.cluster.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    SERVICE_ACCOUNT,
    Kind,
)
from bayplan.cluster.objects import Object
from bayplan.cluster.paging import all_of
from bayplan.cluster.port import Cluster, WatchEvent
from bayplan.model import objects
from bayplan.model.errors import AlreadyExists, Forbidden, NotFound
from bayplan.model.meta import condition
from bayplan.model.nodes import Node as NodeView
from bayplan.model.pods import Pod
from bayplan.scheduling.decision import Decision
from bayplan.scheduling.state import ClusterState
from bayplan.service.logging import get_logger
from bayplan.simulate.vms.grounds import Ground
from bayplan.simulate.vms.launcher import (
    VIRTUAL_MACHINE,
    check_nodes,
    definition,
    digest,
    launcher,
    node_document,
    owner_reference,
    virtual_machine,
)
from bayplan.simulate.vms.mirror import Mirror, Sight
from bayplan.simulate.vms.reasons import judge
from bayplan.simulate.vms.vm import VM, Doc, Node, NodeShape, VMError, check_vms

log = get_logger(__name__)
T = TypeVar("T")

_AT_ONCE = 4
"""Requests under way at a time."""
_OVERTAKEN = 15.0
"""Seconds in which a scheduler comes back to a pod that fits by now: kube-scheduler's longest back-off is ten."""
_SERVICE_ACCOUNT = re.compile(r"serviceaccount", re.IGNORECASE)


class Terms(msgspec.Struct, frozen=True):
    """How VMs become pods."""

    namespace: str
    shape: NodeShape
    selector: Mapping[str, str]
    """Labels that a node must have."""
    furnish: bool
    """Whether the cluster is ours to furnish with nodes, namespace and the kind VirtualMachine."""
    within: float
    """Seconds that a decision, a start or a budget is waited for."""


class Placing:
    """VMs on a ground."""

    def __init__(self, ground: Ground, terms: Terms) -> None:
        self.ground = ground
        self.terms = terms
        self.mirror = Mirror(terms.namespace)
        self._owners: dict[str, str] = {}  # uids
        self._made: dict[str, Doc] = {}  # nodes
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._turns: dict[str, asyncio.Lock] = {}

    @property
    def cluster(self) -> Cluster:
        """The way to the cluster."""
        return self.ground.cluster

    async def open(self) -> None:
        """Furnish the cluster if it is ours, and follow it."""
        if self.terms.furnish:
            await self._furnish()
        await self.ground.follow(self.mirror)

    async def reread(self) -> None:
        """Follow the cluster from its present state on. Raises what its API raises."""
        await self.cluster.list(NODE, limit=1)
        await self.ground.follow(self.mirror)

    async def _furnish(self) -> None:
        if self.terms.namespace != "default":
            await self._ensure(NAMESPACE, {"metadata": {"name": self.terms.namespace}})
        await self._ensure(CUSTOM_RESOURCE_DEFINITION, definition())
        if not self.ground.hasty:
            await self.ground.until(lambda: True, 0)
            return
        await self._seen(CUSTOM_RESOURCE_DEFINITION, "", definition()["metadata"]["name"], is_established)

    async def _seen(self, kind: Kind, namespace: str, name: str, holds: Callable[[Object], bool]) -> None:
        """Wait for an object that is followed by nobody."""
        fields = f"metadata.name={name}"
        watch = self.cluster.watch(kind, namespace or None, fields=fields, timeout=self.terms.within)
        async with aclosing(cast("AsyncGenerator[WatchEvent]", watch)) as events:
            async for event in events:
                if event.object is not None and holds(event.object):
                    return

    async def _ensure(self, kind: Kind, body: Doc) -> None:
        with suppress(AlreadyExists):  # by an earlier run
            await self.cluster.create(kind, body)

    async def ensure_nodes(self, nodes: Sequence[Node], *, no_others: bool = False) -> list[str]:
        """Make the nodes that are missing, and wait until they are ready. The answer: those that are still missing.

        With `no_others`, those that were made here before and are not wanted, or not like this, go with their pods.
        """
        check_nodes(nodes, self.terms.selector)
        wanted = {node.name: node_document(node, self.terms.selector) for node in nodes}
        if self.terms.furnish:
            if no_others:
                stale = [name for name, document in self._made.items() if wanted.get(name) != document]
                await self._all(self._remove_node(name) for name in stale)
            missing = {name: body for name, body in wanted.items() if name not in self.mirror.nodes}
            await self._all(self._ensure(NODE, body) for body in missing.values())
            self._made |= missing
            known = self.mirror.nodes
            await self.ground.until(
                lambda: all(name in known and known[name].ready for name in missing), self.terms.within
            )
        return [name for name in wanted if name not in self.mirror.nodes]

    async def _remove_node(self, name: str) -> None:
        pods = [each.name for each in self.mirror.pods.values() if each.node == name]
        for each in pods:
            await self.remove(each)
        with suppress(NotFound):
            await self.cluster.delete(NODE, name)
        await self.ground.until(lambda: name not in self.mirror.nodes, self.terms.within)
        del self._made[name]

    # --- one pod

    async def create(self, vm: VM, *, node_name: str = "", only: str = "", never: str = "") -> str:
        """Create a pod for a VM; its name, once it was seen. The scheduler decides where, unless `node_name` does."""
        vm.check()  # it may have been changed since it was made
        owner = await self._owner(vm) if self.terms.furnish else None
        terms = self.terms
        body = launcher(
            vm, terms.shape, selector=terms.selector, node_name=node_name, only=only, never=never, owner=owner
        )
        try:
            made = await self.cluster.create(POD, body, terms.namespace, strict=True)
        except Forbidden as refused:  # a namespace that is new has no account for its pods yet
            if not _SERVICE_ACCOUNT.search(refused.message):
                raise
            await self._seen(SERVICE_ACCOUNT, terms.namespace, "default", lambda _: True)
            made = await self.cluster.create(POD, body, terms.namespace, strict=True)
        if node_name:
            log.info("forced by nodeName, past the scheduler", vm=vm.id, pod=made.name, node=node_name)
        if self.mirror.version < made.version:  # else whoever asks next would not find it
            await self.ground.until(lambda: self.mirror.version >= made.version, terms.within)
        return made.name

    def turn(self, vm: str) -> asyncio.Lock:
        """Held while a VM's pods are counted and changed: so that it never gets two, nor loses one that it moves to."""
        return self._turns.setdefault(vm, asyncio.Lock())

    async def ensure_pod(self, vm: VM, node_name: str) -> tuple[str, str]:
        """The VM's one pod and its node: the one that it has, unless it is to be forced elsewhere; else a new one.

        It bears to be begun anew: what an earlier attempt made after all is found.
        """
        async with self.turn(vm.id):
            there = self.mirror.place(vm.id)
            if node_name:
                there = next((each for each in self.mirror.of(vm.id) if each.node == node_name), None)
            name = there.name if there is not None else await self.create(vm, node_name=node_name)
            for each in self.mirror.of(vm.id):
                if node_name and each.name != name:  # only now: it was not without a pod meanwhile
                    await self.remove(each.name)
            return name, there.node if there is not None else node_name

    async def _owner(self, vm: VM) -> Doc:
        if vm.id not in self._owners:
            try:
                made = await self.cluster.create(VIRTUAL_MACHINE, virtual_machine(vm), self.terms.namespace)
            except AlreadyExists:
                made = await self.cluster.get(VIRTUAL_MACHINE, vm.id, self.terms.namespace)
            self._owners[vm.id] = made.uid
        return owner_reference(vm.id, self._owners[vm.id])

    async def remove(self, pod: str) -> None:
        """Delete a pod; returns when it is gone from the mirror, too."""
        with suppress(NotFound):
            await self.cluster.delete(POD, pod, self.terms.namespace, grace=0)
        await self.ground.until(lambda: pod not in self.mirror.pods, self.terms.within)

    async def remove_vm(self, vm: str) -> int:
        """Delete all of a VM; how many pods it had."""
        async with self.turn(vm):
            pods = self.mirror.of(vm)
            for each in pods:
                await self.remove(each.name)
            if self._owners.pop(vm, None) is not None:
                with suppress(NotFound):
                    await self.cluster.delete(VIRTUAL_MACHINE, vm, self.terms.namespace)
            return len(pods)

    # --- many

    async def _all(self, work: Iterable[Awaitable[T]]) -> list[T]:
        """All of it: in order where there is nothing to wait for, else some at a time. Not to be used within itself."""
        if not self.ground.hasty:
            return [await each for each in work]

        async def one(each: Awaitable[T]) -> T:
            async with self._gate:
                return await each

        found = await asyncio.gather(*map(one, work), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each  # only now: nothing is under way any more
        return [each for each in found if not isinstance(each, BaseException)]

    async def sync(self, vms: Sequence[VM]) -> dict[str, int]:
        """Give every VM the one pod that it should have, and remove all others. Room is made before it is taken.

        What cannot be is refused before anything is removed.
        """
        await self.check(vms)
        wanted = {vm.id for vm in vms}
        gone = [vm for vm in self.mirror.vms() if vm not in wanted]
        deleted = sum(await self._all(self.remove_vm(vm) for vm in gone))
        removed: dict[str, list[str]] = {vm.id: [] for vm in vms}
        await self._all(self._thin_out(vm, removed[vm.id]) for vm in vms)
        made = await self._all(self._provide(vm, removed[vm.id]) for vm in vms)
        updated = sum(new and bool(removed[vm.id]) for vm, new in zip(vms, made, strict=True))
        deleted += sum(map(len, removed.values())) - updated  # one of those that a VM had is what it was replaced by
        return {"created": sum(made) - updated, "deleted": deleted, "updated": updated}

    async def _thin_out(self, vm: VM, removed: list[str]) -> None:
        """Remove a VM's pods but the one that it keeps; which these were is noted."""
        async with self.turn(vm.id):
            await self._remove_others(vm, removed)

    async def _provide(self, vm: VM, removed: list[str]) -> bool:
        """Give a VM its one pod; whether it is a new one. Others may have had their turn since it was thinned out."""
        async with self.turn(vm.id):
            await self._remove_others(vm, removed)
            kept = self._rightful(vm)
            vm.pod_name = kept or await self.create(vm)
            return not kept

    async def _remove_others(self, vm: VM, removed: list[str]) -> None:
        kept = self._rightful(vm)
        for each in self.mirror.of(vm.id):
            if each.name != kept and each.name not in removed:
                removed.append(each.name)
                await self.remove(each.name)

    async def check(self, vms: Sequence[VM]) -> None:
        """Whether these VMs can be here, all of them. Raises VMError."""
        check_vms(vms)
        for name in dict.fromkeys(vm.priority_class_name for vm in vms):
            if name:
                await self._check_priority(name, next(vm for vm in vms if vm.priority_class_name == name))

    async def _check_priority(self, name: str, vm: VM) -> None:
        with suppress(Forbidden):  # who may not read them is told when a pod is made
            try:
                await self.cluster.get(PRIORITY_CLASS, name)
            except NotFound as missing:
                raise VMError(f'{vm.id}: priority_class_name: there is no PriorityClass "{name}"') from missing

    def _rightful(self, vm: VM) -> str:
        """The pod that a VM keeps; empty where it has none of its present size and constraints."""
        place = self.mirror.place(vm.id)
        right = digest(vm, self.terms.shape, self.terms.selector)
        return place.name if place is not None and place.digest == right else ""

    async def decided(self, vms: Iterable[str]) -> None:
        """Wait until the scheduler has spoken about each of these VMs."""
        ids = list(vms)

        def waiting() -> list[Sight]:
            places = (self.mirror.place(each) for each in ids)
            return [each for each in places if each is not None and not each.decided]

        await self.ground.until(lambda: not waiting(), self.terms.within)
        if self.ground.hasty:
            await self._second_look(ids)

    async def running(self, vms: Iterable[str]) -> bool:
        """Wait until each of these VMs runs; whether they all do."""
        ids = list(vms)
        pods = self.mirror

        def runs(vm: str) -> bool:
            place = pods.place(vm)
            return place is not None and place.runs

        return await self.ground.until(lambda: all(map(runs, ids)), self.terms.within)

    async def _second_look(self, vms: Sequence[str]) -> None:
        """Refusals may have been overtaken: by a node that came, or a pod that went. Those that would fit now will."""
        places = [each for vm in vms if (each := self.mirror.place(vm)) is not None and not each.node]
        if not places:
            return
        state, pods = await self.state()
        known: dict[str, bool] = {}
        for each in places:
            if each.digest not in known and each.name in pods:
                known[each.digest] = bool(judge(state, pods[each.name]).node)
        hopeful = [each.name for each in places if known.get(each.digest)]
        now = self.mirror.pods
        if hopeful and await self.ground.until(
            lambda: any(name not in now or now[name].node for name in hopeful), min(_OVERTAKEN, self.terms.within)
        ):
            await self._second_look(vms)

    # --- reasons

    async def state(self) -> tuple[ClusterState, dict[str, Pod]]:
        """The cluster for decisions of our own, and the pods of our namespace that wait, which are no part of it.

        Nodes stand by creation and name, as a scheduler will have heard of them.
        """
        nodes, pods, namespaces = [await self._list(kind) for kind in (NODE, POD, NAMESPACE)]
        state = ClusterState(objects.from_builtins(each.doc(), objects.KINDS["Namespace"]) for each in namespaces)
        for node in sorted(nodes, key=lambda each: (each.meta.creation_timestamp or "", each.name)):
            state.put(node.view(NodeView))
        waiting = {}
        for item in pods:
            pod = item.view(Pod)
            if pod.spec.node_name and not pod.is_terminal:
                state.put(pod)
            elif item.namespace == self.terms.namespace:
                waiting[item.name] = pod
        return state, waiting

    async def _list(self, kind: Kind) -> list[Object]:
        return [each async for each in all_of(self.cluster, kind)]

    async def judged(self, pod: str) -> tuple[Decision, str]:
        """How we would decide on one of our pods as the cluster is without it, and what its scheduler said of it."""
        state, _ = await self.state()
        view = (await self.cluster.get(POD, pod, self.terms.namespace)).view(Pod)
        key = (self.terms.namespace, pod)
        if state.place_of(key) is not None:
            state.drop_pod(key)
        scheduled = condition(view.status.conditions, "PodScheduled")
        return judge(state, view), scheduled.message if scheduled is not None else ""


def is_established(item: Object) -> bool:
    """Whether the kind of a definition can be used."""
    status: Doc = item.sections["status"].plain() if "status" in item.sections else {}
    return any(each["type"] == "Established" and each["status"] == "True" for each in status.get("conditions") or ())
