"""The shapes of clusters: which nodes, what around them, which pods arrive. The same seed gives the same arrivals."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from bayplan.conformance.agreement.documents import (
    APPS,
    HOSTNAME,
    REGION,
    SPACES,
    ZONE,
    Document,
    container,
    node,
    pod,
    selector,
    some,
    surroundings,
)

MakeNode = Callable[[int, Random], Document]
MakePod = Callable[[Random], Document]


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A sort of cluster, and what happens in it."""

    name: str
    nodes: int
    node: MakeNode
    pod: MakePod
    around: tuple[Document, ...] = ()
    crowd: float = 5.0
    """Pods for each node that stay, about; the rest is deleted again."""
    parallelism: int = 1
    """Above 1 the real scheduler's choice among equals is a race, so only our set of best nodes is asked of it."""
    percentage: int = 100
    """percentageOfNodesToScore: 0 is the adaptive default."""
    started: bool = False
    """Whether pods get a start time, by which preemption ranks them."""


def _spaces() -> list[Document]:
    return surroundings(
        "Namespace", "v1", [({"name": name, "labels": {"team": name[0]}}, {}) for name in SPACES if name != "default"]
    )


def _services() -> list[Document]:
    """Half of the apps have a Service, so the default spreading takes part for half of the pods."""
    return surroundings(
        "Service",
        "v1",
        [
            ({"name": f"app-{app}", "namespace": space}, {"spec": {"selector": {"app": app}, "ports": [{"port": 80}]}})
            for space in SPACES
            for app in APPS[:3]
        ],
    )


def _classes() -> list[Document]:
    rows = (("low", -10, "PreemptLowerPriority"), ("high", 1000, "PreemptLowerPriority"), ("polite", 900, "Never"))
    return surroundings(
        "PriorityClass",
        "scheduling.k8s.io/v1",
        [({"name": name}, {"value": value, "preemptionPolicy": policy}) for name, value, policy in rows],
    )


def _budgets() -> list[Document]:
    """Budgets that allow nothing, one, or many; nobody counts them down, so they stay as they are."""
    return surroundings(
        "PodDisruptionBudget",
        "policy/v1",
        [
            (
                {"name": f"app-{app}", "namespace": space},
                {
                    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
                    "status": {"disruptionsAllowed": allowed},
                },
            )
            for space in SPACES[:2]
            for app, allowed in zip(APPS, (0, 1, 5), strict=False)
        ],
    )


# --- plain


def _plain_pod(random: Random) -> Document:
    made = pod(
        random,
        **some(random, 0.1, nodeSelector={"disk": random.choice(("ssd", "hdd", "ssd", "tape"))}),
        **some(random, 0.1, initContainers=[{**container(random), "name": "first"}]),
    )
    if random.random() < 0.05:  # requests of the pod as a whole, and of one container
        made["spec"]["resources"] = {"requests": {"cpu": random.choice(("800m", "8")), "memory": "9Gi"}}
        made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "1Gi"}}
        del made["spec"]["containers"][1:]
        made["spec"].pop("initContainers", None)
    if random.random() < 0.08:
        made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": random.choice((8080, 8081))}]
    return made


# --- zones


def _zoned_node(number: int, random: Random) -> Document:
    labels = {ZONE: random.choice("aaabbc"), REGION: random.choice(("north", "north", "south"))}
    if random.random() < 0.05:
        del labels[ZONE]
    return node(number, random, labels)


def _constraint(random: Random) -> Document:
    hard = random.random() < 0.5
    return {
        "topologyKey": random.choice((ZONE, ZONE, HOSTNAME, REGION, "disk")),
        "maxSkew": random.choice((1, 1, 2, 5)),
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": selector(random),
        **some(random, 0.2 if hard else 0, minDomains=random.choice((2, 3, 5))),
        **some(random, 0.2, nodeAffinityPolicy=random.choice(("Honor", "Ignore"))),
        **some(random, 0.2, nodeTaintsPolicy=random.choice(("Honor", "Ignore"))),
        **some(random, 0.15, matchLabelKeys=["tier"]),
    }


def _spread_pod(random: Random) -> Document:
    constraints = {
        (each["topologyKey"], each["whenUnsatisfiable"]): each
        for each in (_constraint(random) for _ in range(random.choice((0, 0, 1, 1, 2, 3))))
    }
    return pod(
        random,
        **some(random, 0.15, nodeSelector={"disk": "ssd"}),
        **({"topologySpreadConstraints": [*constraints.values()]} if constraints else {}),
    )


# --- affinity


def _pod_term(random: Random) -> Document:
    return {
        "topologyKey": random.choice((ZONE, HOSTNAME, HOSTNAME, REGION, "disk")),
        "labelSelector": selector(random),
        **some(random, 0.2, namespaces=random.sample(SPACES, 2)),
        **some(random, 0.2, namespaceSelector=random.choice(({}, {"matchLabels": {"team": "b"}}))),
        **some(random, 0.1, matchLabelKeys=["tier"]),
    }


