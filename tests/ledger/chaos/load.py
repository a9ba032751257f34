"""The load: pods that live and die in a seeded order, one write a version, until it is told to stop.

Names are used again after a deletion. Each write is repeated until the API server takes it, whatever the faults do:
what etcd really held is the oracle's business.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from bayplan.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT, JOB, NAMESPACE, NODE, POD, STATEFUL_SET, Kind
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.objects import Object
from bayplan.model.clock import SystemClock
from bayplan.model.errors import AlreadyExists, BayplanError, Conflict, Forbidden, NotFound, TemporaryError
from tests.ledger.chaos import objects

_AT_ONCE = 24
"""Pods alive at the same time that the load moves itself."""
_HANDS = 4
"""Writers."""
_PAUSE = 0.1
_REPLACED_EVERY = 2.0

Life = AsyncIterator[None]
_OVER = object()


class Load:
    """Writes to a cluster. `pace`: seconds that each writer rests between two writes."""

    def __init__(self, kubeconfig: Path, seed: int, *, pace: float = 0.0) -> None:
        self._cluster = LiveCluster.find(kubeconfig)
        self._random = random.Random(seed)
        self._clock = SystemClock()
        self._pace = pace
        self._owners: dict[str, list[dict[str, Any] | None]] = {}
        self._free: list[tuple[str, str]] = []
        """Namespaces and names whose pods are gone."""
        self._members: list[tuple[str, str]] = []
        """Pods of StatefulSets."""
        self.pods = 0
        self.stopping = asyncio.Event()

    async def prepare(self) -> None:
        """What must be there first: namespaces, nodes, kinds and owners."""
        for kind in objects.CUSTOM:
            await self._create(CUSTOM_RESOURCE_DEFINITION, objects.definition(kind))
        for resource in objects.VENDORS:
            await self._create(NODE, objects.node(_node(resource), resource))
        for namespace in objects.NAMESPACES:
            await self._create(NAMESPACE, {"metadata": {"name": namespace}})
            self._owners[namespace] = [await self._chain(namespace, kinds) for kinds in objects.CHAINS]

    async def _chain(self, namespace: str, kinds: tuple[Kind, ...]) -> dict[str, Any] | None:
        above: dict[str, Any] | None = None
        for depth, kind in enumerate(kinds):
            name = f"{kind.name.lower()}-{depth}"
            made = await self._create(kind, objects.owner(kind, name, namespace, above), namespace)
            above = objects.reference(kind, name, made.uid)
        return above

    async def run_workloads(self, replicas: int) -> None:
        """A Deployment, a StatefulSet and a Job in each namespace, which others than the load move."""
        for namespace, resource in zip(objects.NAMESPACES, objects.VENDORS, strict=False):
            await self._create(DEPLOYMENT, objects.deployment("serve", namespace, resource, replicas), namespace)
            await self._create(STATEFUL_SET, objects.stateful_set("ring", namespace, resource, replicas), namespace)
            self._members += [(namespace, f"ring-{number}") for number in range(replicas)]
            await self._create(JOB, objects.job("fit", namespace, resource, replicas), namespace)

    async def run(self) -> None:
        """Let pods live until `stopping` is set and those that live have had their life."""
        lives: list[Life] = []
        async with asyncio.TaskGroup() as group:
            for _ in range(_HANDS):
                group.create_task(self._write(lives))
            group.create_task(self._replace_members())
        await self._cluster.close()

    async def have(self, pods: int) -> None:
        """Many pods that just wait, made as quickly as it goes."""
        waiting = iter(range(pods))

        async def make() -> None:
            for number in waiting:
                namespace = objects.NAMESPACES[number % len(objects.NAMESPACES)]
                body = objects.pod(f"cold-{number}", namespace, "amd.com/gpu", 1, self._owners[namespace][-1])
                await self._create(POD, body, namespace)

        async with asyncio.TaskGroup() as group:
            for _ in range(4 * _HANDS):
                group.create_task(make())

    async def _replace_members(self) -> None:
        """Now and then a StatefulSet loses a pod, and another of the same name follows."""
        while not self.stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), _REPLACED_EVERY)
            if self._members and not self.stopping.is_set():
                namespace, name = self._random.choice(self._members)
                with suppress(BayplanError):
                    await self._cluster.delete(POD, name, namespace)

    async def _write(self, lives: list[Life]) -> None:
        while lives or not self.stopping.is_set():
            if len(lives) < _AT_ONCE and not self.stopping.is_set():
                lives.append(self._life())
            if not lives:
                await asyncio.sleep(_PAUSE)
                continue
            life = lives.pop(self._random.randrange(len(lives)))
            if await anext(life, _OVER) is not _OVER:
                lives.append(life)
            if self._pace:
                await asyncio.sleep(self._pace)

    async def _life(self) -> Life:
        """One pod, from its creation to its end; a write at each step."""
        chance, now = self._random, self._clock.now
        namespace, name = self._place()
        resource = chance.choice([*objects.VENDORS])
        above = chance.choice(self._owners[namespace])
        made = await self._create(POD, objects.pod(name, namespace, resource, chance.randint(0, 4), above), namespace)
        self.pods += 1
        yield
        at = (name, namespace, made.uid)
        await self._status(at, objects.waiting_for_a_place(now()))
        yield
        await self._again(lambda: self._cluster.bind(name, _node(resource), namespace, uid=made.uid))
        yield
        for status in (objects.pulling(now()), objects.running(now(), ready=False), objects.running(now())):
            await self._status(at, status)
            yield
        if chance.random() < 0.5:
            crash = objects.crashed(now())
            await self._status(at, crash)
            yield
            last = crash["containerStatuses"][0]["state"]["terminated"]
            await self._status(at, objects.running(now(), 1, last))
            yield
        if chance.random() < 0.7:
            await self._status(at, objects.over(now(), 1, chance.choice((0, 0, 1))))
            yield
        if chance.random() < 0.8:
            await self._again(lambda: self._cluster.delete(POD, name, namespace, uid=made.uid))
            self._free.append((namespace, name))

    def _place(self) -> tuple[str, str]:
        """A namespace and a name: one that was another pod's, or a new one."""
        if self._free and self._random.random() < 0.5:
            return self._free.pop(self._random.randrange(len(self._free)))
        return self._random.choice(objects.NAMESPACES), f"pod-{self.pods}-{self._random.randrange(10**6)}"

    # --- writing

    async def _status(self, at: tuple[str, str, str], status: dict[str, Any]) -> None:
        name, namespace, uid = at
        body = {"metadata": {"uid": uid}, "status": status}
        await self._again(lambda: self._cluster.patch(POD, body, name, namespace, subresource="status"))

    async def _create(self, kind: Kind, body: dict[str, Any], namespace: str = "") -> Object:
        async def attempt() -> Object:
            try:
                return await self._cluster.create(kind, body, namespace)
            except AlreadyExists:  # the answer to the first attempt was lost, or the pod before is not gone yet
                known = await self._cluster.get(kind, body["metadata"]["name"], namespace)
                if known.meta.deletion_timestamp is not None:
                    raise Conflict("its predecessor is still there") from None
                return known

        made = await self._again(attempt, patience=None)
        assert isinstance(made, Object)
        return made

    async def _again(self, attempt: Callable[[], Awaitable[object]], patience: int | None = 20) -> object:
        """A write, repeated until it is taken. With `patience`, what it is for may have gone: the load's own doing."""
        tries = 0
        while True:
            try:
                return await attempt()
            except (TemporaryError, Forbidden, NotFound) as error:
                # After its start the API server knows no rules yet; a new kind is served a moment after its definition.
                tries += isinstance(error, Conflict | NotFound)
                if tries == patience:
                    return None
                await asyncio.sleep(_PAUSE)


def _node(resource: str) -> str:
    return "node-" + resource.replace("/", "-").replace(".", "-")
