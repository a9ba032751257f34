"""No cheaper change exists: the search beside an exhaustive one, on small random clusters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.model import objects
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.taints import HARD_EFFECTS
from bayplan.scheduling.cycle import decide
from bayplan.scheduling.decision import Outcome
from bayplan.scheduling.filtering import prepare
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.state import ClusterState
from bayplan.scheduling.whatif import Change, Cost, applied, cost, smallest_changes
from bayplan.scheduling.whatif import cluster_changes as around
from bayplan.scheduling.whatif import pod_changes as made
from bayplan.scheduling.whatif.moving import move
from bayplan.scheduling.whatif.needs import CONDITIONS, can_be_tolerated
from bayplan.scheduling.whatif.shapes import shape_of

Doc = dict[str, Any]

PROFILE = default_profile()
GPU = "example.com/gpu"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


# --- clusters

TAINTS = [
    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
    {"key": "team", "value": "a", "effect": "NoExecute"},
    {"key": "soft", "value": "", "effect": "PreferNoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"},
]
EXPRESSIONS = [{"key": ZONE, "operator": "In", "values": ["b"]}, {"key": "disk", "operator": "Exists"}]


def one_in(dice: Random, number: int) -> bool:
    return dice.randrange(number) == 0


def node(dice: Random, name: str) -> Doc:
    labels = {HOST: name} | ({} if one_in(dice, 6) else {ZONE: dice.choice("ab")})
    labels |= {} if one_in(dice, 6) else {"disk": dice.choice(["ssd", "hdd"])}
    offers = {"cpu": str(dice.randint(3, 8)), "memory": "8Gi", "pods": str(dice.choice([2, 4, 9]))}
    offers |= {GPU: str(dice.randint(1, 4))} if one_in(dice, 2) else {}
    spec = {"unschedulable": one_in(dice, 6), "taints": dice.sample(TAINTS, dice.choice([0, 0, 0, 1, 2]))}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": offers}}


def term(dice: Random) -> Doc:
    selector = {"matchLabels": {"app": dice.choice(["web", "db"])}}
    return {"labelSelector": selector, "topologyKey": dice.choice([HOST, ZONE])}


def pod(dice: Random, name: str, on: str = "", *, rules: int = 0) -> Doc:
    """A pod, with each rule in one case of `rules`; 0 for a plain one."""
    requests = {"cpu": str(dice.choice([1, 1, 2, 3, 4, 6, 9]) if rules else dice.randint(1, 3))}
    requests |= {GPU: str(dice.randint(1, 4))} if one_in(dice, 4) else {}
    ports = [{"hostPort": 80, "protocol": "TCP"}] if one_in(dice, 4) else []
    container = {"name": "c", "resources": {"requests": requests}, "ports": ports}
    spec: Doc = {"containers": [container], "nodeName": on, "priority": dice.randint(0, 1), "affinity": {}}
    if one_in(dice, 4):
        spec["affinity"]["podAntiAffinity"] = {REQUIRED: [term(dice)]}
    if rules and one_in(dice, rules):
        spec["affinity"]["podAffinity"] = {REQUIRED: [term(dice) for _ in range(dice.randint(1, 2))]}
    if rules and one_in(dice, rules):
        spec["nodeSelector"] = {"disk": "ssd"}
    if rules and one_in(dice, rules):
        terms = [{"matchExpressions": dice.sample(EXPRESSIONS, dice.randint(1, 2))} for _ in range(dice.randint(1, 2))]
        spec["affinity"]["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
    if rules and one_in(dice, rules):
        like = {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}
        spec["topologySpreadConstraints"] = [{"maxSkew": 1, "topologyKey": dice.choice([HOST, ZONE]), **like}]
    labels = {"app": dice.choice(["web", "db", "job"])}
    return {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec}


def cluster(seed: int) -> tuple[ClusterState, PodInfo]:
    """A few nodes, a few pods on them, and a pod that may not fit."""
    dice = Random(seed)
    state = ClusterState()
    names = [f"n{number}" for number in range(dice.randint(1, 4))]
    for name in names:
        state.put(objects.from_builtins(node(dice, name), Node))
    for number in range(dice.randint(0, 9)):
        state.put(objects.from_builtins(pod(dice, f"p{number}", dice.choice(names)), Pod))
    return state, PodInfo(objects.from_builtins(pod(dice, "new", rules=dice.randint(2, 6)), Pod))


# --- everything that might be changed, one by one


def to_the_pod(state: ClusterState, pod: PodInfo) -> Iterator[Change]:
    spec = pod.pod.spec
    for resource, asked in pod.requests.items():
        step = 1000 if resource == "cpu" else 1
        for to in range(step, asked, step):
            yield made.LowerRequest(resource, asked, to, "")
    hard = [each for node in state.nodes for each in node.node.spec.taints if each.effect in HARD_EFFECTS]
    yield from {made.AddToleration(each) for each in hard if can_be_tolerated(each)}
    for key, value in spec.node_selector.items():
        yield made.DropNodeSelector(key, value)
    affinity = spec.affinity
    assert affinity is not None
    if affinity.node_affinity and affinity.node_affinity.required:
        for i, term in enumerate(affinity.node_affinity.required.node_selector_terms):
            yield from (made.RelaxNodeAffinity(i, each) for each in term.match_expressions)
    yield from map(made.SoftenSpread, spec.topology_spread_constraints)
    if affinity.pod_affinity:
        yield from map(made.DropPodAffinity, affinity.pod_affinity.required)
    if affinity.pod_anti_affinity:
        yield from map(made.DropPodAntiAffinity, affinity.pod_anti_affinity.required)
    yield from map(made.DropHostPort, pod.wants.host_ports)


def to_the_cluster(state: ClusterState) -> Iterator[Change]:
    for node in state.nodes:
        spec = node.node.spec
        if spec.unschedulable:
            yield around.UncordonNode(node.name)
        ill = tuple(each.key for each in spec.taints if each.key in CONDITIONS)
        if ill:
            yield around.RecoverNode(node.name, ill)
        yield shape_of(node.node)
        for other in node.pods.values():
            yield from (move(other, node, name) for name in places(state, other, node.name))


def places(state: ClusterState, pod: PodInfo, origin: str) -> Iterator[str]:
    """Where else a pod could be."""
    rest = state.copy()
    rest.drop_pod(pod.key)
    unbound = PodInfo(replace(pod.pod, spec=replace(pod.pod.spec, node_name="")))
    filters = prepare(PROFILE, unbound, rest)
    for node in rest.nodes:
        if node.name != origin and filters.whole is None and filters.check(node) is None:
            yield node.name


def exhaustive(state: ClusterState, pod: PodInfo, size: int) -> dict[tuple[int, ...], Cost]:
    """For each combination of kinds the cost of the cheapest set of that many changes that works, by trying all."""
    every = [*to_the_pod(state, pod), *to_the_cluster(state)]
    sets = [each for each in combinations(every, size) if is_sensible(each)]
    cheapest: dict[tuple[int, ...], Cost] = {}
    for price, each in sorted(((cost(each), each) for each in sets), key=lambda one: one[0]):
        if price.kinds not in cheapest:
            changed, then = applied(each, pod.pod, state)
            if decide(then, PROFILE, PodInfo(changed)).outcome is Outcome.SCHEDULED:
                cheapest[price.kinds] = price
    return cheapest


def is_sensible(changes: tuple[Change, ...]) -> bool:
    """At most one node is added or pod moved, and no request is lowered twice."""
    lowered = [each.resource for each in changes if isinstance(each, made.LowerRequest)]
    return sum(isinstance(each, around.AddNode | around.MovePod) for each in changes) <= 1 and len({*lowered}) == len(
        lowered
    )


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_no_cheaper_change_exists_than_the_one_found(seed: int) -> None:
    state, pod = cluster(seed)
    answer = smallest_changes(state, PROFILE, pod, most=100)
    assert answer.complete
    if decide(state, PROFILE, pod).outcome is Outcome.SCHEDULED:
        assert answer.proposals == ()
        return

    found: dict[tuple[int, ...], Cost] = {}
    for each in answer.proposals:
        found.setdefault(each.cost.kinds, each.cost)

    single = exhaustive(state, pod, 1)
    if single:
        assert found == single  # of every kind
        return
    double = exhaustive(state, pod, 2)
    if double:
        assert answer.proposals[0].cost == min(double.values())
    else:  # sets of three are too many to try them all
        assert all(each.cost.changes == 3 for each in answer.proposals)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_every_proposal_works_and_they_stand_in_order(seed: int) -> None:
    state, pod = cluster(seed)
    before = [(node.name, [*node.pods], dict(node.requested)) for node in state.nodes]

    proposals = smallest_changes(state, PROFILE, pod).proposals

    assert [each.cost for each in proposals] == sorted(each.cost for each in proposals)
    assert before == [(node.name, [*node.pods], dict(node.requested)) for node in state.nodes]
    for each in proposals:
        changed, then = applied(each.changes, pod.pod, state)
        decision = decide(then, PROFILE, PodInfo(changed))
        assert (decision.node, decision.feasible) == (each.node, each.nodes)
        for change in each.changes:
            if isinstance(change, around.MovePod):
                origin = state.node(change.origin)
                assert origin is not None
                assert change.to in places(state, origin.pods[change.namespace, change.name], change.origin)
