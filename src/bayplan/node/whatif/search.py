"""The changes that would let a refused pod in: found by trying, from the nearest of each kind outwards.

request    one container asks for the most that would be let in, or for the least above what it asks for now; where
           one is not enough, all of them alike
setting    the topology manager's weaker policies and other scope, options, fewer reserved CPUs
order      it comes earlier, before as few pods as will do
eviction   one pod, or as few as will do, up to three; else the largest ones
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from bayplan.model.quantity import Format, Quantity
from bayplan.model.resources import CPU, amounts
from bayplan.node.configuration import NodeConfiguration
from bayplan.node.cpu.manager import STATIC
from bayplan.node.cpu.options import BY_SOCKET, FULL_CORES
from bayplan.node.flags import BOOLEANS
from bayplan.node.needs import ContainerNeed
from bayplan.node.sets import format_list, lowest_bits
from bayplan.node.topology.masks import joined
from bayplan.node.whatif.changes import Ask, Change, Evict, Kind, Order, Setting, Situation

MOST_EVICTED = 3
_MOST_TRIALS = 1000
"""Of sets of pods to evict."""
_MOST_MOVED = 32
"""Pods that are to come after it."""
_POLICIES = ("single-numa-node", "restricted", "best-effort", "none")
"""From the strictest to the weakest."""
_HALF = 500


def suggestions(now: Situation, most: int = 5) -> list[Change]:
    """At most so many changes that let the pod in, by kind and cost. The nearest of every kind comes before any second
    one of a kind."""
    found: list[tuple[int, Change]] = []
    for source in (_lower, _raised, _shared, _settings, _orders, _evictions):
        found += enumerate(sorted(source(now), key=lambda change: change.cost))
    found.sort(key=lambda each: (each[0], each[1].kind, each[1].cost))
    return [change for _, change in sorted(found[:most], key=lambda each: (each[1].kind, each[1].cost))]


def _working(now: Situation, changes: Iterable[Change]) -> Iterator[Change]:
    """The first of the changes that does it."""
    yield from itertools.islice((change for change in changes if change.admits(now)), 1)


# --- the pod asks otherwise


def _lower(now: Situation) -> Iterator[Change]:
    yield from _lower_cpus(now)
    yield from _lower_shared_cpu(now)
    for container in now.wanted.need.containers:
        for resource, count in container.devices.items():
            fewer = range(count - 1, 0, -1)
            yield from _working(now, (_ask(container.name, resource, each, count, str) for each in fewer))
        for resource, size in container.memory.items():
            sizes = _memory_steps(now, resource, size)
            yield from _working(now, (_ask(container.name, resource, each, size, _bytes) for each in sizes))


def _lower_cpus(now: Situation) -> Iterator[Change]:
    own = _own(now)
    alone: list[Change] = []
    for each in own:
        alone += _working(now, (_cpus({each.name: n}, own) for n in range(each.cpus - 1, 0, -1)))
    yield from alone
    if not alone and len(own) > 1:
        most = max(each.cpus for each in own)
        capped = ({each.name: n for each in own if each.cpus > n} for n in range(most - 1, 0, -1))
        yield from _working(now, (_cpus(each, own) for each in capped))


def _raised(now: Situation) -> Iterator[Change]:
    """No more than twice as many: beyond that nobody would call it near."""
    own, most = _own(now), len(now.machine.topology.cpus)
    for each in own:
        more = range(each.cpus + 1, min(2 * each.cpus, most) + 1)
        yield from _working(now, (_cpus({each.name: n}, own) for n in more))


def _shared(now: Situation) -> Iterator[Change]:
    """Half a CPU less than whole ones is for the shared pool."""
    for each in _own(now):
        text = str(Quantity.of_milli(each.cpus * 1000 - _HALF))
        change = Ask(CPU, {each.name: text}, {each.name: str(each.cpus)}, Kind.SHARE, each.cpus, each.cpus)
        yield from _working(now, [change])


def _own(now: Situation) -> tuple[ContainerNeed, ...]:
    """The containers that are due CPUs of their own."""
    need = now.wanted.need
    if now.configuration.policies.cpu != STATIC or need.pod_level:
        return ()
    return tuple(each for each in need.containers if each.cpus)


def _cpus(counts: Mapping[str, int], own: Iterable[ContainerNeed]) -> Ask:
    was = {each.name: each.cpus for each in own}
    difference = sum(count - was[name] for name, count in counts.items())
    return Ask(
        resource=CPU,
        amounts={name: str(count) for name, count in counts.items()},
        was={name: str(was[name]) for name in counts},
        sort=Kind.RAISE if difference > 0 else Kind.LOWER,
        difference=abs(difference),
        asked=sum(was[name] for name in counts),
    )


def _lower_shared_cpu(now: Situation) -> Iterator[Change]:
    """Where too much CPU is asked for in all: by so much less, of a container that has none of its own."""
    wanted, site = now.wanted, now.before
    short = wanted.requests.get(CPU, 0) + site.used(CPU, wanted.need.uid) - site.allocatable[CPU]
    if short <= 0:
        return
    own = {each.name for each in _own(now)}
    for container in (*wanted.pod.spec.init_containers, *wanted.pod.spec.containers):
        asked = amounts(container.resources.requests).get(CPU, 0)
        if container.name not in own and asked > short:
            yield from _working(now, [_ask(container.name, CPU, asked - short, asked, _cores)])


def _memory_steps(now: Situation, resource: str, size: int) -> list[int]:
    """The amounts at which anything changes: what sets of NUMA nodes have in all and have free, what is left in all;
    beside what the pod's other containers ask for, or not."""
    site, need = now.before, now.wanted.need
    tables = [node.table(resource) for node in site.managers.memory.state.nodes.values()]
    steps = {*joined([each.free for each in tables]), *joined([each.allocatable for each in tables])}
    if resource in site.allocatable:
        steps.add(site.allocatable[resource] - site.used(resource, need.uid))
    others = need.peak(each.memory.get(resource, 0) for each in need.containers) - size
    steps |= {each - others for each in steps}
    return sorted((each for each in steps if 0 < each < size), reverse=True)


