"""What keeps a refused pod out: which manager, what its policy demands, what was asked and what was free where."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from itertools import accumulate

import msgspec

from bayplan.model.quantity import Format, Quantity
from bayplan.model.resources import CPU, HUGEPAGES_PREFIX, MEMORY, Amounts
from bayplan.node.admission import NodeManagers
from bayplan.node.needs import PodNeed
from bayplan.node.plan.planning import Pool, pools
from bayplan.node.plan.site import Outcome, Shortage
from bayplan.node.reasons import hinted, many
from bayplan.node.sets import format_list
from bayplan.node.topology.manager import SINGLE, Choice
from bayplan.node.topology.merge import listed, only_single

_DEMANDS = {
    SINGLE: "wants all that {who} asks for from one NUMA node",
    "restricted": "wants each resource that {who} asks for from as few NUMA nodes as an empty machine would need, "
    "and all from the same ones",
}
_MANAGERS = {"cpu": "CPU manager", "memory": "memory manager", "devices": "device manager"}
_GIB = 1024**3
_LARGE = 10 * _GIB
"""Above that, exact sizes are hard to read and of no use."""


class Blockage(msgspec.Struct, frozen=True):
    """Why a pod is refused. `reason` and `message` are those of its status."""

    manager: str
    reason: str
    message: str
    container: str
    """Where it stopped; empty where the pod was looked at as a whole."""
    because: tuple[str, ...]
    """Sentences, with the numbers."""
    hints: Mapping[str, str]
    """Where each resource would have been best."""
    pools: tuple[Pool, ...]
    """What was free at that moment: what the pod's earlier containers took is not."""


def blockage(outcome: Outcome) -> Blockage:
    """Why this pod was refused. Raises ValueError for one that was not."""
    refusal, managers = outcome.refusal, outcome.left
    if refusal is None or managers is None:
        raise ValueError(f"{outcome.candidate.name} was admitted")
    choice = outcome.choices[-1] if outcome.choices and not outcome.choices[-1].admitted else None
    story = _Story(outcome.candidate.need, choice.container if choice else refusal.container, managers)
    if outcome.shortage is not None:
        manager, because = "kubelet", iter([_out_of(outcome.shortage)])
    elif choice is not None:
        policies = managers.policies.topology
        manager, because = f"topology manager ({policies.policy}, scope {policies.scope})", story.unaligned(choice)
    else:
        manager, because = _MANAGERS[refusal.provider], story.refused_by(refusal.provider)
    return Blockage(
        manager=manager,
        reason=refusal.reason,
        message=refusal.message,
        container=story.container,
        because=tuple(because),
        hints={} if choice is None else hinted(choice.hints),
        pools=tuple(pools(managers)),
    )


