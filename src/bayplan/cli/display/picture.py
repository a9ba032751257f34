"""What is to be seen of a cluster at one instant, as values; how it looks is up to `screen` and `lines`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from bayplan.cli.display.pod_words import status_word, why_waiting
from bayplan.cli.display.slots import Slots
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant, parse_rfc3339
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.policies import Event
from bayplan.model.resources import CPU, MEMORY, Amounts, amounts, pod_requests
from bayplan.simulate.gpus import asked_text, model_of, slots_each, slots_of

ZONE = "topology.kubernetes.io/zone"

# What people want to hear of; the steps of a pod's ordinary life are in the picture itself.
_NOTABLE = frozenset(("Completed", "Killing", "ScalingReplicaSet", "TaintManagerEviction", "NodeReady", "Preempted"))
_SAID_ELSEWHERE = frozenset((("Pod", "FailedScheduling"), ("Pod", "NodeNotReady")))
"""The queue says why a pod is not placed; a node that is lost is one piece of news, not one for each of its pods."""


class Cell(msgspec.Struct, frozen=True):
    """One GPU: who holds it, and for a shared one how many of its shares are taken."""

    team: str = ""
    taken: int = 0
    of: int = 1


class NodeRow(msgspec.Struct, frozen=True):
    """One node."""

    name: str
    zone: str
    model: str
    cells: tuple[Cell, ...]
    cpu: float
    memory: float
    pods: int
    state: str

    @property
    def is_ready(self) -> bool:
        """Whether its kubelet is heard."""
        return self.state.startswith("Ready")


class Waiting(msgspec.Struct, frozen=True):
    """A pod that does not run yet."""

    pod: str
    asks: str
    since: Instant
    why: str
    placed: bool
    """Whether it has its node already."""


class Happening(msgspec.Struct, frozen=True):
    """Something worth telling."""

    at: Instant
    warning: bool
    reason: str
    about: str
    message: str
    count: int


class Picture(msgspec.Struct, frozen=True):
    """A cluster at one instant."""

    at: Instant
    nodes: tuple[NodeRow, ...]
    teams: dict[str, float]
    """GPUs held, by namespace."""
    words: dict[str, int]
    """Pods by what they are up to, the commonest first."""
    phases: dict[str, int]
    waiting: tuple[Waiting, ...]
    happenings: tuple[Happening, ...]
    """The newest last."""
    scenario: str = ""
    last: tuple[Instant, str] | None = None
    """The scenario's latest event."""
    coming: tuple[tuple[Instant | None, str], ...] = ()
    """What the scenario has in store."""

    @property
    def gpus(self) -> int:
        """How many there are."""
        return sum(len(node.cells) for node in self.nodes)

    @property
    def held(self) -> float:
        """How many of them are held; a share counts as one."""
        return sum(self.teams.values())


def picture(
    nodes: Iterable[Object],
    pods: Iterable[Object],
    events: Iterable[Object],
    now: Instant,
    slots: Slots,
    why: Callable[[Pod], str] = why_waiting,
) -> Picture:
    """Look at everything once. `why` is asked of the pods that wait, the oldest first."""
    seen = [item.view(Pod) for item in pods]
    on_node: dict[str, list[Pod]] = {}
    for pod in seen:
        if pod.spec.node_name and not pod.is_terminal:
            on_node.setdefault(pod.spec.node_name, []).append(pod)
    rows = tuple(_row(item.view(Node), on_node.get(item.name, []), slots) for item in nodes)
    teams: dict[str, float] = {}
    for row in rows:
        for cell in row.cells:
            if cell.team:
                teams[cell.team] = teams.get(cell.team, 0.0) + cell.taken / cell.of
    pending = sorted((pod for pod in seen if pod.status.phase == "Pending"), key=_since)
    return Picture(
        at=now,
        nodes=rows,
        teams={**dict.fromkeys(sorted({pod.metadata.namespace for pod in seen}), 0.0), **teams},
        words=dict(sorted(Counter(map(status_word, seen)).items(), key=lambda each: (-each[1], each[0]))),
        phases=dict(Counter(pod.status.phase for pod in seen)),
        waiting=tuple(_waiting(pod, why(pod)) for pod in pending),
        happenings=tuple(happenings(events)),
    )


def _row(node: Node, pods: Sequence[Pod], slots: Slots) -> NodeRow:
    offered = amounts(node.status.allocatable)
    asked: Amounts = {}
    holders: dict[str, int] = {}
    for pod in pods:
        requests = pod_requests(pod)
        for resource, amount in requests.items():
            asked[resource] = asked.get(resource, 0) + amount
        if taken := slots_of(requests, node):
            holders[pod.metadata.uid] = taken
    shares = slots_each(node)
    drawn = slots.place(node.metadata.name, slots_of(offered, node) // shares * shares, holders)
    team_of = {pod.metadata.uid: pod.metadata.namespace for pod in pods}
    return NodeRow(
        name=node.metadata.name,
        zone=node.metadata.labels.get(ZONE, ""),
        model=model_of(node),
        cells=tuple(_cell(drawn[at : at + shares], team_of) for at in range(0, len(drawn), shares)),
        cpu=_part(asked, offered, CPU),
        memory=_part(asked, offered, MEMORY),
        pods=len(pods),
        state=_state(node),
    )


def _cell(slots: Sequence[str | None], team_of: dict[str, str]) -> Cell:
    teams = Counter(team_of[uid] for uid in slots if uid is not None)
    team = teams.most_common(1)[0][0] if teams else ""
    return Cell(team, teams.total(), len(slots))


def _part(asked: Amounts, offered: Amounts, resource: str) -> float:
    return asked.get(resource, 0) / offered[resource] if offered.get(resource) else 0.0


def _state(node: Node) -> str:
    ready = condition(node.status.conditions, "Ready")
    word = "Ready" if ready is not None and ready.status == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if node.spec.unschedulable else word


def _since(pod: Pod) -> Instant:
    return parse_rfc3339(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else Instant(0)


def _waiting(pod: Pod, why: str) -> Waiting:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    return Waiting(name, asked_text(pod_requests(pod)), _since(pod), why, bool(pod.spec.node_name))


def happenings(events: Iterable[Object]) -> list[Happening]:
    """The Events worth telling, in order; of those about one object for one reason the last."""
    told: dict[tuple[str, str], Happening] = {}
    for item in events:
        event = item.view(Event)
        about = event.involved_object
        worth = event.type == "Warning" or event.reason in _NOTABLE or about.kind == "Node"
        if not worth or (about.kind, event.reason) in _SAID_ELSEWHERE:
            continue
        where = f"{about.namespace}/{about.name}" if about.namespace else about.name
        told.pop((about.uid, event.reason), None)
        told[about.uid, event.reason] = Happening(
            at=parse_rfc3339(event.last_timestamp) if event.last_timestamp else Instant(0),
            warning=event.type == "Warning",
            reason=event.reason,
            about=where if about.kind == "Pod" else f"{about.kind.lower()} {where}",
            message=event.message,
            count=event.count,
        )
    return [*told.values()]