def _ask(container: str, resource: str, amount: int, was: int, written: Callable[[int], str]) -> Ask:
    return Ask(resource, {container: written(amount)}, {container: written(was)}, Kind.LOWER, was - amount, was)


def _bytes(amount: int) -> str:
    return str(Quantity.whole(amount, Format.BINARY_SI))


def _cores(millis: int) -> str:
    return str(Quantity.of_milli(millis))


# --- the kubelet is set otherwise


def _settings(now: Situation) -> Iterator[Change]:
    for each in (_weaker, _scope, _options, _memory, _fewer_reserved):
        yield from _working(now, each(now.configuration, now))


def _with(configuration: NodeConfiguration, flag: str, was: str, distance: int, **policies: object) -> Setting:
    changed = msgspec.structs.replace(configuration.policies, **policies)
    return Setting(flag, was, msgspec.structs.replace(configuration, policies=changed), distance)


def _weaker(configuration: NodeConfiguration, _: Situation) -> Iterator[Setting]:
    topology = configuration.policies.topology
    place = _POLICIES.index(topology.policy)
    for policy in _POLICIES[place + 1 :]:
        changed = msgspec.structs.replace(topology, policy=policy)
        distance = _POLICIES.index(policy) - place
        yield _with(configuration, f"--topology-manager-policy={policy}", topology.policy, distance, topology=changed)


def _scope(configuration: NodeConfiguration, _: Situation) -> Iterator[Setting]:
    topology = configuration.policies.topology
    if topology.policy == "none":
        return
    scope = "pod" if topology.scope == "container" else "container"
    changed = msgspec.structs.replace(topology, scope=scope)
    yield _with(configuration, f"--topology-manager-scope={scope}", topology.scope, 1, topology=changed)


def _options(configuration: NodeConfiguration, _: Situation) -> Iterator[Setting]:
    """Whole cores no longer, or sockets instead of NUMA nodes."""
    given = configuration.policies.cpu_options
    for name, helps in ((FULL_CORES, False), (BY_SOCKET, True)):
        if configuration.policies.cpu == STATIC and BOOLEANS.get(given.get(name, "false")) is not helps:
            value, was = str(helps).lower(), str(not helps).lower()
            options = {**given, name: value}
            yield _with(configuration, f"--cpu-manager-policy-options={name}={value}", was, 1, cpu_options=options)