class _Story:
    """The sentences about one refusal."""

    def __init__(self, need: PodNeed, container: str, managers: NodeManagers) -> None:
        self._need = need
        self.container = container
        self._managers = managers
        self._pools = pools(managers)
        self._who = f"container {container}" if container else "the pod"

    @functools.cached_property
    def _asked(self) -> Amounts:
        """By resource: of the container, or the most that the pod needs at once."""
        containers = self._need.containers
        every = [{CPU: each.cpus, **each.memory, **each.devices} for each in containers]
        if self.container:
            index = [each.name for each in containers].index(self.container)
            found = every[index]
        else:
            names = dict.fromkeys(name for each in every for name in each)
            found = {name: self._need.peak(each.get(name, 0) for each in every) for name in names}
        return {name: amount for name, amount in found.items() if amount}

    def unaligned(self, choice: Choice) -> Iterator[str]:
        """No NUMA nodes suit all resources as the policy wants."""
        policy = self._managers.policies.topology.policy
        yield f"{policy} {_DEMANDS[policy].format(who=self._who)}"
        for resource, amount in self._asked.items():
            if resource == CPU and self._managers.cpu.policy is not None:
                yield from self._cpus(amount)
            elif resource in self._managers.devices.inventories:
                yield self._devices(resource, amount)
            elif _is_memory(resource) and self._managers.memory.state.nodes:
                yield self._memory(resource, amount)
        lists = [each for each in listed(choice.hints.values()) if any(hint.nodes is not None for hint in each)]
        fitting = only_single(lists) if policy == SINGLE else lists
        if len(lists) > 1 and all(any(hint.preferred for hint in each) for each in fitting):
            yield "each of them alone has a place, but no NUMA nodes suit all of them"

    def refused_by(self, provider: str) -> Iterator[str]:
        """One manager cannot give what is asked."""
        if provider == "cpu":
            yield from self._cores(self._asked[CPU])
            yield from self._cpus(self._asked[CPU])
        elif provider == "memory":
            yield from (self._memory(name, amount) for name, amount in self._asked.items() if _is_memory(name))
            yield from self._groups()
        else:
            inventories = self._managers.devices.inventories
            yield from (self._devices(name, amount) for name, amount in self._asked.items() if name in inventories)

    def _cores(self, asked: int) -> Iterator[str]:
        policy, per_core = self._managers.cpu.policy, self._managers.machine.topology.per_core
        if policy is None or not policy.options.full_cores:
            return
        if asked % per_core:
            yield f"{asked} is not a multiple of {per_core}: full-pcpus-only gives whole cores of {per_core} threads"
        elif policy.reserved_physical != policy.reserved:
            lost = format_list(policy.reserved_physical & ~policy.reserved)
            yield f"full-pcpus-only leaves CPUs {lost} unused: their cores are partly reserved"

    def _cpus(self, asked: int) -> Iterator[str]:
        counts = {pool.node: pool.free.bit_count() for pool in self._pools if pool.cpus}
        yield f"{self._who} asks for {many(asked, 'CPU')}; {_spread(counts, 'CPU')}"
        sizes = sorted((pool.cpus.bit_count() for pool in self._pools), reverse=True)
        total, whole = sum(counts.values()), sum(sizes)
        if asked > whole:
            yield f"the machine has {many(whole, 'CPU')} in all"
        elif total >= asked > max(counts.values(), default=0):
            fewest = next(n for n, size in enumerate(accumulate(sizes), start=1) if size >= asked)
            largest = f"the largest NUMA node has {sizes[0]} CPUs, so {fewest} are needed in any case"
            yield largest if fewest > 1 else "fragmented: enough is free in all, but not together"

    def _memory(self, resource: str, asked: int) -> str:
        free = {pool.node: (pool.memory or {}).get(resource, 0) for pool in self._pools}
        best, total = max(free.values(), default=0), sum(free.values())
        told = f"{_written(resource, total)} is free" + (
            f", at most {_written(resource, best)} in one NUMA node" if len(free) > 1 else ""
        )
        return f"{self._who} asks for {_written(resource, asked)} of {resource}; {told}"

    def _groups(self) -> Iterator[str]:
        groups = {node.cells for node in self._managers.memory.state.nodes.values() if node.cells.bit_count() > 1}
        for group in sorted(groups):
            yield f"NUMA nodes {format_list(group)} serve memory as one group, and no other group may use them"

    def _devices(self, resource: str, asked: int) -> str:
        counts = {pool.node: len(pool.devices.get(resource, ())) for pool in self._pools}
        everywhere = len(self._managers.devices.inventories[resource].ids)
        return f"{self._who} asks for {asked} {resource}; of {everywhere}, {_spread(counts, '')}"


def _out_of(short: Shortage) -> str:
    asked, left, used, capacity = (
        _written(short.resource, amount)
        for amount in (short.asked, max(0, short.capacity - short.used), short.used, short.capacity)
    )
    return (
        f"the pod asks for {asked} {short.resource}, and {left} is left: other pods ask for {used} "
        f"of the {capacity} that are allocatable"
    )


def _spread(counts: Mapping[int, int], what: str) -> str:
    """`12 free CPUs, at most 8 in one NUMA node (4 in 0, 8 in 1)`."""
    total = sum(counts.values())
    told = f"{total} free {what}{'s' * (bool(what) and total != 1)}".rstrip()
    if len(counts) < 2 or not total:
        return told
    nodes: dict[int, int] = {}
    for node, count in counts.items():
        nodes[count] = nodes.get(count, 0) | 1 << node
    places = ", ".join(
        f"{count} in {'each of ' * (mask.bit_count() > 1)}{format_list(mask)}" for count, mask in nodes.items()
    )
    return f"{told}, at most {max(counts.values())} in one NUMA node ({places})"


def _is_memory(resource: str) -> bool:
    return resource == MEMORY or resource.startswith(HUGEPAGES_PREFIX)


def _written(resource: str, amount: int) -> str:
    if resource == CPU:
        return str(Quantity.of_milli(amount))
    if not _is_memory(resource):
        return str(amount)
    odd = amount > _LARGE and amount % _GIB
    return f"{amount / _GIB:.2f}Gi" if odd else str(Quantity.whole(amount, Format.BINARY_SI))