def _node_term(random: Random) -> Document:
    return {
        "matchExpressions": [
            random.choice(
                (
                    {"key": "disk", "operator": "In", "values": ["ssd"]},
                    {"key": ZONE, "operator": "NotIn", "values": ["a"]},
                    {"key": ZONE, "operator": "Exists"},
                    {"key": ZONE, "operator": "In", "values": ["b", "c"]},
                    {"key": REGION, "operator": "In", "values": ["south"]},
                )
            )
        ]
    }


def _weighted(random: Random, field: str, term: Callable[[Random], Document], most: int) -> list[Document]:
    return [{"weight": random.randint(1, 100), field: term(random)} for _ in range(random.randint(1, most))]


def _pod_side(random: Random, required: float) -> Document:
    return {
        **some(random, required, requiredDuringSchedulingIgnoredDuringExecution=[_pod_term(random)]),
        **some(
            random,
            0.6,
            preferredDuringSchedulingIgnoredDuringExecution=_weighted(random, "podAffinityTerm", _pod_term, 2),
        ),
    }


def _affinity_pod(random: Random) -> Document:
    terms = {"nodeSelectorTerms": [_node_term(random) for _ in range(random.choice((1, 2)))]}
    near_node = {
        **some(random, 0.3, requiredDuringSchedulingIgnoredDuringExecution=terms),
        **some(
            random,
            0.6,
            preferredDuringSchedulingIgnoredDuringExecution=_weighted(random, "preference", _node_term, 3),
        ),
    }
    affinity = {
        **some(random, 0.4, nodeAffinity=near_node),
        **some(random, 0.4, podAffinity=_pod_side(random, 0.3)),
        **some(random, 0.4, podAntiAffinity=_pod_side(random, 0.3)),
    }
    return pod(random, affinity=affinity)


# --- taints


def _tainted_node(number: int, random: Random) -> Document:
    taints = [
        {"key": random.choice(("gpu", "team", "old")), "value": random.choice("xy"), "effect": random.choice(_EFFECTS)}
        for _ in range(random.choice((0, 0, 1, 1, 2)))
    ]
    unique = {(each["key"], each["effect"]): each for each in taints}
    return node(number, random, taints=[*unique.values()], unschedulable=random.random() < 0.1)


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute")


def _toleration(random: Random) -> Document:
    return {
        **random.choice(
            (
                {"operator": "Exists"},
                {"key": "gpu", "operator": "Exists"},
                {"key": "team", "operator": "Equal", "value": "x"},
                {"key": "old", "operator": "Equal", "value": "y"},
                {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
            )
        ),
        **some(random, 0.4, effect=random.choice(("NoSchedule", "PreferNoSchedule"))),
    }


def _tolerant_pod(random: Random) -> Document:
    made = pod(random, tolerations=[_toleration(random) for _ in range(random.choice((0, 1, 1, 2)))])
    if random.random() < 0.05:  # as a DaemonSet's pod
        field = {"key": "metadata.name", "operator": "In", "values": [f"node-{random.randrange(90):03d}"]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        made["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return made


# --- priorities


def _ranked_pod(random: Random) -> Document:
    name = random.choice(("", "", "low", "low", "high", "polite"))
    made = pod(random, **({"priorityClassName": name} if name else {}))
    for each in made["spec"]["containers"]:
        each["resources"] = {"requests": {"cpu": random.choice(("500m", "1", "2")), "memory": "512Mi"}}
    if random.random() < 0.1:
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": made["metadata"]["labels"]["app"]}}}
        made["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return made


def _plain(**changes: Any) -> Shape:
    return Shape(**{"name": "plain", "nodes": 80, "node": node, "pod": _plain_pod, "around": (*_spaces(),), **changes})


def _zones(**changes: Any) -> Shape:
    base = {"name": "zones", "nodes": 60, "node": _zoned_node, "pod": _spread_pod, "around": (*_spaces(), *_services())}
    return Shape(**{**base, **changes})


SHAPES: dict[str, Shape] = {
    shape.name: shape
    for shape in (
        _plain(),
        _zones(),
        Shape(name="affinity", nodes=50, node=_zoned_node, pod=_affinity_pod, around=(*_spaces(), *_services())),
        Shape(name="taints", nodes=90, node=_tainted_node, pod=_tolerant_pod, around=(*_spaces(),)),
        Shape(
            name="priorities",
            nodes=40,
            node=node,
            pod=_ranked_pod,
            around=(*_spaces(), *_classes(), *_budgets()),
            crowd=9.0,
            started=True,
        ),
        _plain(name="sampled", nodes=160, percentage=0, crowd=3.0),
        _plain(name="plain-parallel", parallelism=16),
        _zones(name="zones-parallel", parallelism=16),
    )
}