def _memory(configuration: NodeConfiguration, _: Situation) -> Iterator[Setting]:
    if configuration.policies.memory == "Static":
        yield _with(configuration, "--memory-manager-policy=None", "Static", 2, memory="None", reserved_memory={})


def _fewer_reserved(configuration: NodeConfiguration, now: Situation) -> Iterator[Setting]:
    """The lowest of those that are reserved now stay so."""
    reserved = now.before.managers.cpu.reserved
    before = format_list(reserved)
    for count in range(reserved.bit_count() - 1, 0, -1):
        kept = lowest_bits(reserved, count)
        changed = msgspec.structs.replace(
            configuration,
            system_reserved={**configuration.system_reserved, CPU: Quantity.whole(count)},
            kube_reserved={name: each for name, each in configuration.kube_reserved.items() if name != CPU},
        )
        flag = f"--reserved-cpus={format_list(kept)}"
        yield _with(changed, flag, before, reserved.bit_count() - count, reserved=count, reserved_cpus=kept)


# --- others


def _orders(now: Situation) -> Iterator[Change]:
    """Before the last one, the last two, and so on; at last all anew, the largest first."""
    uid, earlier = now.wanted.need.uid, now.earlier
    if now.outcome.shortage is not None or not earlier:
        return  # no order makes amounts smaller
    uids, names = [each.need.uid for each in earlier], [each.name for each in earlier]
    places = (
        Order(tuple(names[at:]), (*uids[:at], uid, *uids[at:]))
        for at in range(len(earlier) - 1, -1, -1)
        if len(earlier) - at <= _MOST_MOVED
    )
    largest = sorted((*earlier, now.wanted), key=lambda each: -sum(part.cpus for part in each.need.containers))
    anew = Order(tuple(names), tuple(each.need.uid for each in largest), anew=True)
    yield from _working(now, itertools.chain(places, [anew]))


def _evictions(now: Situation) -> Iterator[Change]:
    """All sets of as few pods as will do."""
    names = {each.need.uid: each.name for each in now.earlier}
    costs = {uid: (_own_cpus(now, uid), asked.get(CPU, 0)) for uid, asked in now.before.tenants.items()}
    trials = 0
    for size in range(1, MOST_EVICTED + 1):
        found = False
        for uids in itertools.combinations(sorted(costs, key=lambda uid: costs[uid]), size):
            cpus, asked = (sum(costs[uid][at] for uid in uids) for at in range(2))
            if not _may_suffice(now, cpus, uids):
                continue
            trials += 1
            if trials > _MOST_TRIALS:
                break
            change = Evict({uid: names.get(uid, f"pod {uid}") for uid in uids}, cpus, asked)
            if change.admits(now):
                found = True
                yield change
        if found:
            return
    yield from _many_evicted(now, names, costs)


def _many_evicted(now: Situation, names: Mapping[str, str], costs: Mapping[str, tuple[int, int]]) -> Iterator[Change]:
    """The largest one after the other until it is let in, less those that need not go: few, if not the fewest."""

    def change(uids: Iterable[str]) -> Evict:
        going = [*uids]
        cpus, asked = (sum(costs[uid][at] for uid in going) for at in range(2))
        return Evict({uid: names.get(uid, f"pod {uid}") for uid in going}, cpus, asked)

    largest = sorted(costs, key=lambda uid: costs[uid], reverse=True)
    enough = next((n for n in range(MOST_EVICTED + 1, len(largest) + 1) if change(largest[:n]).admits(now)), 0)
    going = largest[:enough]
    for uid in largest[:enough]:
        fewer = [each for each in going if each != uid]
        if change(fewer).admits(now):
            going = fewer
    if going:
        yield change(going)


def _may_suffice(now: Situation, cpus: int, uids: Iterable[str]) -> bool:
    """Whether enough becomes free in all; where not, no trial is needed."""
    short = now.outcome.shortage
    if short is not None:
        freed = sum(now.before.tenants[uid].get(short.resource, 0) for uid in uids)
        return short.asked <= short.capacity - short.used + freed
    wanted = now.wanted.need.peak(each.cpus for each in now.wanted.need.containers) if _own(now) else 0
    return wanted <= now.before.managers.cpu.assignable.bit_count() + cpus


def _own_cpus(now: Situation, uid: str) -> int:
    cpus = 0
    for each in now.before.managers.holdings(uid).values():
        cpus |= each.cpus
    return cpus.bit_count()
