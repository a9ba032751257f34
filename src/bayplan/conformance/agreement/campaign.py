"""The arrivals of a shape put to both sides: create a pod, decide ourselves, hear the real word, compare, adopt it.

Pods arrive one at a time, since each decision rests on the one before. In between pods are deleted so that the cluster
neither fills up nor empties, and now and then nodes change, go and come back.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.objects import Object
from bayplan.conformance.agreement.documents import Document
from bayplan.conformance.agreement.judging import Answer, explain, judge
from bayplan.conformance.agreement.mirror import Mirror
from bayplan.conformance.agreement.real import Real, Seen, SilentSchedulerError, options, probe_node
from bayplan.conformance.agreement.report import Report, Tally
from bayplan.conformance.agreement.shapes import Shape
from bayplan.model.clock import SECOND, Instant, monotonic, rfc3339
from bayplan.model.meta import KubernetesObject
from bayplan.model.pods import Pod
from bayplan.scheduling.decision import Decision
from bayplan.scheduling.pods import PodKey

Tell = Callable[[str], None]

_STEPS_BETWEEN_CHANGES = 60
_FIRST_START = Instant(1_700_000_000 * SECOND)


async def run_shape(shape: Shape, decisions: int, seed: int, report: Report, tell: Tell) -> None:
    """Put so many decisions of a shape to a scheduler of its own; the report grows as they are made."""
    tally = Tally(shape=shape.name, seed=seed, parallelism=shape.parallelism)
    report.tallies.append(tally)
    with Lab(options(shape), name="agreement") as lab:
        async with LiveCluster.find(lab.kubeconfig) as cluster, Real.open(cluster) as real:
            run = Run(shape, seed, real, tally)
            await run.build()
            tell(f"{shape.name}: {shape.nodes} nodes, {decisions} decisions")
            began = monotonic()
            while tally.decisions < decisions and not tally.silent:
                await run.step()
                tally.seconds = monotonic() - began


class Run:
    """One shape at work. `step` counts arrivals; the same seed gives the same ones as long as the answers agree."""

    def __init__(self, shape: Shape, seed: int, real: Real, tally: Tally) -> None:
        self._shape = shape
        self._random = Random(f"{shape.name} {seed}")
        self._real = real
        self._mirror = Mirror(shape.percentage)
        self._tally = tally
        self._placed: dict[PodKey, Object] = {}
        self._nodes: dict[str, Document] = {}
        self._away: list[Document] = []
        self._arrived = 0

    async def build(self) -> None:
        """Make the cluster. Services and budgets come first: they have the time of all the nodes to arrive."""
        for document in self._shape.around:
            self._adopt(await self._real.create(document))
        for number in range(self._shape.nodes):
            document = self._shape.node(number, self._random)
            self._nodes[document["metadata"]["name"]] = document
            self._adopt(await self._real.create(document))
        self._adopt(await self._real.create(probe_node()))
        self._adopt(await self._real.settle(self._nodes))

    async def step(self) -> None:
        """One arrival and what happens before it."""
        if self._arrived and self._arrived % _STEPS_BETWEEN_CHANGES == 0:
            await self._change_nodes()
        await self._thin_out()
        self._arrived += 1
        document = self._shape.pod(self._random)
        document["metadata"]["name"] = f"pod-{self._arrived:05d}"
        pod = await self._real.create(document)
        decision = self._mirror.decide(pod.view(Pod))
        try:
            seen = await self._real.answer(pod)
            if seen.answer.nominated:
                seen = await self._follow_nomination(decision, seen)
            else:
                self._count(decision, pod, seen.answer)
        except SilentSchedulerError as error:
            self._tally.fall_silent(self._arrived, pod.name, error.message)
            return
        await self._conclude(seen)

    def _count(self, decision: Decision, pod: Object, answer: Answer) -> None:
        self._tally.refused += not answer.node
        story = f"{explain(decision, answer)}\nspec: {pod.sections['spec'].raw.decode()}"
        self._tally.add(judge(decision, answer), self._arrived, pod.name, story)

    async def _follow_nomination(self, decision: Decision, seen: Seen) -> Seen:
        """A pod for which others must go: see who goes, then decide on it again, as the scheduler does."""
        later = await self._real.answer(seen.pod)
        victims = frozenset(key for key in seen.gone | later.gone if key in self._placed)
        self._count(decision, seen.pod, msgspec.structs.replace(seen.answer, victims=victims))
        self._tally.preempted += 1
        self._adopt(seen.pod)
        for key in victims:
            self._forget(self._placed[key])
        self._count(self._mirror.decide(seen.pod.view(Pod)), seen.pod, later.answer)
        return later

    async def _conclude(self, seen: Seen) -> None:
        """Adopt a binding; take away a pod that found no place, lest it comes back."""
        pod = seen.pod
        if not seen.answer.node:
            await self._real.delete(pod)
            self._mirror.forget(pod.view(Pod))
            return
        if self._shape.started:
            started = rfc3339(Instant(_FIRST_START + self._random.randrange(10**6) * SECOND))
            body = {"status": {"phase": "Running", "startTime": started}}
            pod = await self._real.cluster.patch(POD, body, pod.name, pod.namespace, subresource="status")
        self._placed[pod.key] = pod
        self._adopt(pod)

    # --- what happens in between

    async def _thin_out(self) -> None:
        surplus = len(self._placed) - self._shape.crowd * len(self._nodes)
        for _ in range(self._random.choice((0, 1, 2, 3)) if surplus > 0 else 0):
            await self._remove(self._placed[self._random.choice([*self._placed])])

    async def _remove(self, pod: Object) -> None:
        await self._real.delete(pod)
        self._forget(pod)

    async def _change_nodes(self) -> None:
        """Two nodes change, one goes, one that went before comes back; then wait until the scheduler knows."""
        for name in self._random.sample([*self._nodes], 2):
            await self._change(name)
        if self._away:
            back = self._away.pop(0)
            self._nodes[back["metadata"]["name"]] = back
            self._adopt(await self._real.create(back))
        await self._send_away(self._random.choice([*self._nodes]))
        self._adopt(await self._real.settle(self._nodes))

    async def _change(self, name: str) -> None:
        """The node becomes as another of its shape would be, all but its name and size."""
        other = self._shape.node(int(name.removeprefix("node-")), self._random)
        change = {"metadata": {"labels": other["metadata"]["labels"]}, "spec": other["spec"]}
        self._adopt(await self._real.cluster.patch(NODE, change, name))

    async def _send_away(self, name: str) -> None:
        for pod in [each for each in self._placed.values() if each.view(Pod).spec.node_name == name]:
            await self._remove(pod)
        node = await self._real.cluster.delete(NODE, name)
        self._mirror.forget(node.view(KubernetesObject))
        self._away.append(self._nodes.pop(name))

    def _adopt(self, item: Object) -> None:
        if item.kind.name != "PriorityClass":  # admission has written its value into the pods
            self._mirror.adopt(item.view(KubernetesObject))

    def _forget(self, pod: Object) -> None:
        del self._placed[pod.key]
        self._mirror.forget(pod.view(Pod))
