"""Loads for the scheduling benchmark: a cluster's nodes, and pods that come and go one by one.

The same name, sizes and seed give the same load, as one JSON file that bayplan and upstream's scheduler both read:
`{"nodes": [...], "warmup": n, "steps": [{"create": pod} or {"delete": "namespace/name"}, ...]}`. Objects are as an API
server would have stored them. No Service or ReplicaSet selects the pods, so no default spreading takes part. Whether a
pod gets a place is for the scheduler to say: the deletion of one that got none does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec

Object = dict[str, Any]

ZONES = [f"zone-{number}" for number in range(10)]
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
NAMESPACE = "load"

_GIB = 1 << 20  # in Ki, the unit that nodes report
_POD_LIMIT = {8: 110, 16: 110, 32: 250, 64: 250}  # by cores
_SHAPES = 300
_APPS = 20
_DELETED = {"interleaved": 0.1}
"""Share of the steps after the warm-up that delete a pod; in other scenarios pods stay."""


class Shape(msgspec.Struct, frozen=True):
    """What pods of one kind have in common."""

    app: str
    milli_cpu: int
    memory: int
    """Ki."""
    spec: Object = {}
    """What the pod's spec has besides."""


class Step(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One thing that happens: a pod is created, or deleted by `namespace/name`."""

    create: Object | None = None
    delete: str | None = None


class Load(msgspec.Struct, frozen=True):
    """A cluster and what happens in it; the first `warmup` steps are not measured."""

    nodes: list[Object]
    warmup: int
    steps: list[Step]

    def write(self, path: Path) -> None:
        """Write the file that the peer reads."""
        path.write_bytes(msgspec.json.encode(self))


def load(scenario: str, nodes: int, measured: int = 2_000, warmup: int = 200, seed: int = 1) -> Load:
    """The load of a scenario: so many nodes, and `measured` steps after `warmup` ones."""
    random = Random(f"{scenario} {seed}")
    shapes = SCENARIOS[scenario](random, warmup + measured)
    steps: list[Step] = []
    present: list[str] = []
    for number, shape in enumerate(shapes):
        if number >= warmup and random.random() < _DELETED.get(scenario, 0):
            steps.append(Step(delete=present.pop(random.randrange(len(present)))))
        else:
            pod = _pod(shape, number)
            steps.append(Step(create=pod))
            present.append(f"{NAMESPACE}/{pod['metadata']['name']}")
    return Load(cluster(nodes, Random(f"nodes {seed}")), warmup, steps)


def cluster(count: int, random: Random) -> list[Object]:
    """Nodes of four sizes in ten zones: 3% kept for GPU work, 3% better avoided, 30% with a fast disk."""
    return [_node(number, random) for number in range(count)]


def _node(number: int, random: Random) -> Object:
    name = f"node-{number:05d}"
    cores = random.choice(list(_POD_LIMIT))
    memory = cores * 4 * _GIB
    labels = {
        HOSTNAME: name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": f"general-{cores}",
        "topology.kubernetes.io/region": "region-0",
        ZONE: random.choice(ZONES),
        "disk": "ssd" if random.random() < 0.3 else "hdd",
    }
    spec: Object = {}
    fate = random.random()
    if fate < 0.03:
        labels["accelerator"] = "gpu"
        spec["taints"] = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
    elif fate < 0.06:
        spec["taints"] = [{"key": "maintenance", "value": "soon", "effect": "PreferNoSchedule"}]
    limits = {"ephemeral-storage": f"{100 * _GIB}Ki", "pods": str(_POD_LIMIT[cores])}
    status = {
        "capacity": {"cpu": str(cores), "memory": f"{memory}Ki", **limits},
        "allocatable": {"cpu": f"{cores * 1000 - 100}m", "memory": f"{memory - _GIB}Ki", **limits},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    }
    meta = {"name": name, "uid": f"00000000-0000-4000-9000-{number:012d}", "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for what in ("not-ready", "unreachable")
]


def _pod(shape: Shape, number: int) -> Object:
    container = {
        "name": "main",
        "image": f"registry.example/{shape.app}:v1",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": f"{shape.milli_cpu}m", "memory": f"{shape.memory}Ki"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    spec = {
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "enableServiceLinks": True,
        **shape.spec,
        "tolerations": [*shape.spec.get("tolerations", ()), *_TOLERATIONS],
    }
    meta = {
        "name": f"{shape.app}-{number:06d}",
        "namespace": NAMESPACE,
        "uid": f"00000000-0000-4000-8000-{number:012d}",
        "labels": {"app": shape.app},
    }
    status = {"phase": "Pending", "qosClass": "Burstable"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def _shape(app: str, random: Random, spec: Object | None = None) -> Shape:
    """Requests of a tenth of a core to two cores, and 128 MiB to 4 GiB."""
    return Shape(app, random.randrange(100, 2_000, 10), random.randrange(128, 4_096, 8) << 10, spec or {})


def _interleaved(random: Random, count: int) -> list[Shape]:
    """300 shapes in random order; a third of them also say where they want to be."""
    shapes = [_shape(f"app-{number}", random, _wish(number, random)) for number in range(_SHAPES)]
    return random.choices(shapes, k=count)


def _wish(number: int, random: Random) -> Object:
    if number % 9 == 0:
        return {"nodeSelector": random.choice([{"disk": "ssd"}, {ZONE: random.choice(ZONES)}])}
    if number % 9 == 3:
        return {"tolerations": [{"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}]}
    if number % 9 == 6:
        wanted = [("disk", ["ssd"]), (ZONE, random.sample(ZONES, 2))]
        terms = [
            {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}}
            for weight, (key, values) in zip((80, 20), wanted, strict=True)
        ]
        return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}
    return {}


def _recurring(_random: Random, count: int) -> list[Shape]:
    """One shape."""
    return [Shape("app", 250, 512 << 10)] * count


def _distinct(random: Random, count: int) -> list[Shape]:
    """Requests that no other pod has; every tenth pod wants a fast disk."""
    sizes = random.sample(range(128 << 10, 4_096 << 10), count)
    return [
        Shape("app", random.randrange(100, 2_000), memory, {} if number % 10 else {"nodeSelector": {"disk": "ssd"}})
        for number, memory in enumerate(sizes)
    ]


def _spread(random: Random, count: int) -> list[Shape]:
    """20 apps, each spread softly over zones and nodes."""
    shapes = []
    for app in (f"app-{number}" for number in range(_APPS)):
        constraints = [
            {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": _selects(app)}
            for key in (ZONE, HOSTNAME)
        ]
        shapes.append(_shape(app, random, {"topologySpreadConstraints": constraints}))
    return random.choices(shapes, k=count)


def _affinity(random: Random, count: int) -> list[Shape]:
    """20 apps: a quarter keep their pods on nodes apart, a quarter in one zone, all like the zones of another app."""
    shapes = []
    for number in range(_APPS):
        own, liked = f"app-{number}", f"app-{(number + 1) % _APPS}"
        preferred = [{"weight": 50, "podAffinityTerm": _term(liked, ZONE)}]
        together: Object = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        affinity: Object = {"podAffinity": together}
        if number % 4 == 0:
            affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(own, HOSTNAME)]}
        elif number % 4 == 1:
            together["requiredDuringSchedulingIgnoredDuringExecution"] = [_term(own, ZONE)]
        shapes.append(_shape(own, random, {"affinity": affinity}))
    return random.choices(shapes, k=count)


def _term(app: str, key: str) -> Object:
    return {"labelSelector": _selects(app), "topologyKey": key}


def _selects(app: str) -> Object:
    return {"matchLabels": {"app": app}}


SCENARIOS: dict[str, Callable[[Random, int], list[Shape]]] = {
    "interleaved": _interleaved,
    "recurring": _recurring,
    "distinct": _distinct,
    "spread": _spread,
    "affinity": _affinity,
}
"""The shape of each pod of a load, in order of arrival."""
