"""What of a pod matters to the ledger, out of one version of it.

This is the hot path: of a version only the status is decoded. The spec is compared as bytes with the known one, and
what follows from it is taken over where it is the same; so are the GPUs, where nothing that counts has changed.
"""

from __future__ import annotations

import msgspec

from bayplan.cluster.objects import Object
from bayplan.ledger.differ.gpus import GpuVendors, requests
from bayplan.ledger.differ.people import UserRule, user_of
from bayplan.ledger.differ.reading import (
    CUT,
    LARGEST,
    NAME,
    WORD,
    WRONG_TIME,
    Odd,
    anonymous,
    count,
    identity,
    instant,
    section,
    version,
)
from bayplan.model.clock import SECOND, Instant
from bayplan.model.meta import Condition, OwnerReference
from bayplan.model.pods import ContainerStatus, Pod, PodSpec, PodStatus
from bayplan.model.resources import CPU, MEMORY

TERMINAL = frozenset(("Succeeded", "Failed"))
_LONGEST_GRACE = 10 * 365 * 24 * 3600


class SpecFacts(msgspec.Struct, frozen=True, gc=False):
    """What follows from a pod's spec alone."""

    raw: bytes = b""
    node: str = ""
    image: str = ""
    priority: int = 0
    odd: tuple[Odd, ...] = ()


class Asked(msgspec.Struct, frozen=True, gc=False):
    """What a pod asks for."""

    asked: dict[str, int] = {}
    """Thousandths by resource."""
    cpu: int = 0
    """Thousandths; what it asks for beside them."""
    memory: int = 0
    odd: tuple[Odd, ...] = ()


class PodFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One version of a pod. Times are as the object says; None: it does not."""

    uid: str
    namespace: str
    name: str
    resource_version: int
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    containers: tuple[ContainerStatus, ...] = ()
    """All of them: those that initialise, then the main ones."""
    initial: int = 0
    """How many initialise."""
    restarts: int = 0
    """Of all containers together."""
    spec: SpecFacts = SpecFacts()
    counted: Asked = Asked()
    in_force: tuple[object, ...] = ()
    """What beside the spec the GPUs were counted from."""
    claimed: dict[str, int] = {}
    """Thousandths of devices by driver that it has by ResourceClaims: its own object does not say."""
    owner: OwnerReference | None = None
    """Its controller; the same object for as long as it is the same."""
    labels: dict[str, str] = {}
    user: str = ""
    created_at: Instant | None = None
    start_time: str | None = None
    deleting: bool = False
    deletion_asked_at: Instant | None = None
    ip: str = ""
    whole: bool = True
    """False: only a row was left to take it from, so conditions and containers say nothing."""
    odd: tuple[Odd, ...] = ()

    @property
    def gpus(self) -> dict[str, int]:
        """What it asks for, in thousandths by resource."""
        return {**self.counted.asked, **self.claimed} if self.claimed else self.counted.asked

    @property
    def scheduled_at(self) -> str | None:
        """When PodScheduled became true, as written."""
        for each in self.conditions:
            if each.type == "PodScheduled":
                return each.last_transition_time if each.status == "True" else None
        return None

    @property
    def started_at(self) -> Instant | None:
        """The earliest start of a main container that can still be told."""
        first: Instant | None = None
        for status in self.containers[self.initial :]:
            for state in (status.state, status.last_state):
                run = state.running or state.terminated
                at = instant(run.started_at) if run is not None else None
                if at is not None and (first is None or at < first):
                    first = at
        return first

    @property
    def image(self) -> str:
        """Of its first container."""
        return self.spec.image

    @property
    def priority(self) -> int:
        """As its spec says."""
        return self.spec.priority

    @property
    def node(self) -> str:
        """Where it is bound to; empty before."""
        return self.spec.node

    @property
    def terminal(self) -> bool:
        """Whether it has ended."""
        return self.phase in TERMINAL


def pod_facts(obj: Object, vendors: GpuVendors, people: UserRule, known: PodFacts | None = None) -> PodFacts:
    """The facts of a version; `known`, an earlier one of the same pod, only makes it cheaper."""
    odd: list[Odd] = []
    meta = obj.meta
    status = section(obj, "status", PodStatus, odd)
    spec, decoded = _spec(obj, known)
    containers = status.init_container_statuses + status.container_statuses
    in_force = _in_force(status, containers)
    if known is not None and decoded is None and known.in_force == in_force:
        counted = known.counted
    else:
        whole = decoded or section(obj, "spec", PodSpec, [])
        counted = _counted(Pod(metadata=meta, spec=whole, status=status), vendors)
    owner = meta.controller if meta.owner_references else None
    created_at = instant(meta.creation_timestamp)
    if created_at is None or not obj.uid or not obj.version or len(status.phase) > WORD or len(meta.name) > NAME:
        _doubt(obj, status, odd)
    return PodFacts(
        uid=identity(obj) if known is None else known.uid,
        namespace=meta.namespace,
        name=meta.name,
        resource_version=version(obj),
        phase=status.phase,
        reason=status.reason,
        message=status.message,
        conditions=status.conditions,
        containers=containers,
        initial=len(status.init_container_statuses),
        restarts=count(sum([each.restart_count for each in containers])),
        spec=spec,
        counted=counted,
        in_force=in_force,
        owner=known.owner if known is not None and known.owner == owner else owner,
        labels=meta.labels,
        user=user_of(meta, people),
        created_at=created_at,
        start_time=status.start_time,
        deleting=meta.deletion_timestamp is not None,
        deletion_asked_at=_asked(meta.deletion_timestamp, meta.deletion_grace_period_seconds),
        ip=status.pod_ip,
        odd=(*spec.odd, *counted.odd, *odd),
    )


def _counted(pod: Pod, vendors: GpuVendors) -> Asked:
    odd: list[Odd] = []
    found = requests(pod, odd)
    cpu, memory = min(found.get(CPU, 0), LARGEST), min(found.get(MEMORY, 0), LARGEST)
    return Asked(vendors.counted(found), cpu, memory, tuple(odd))


def _doubt(obj: Object, status: PodStatus, odd: list[Odd]) -> None:
    """Say what is wrong with an object's identity."""
    meta = obj.meta
    if instant(meta.creation_timestamp) is None:
        odd.append(Odd(WRONG_TIME, f"creationTimestamp is {meta.creation_timestamp!r:.60}"))
    odd += anonymous(obj)
    for what, text, most in (("phase", status.phase, WORD), ("name", meta.name, NAME)):
        if len(text) > most:
            odd.append(Odd(CUT, f"{what} has {len(text)} characters, {most} are kept"))


def _spec(obj: Object, known: PodFacts | None) -> tuple[SpecFacts, PodSpec | None]:
    """What follows from the spec, and the spec itself where it had to be read."""
    found = obj.sections.get("spec")
    raw = b"" if found is None else found.raw
    if known is not None and known.spec.raw == raw:
        return known.spec, None
    odd: list[Odd] = []
    spec = section(obj, "spec", PodSpec, odd)
    image = spec.containers[0].image if spec.containers else ""
    return SpecFacts(raw, spec.node_name, image, count(spec.priority), tuple(odd)), spec


def _in_force(status: PodStatus, containers: tuple[ContainerStatus, ...]) -> tuple[object, ...]:
    """All of a status that counts when GPUs are counted; see model/resources.py."""
    found: list[object] = []
    for each in containers:
        if each.resources is not None:
            found += (each.name, each.resources, each.allocated_resources)
    if status.resources is not None:
        found += (status.resources, status.allocated_resources)
    if found:
        found += [each.reason for each in status.conditions if each.type == "PodResizePending"]
    return tuple(found)


def _asked(deletion: str | None, grace: int | None) -> Instant | None:
    """When somebody asked for the deletion: the object holds the deadline."""
    at = instant(deletion) if deletion else None
    return None if at is None else Instant(at - min(max(grace or 0, 0), _LONGEST_GRACE) * SECOND)
