"""What is known of one workload and of one pod, and the row that follows from it."""

from __future__ import annotations

import msgspec

from bayplan.ledger.rows import GpuWorkload
from bayplan.ledger.status.judge import judge
from bayplan.ledger.status.kinds import GroupKind
from bayplan.ledger.status.verdict import PodCounts, State, Verdict
from bayplan.model.clock import Instant
from bayplan.model.meta import OwnerReference


class PodLink(msgspec.Struct, frozen=True):
    """What of a pod matters to those above it."""

    uid: str
    namespace: str
    owner: OwnerReference | None = None
    """Its controller; an owner that is not its controller is none."""
    gpus: int = 0
    """Thousandths."""
    phase: str = ""

    @property
    def asking(self) -> int:
        """The GPUs that it holds or waits for."""
        return 0 if self.phase in ("Succeeded", "Failed") else self.gpus


class Pod(msgspec.Struct):
    """A pod that exists, or has just gone."""

    link: PodLink
    chain: tuple[str, ...] = ()
    """The workloads above it, nearest first."""
    told: set[str] = msgspec.field(default_factory=set)
    """Those of which a reference was given out."""
    root: str = ""
    gone: bool = False


class Workload(msgspec.Struct, kw_only=True):
    """A workload, seen or only referred to; where not even that is left of it, its kind is empty."""

    uid: str
    api_version: str
    kind: str
    namespace: str
    name: str
    first_at: Instant
    """When it was first heard of: stands for its creation where nobody saw it."""
    created_at: Instant | None = None
    version: int = 0
    labels: str = "{}"
    annotations: str = "{}"
    user: str = "unknown"
    own: Verdict | None = None
    """What its object says of itself."""
    seen: bool = False
    gone: bool = False
    deleting: bool = False
    involved: bool = False
    """GPU pods stand below it, or did, or were refused: it is told of. What is not is kept in case a pod turns up."""
    wanted: GroupKind | None = None
    """The kind that is watched for its sake."""
    end_at: Instant | None = None
    end_inferred: bool = False
    end_after: Instant | None = None
    pods: PodCounts = msgspec.field(default_factory=PodCounts)
    asking: int = 0
    held: int = 0
    """GPUs of the pods below it that have not ended, and of all that exist."""
    at_end: int = 0
    row: GpuWorkload | None = None
    """As given out last."""

    @property
    def group_kind(self) -> GroupKind:
        """Its kind, whatever the version."""
        return GroupKind(self.api_version.rpartition("/")[0], self.kind)

    @property
    def ended(self) -> bool:
        """Whether it has ended, by its own word or by its disappearance."""
        return self.own is not None and self.own.final

    def count(self, pod: PodLink, by: int) -> None:
        """Count a pod below it in (1) or out (-1)."""
        self.pods.count(pod.phase, by)
        self.asking += by * pod.asking
        self.held += by * pod.gpus

    def close(self, at: Instant, *, inferred: bool = False, after: Instant | None = None) -> None:
        """Its object is gone. An end that it came to before that stays what it was."""
        self.gone = True
        if self.ended:
            return
        was = judge(self.group_kind, self.own, self.pods).state.value
        self.own = Verdict(State.DELETED, f"deleted while {was}", True, at)
        self.end_inferred, self.end_after = inferred, after

    def to_row(self, cluster: str, parent: str, at: Instant) -> GpuWorkload:
        """The row, as of now.

        `gpu_request` is the sum over all pods below it, at any depth: those that have not ended while it goes on (what
        it asks for now); from its end, or the request for its deletion, on, all that existed then or are told later:
        their going does not take away from what it asked for.
        """
        verdict = judge(self.group_kind, self.own, self.pods, deleting=self.deleting)
        closing = verdict.final or self.deleting
        self.at_end = max(self.at_end, self.held) if closing else 0
        self.end_at = (verdict.ended_at or self.end_at or at) if verdict.final else None
        return GpuWorkload(
            cluster=cluster,
            uid=self.uid,
            resource_version=self.version,
            group_version=self.api_version,
            kind=self.kind,
            namespace=self.namespace,
            name=self.name,
            parent_uid=parent,
            gpu_request=self.at_end if closing else self.asking,
            status=verdict.state.value,
            status_reason=verdict.reason,
            labels=self.labels,
            annotations=self.annotations,
            user=self.user,
            created_at=self.first_at if self.created_at is None else self.created_at,
            updated_at=at,
            end_at=self.end_at,
            end_inferred=self.end_inferred,
            end_after=self.end_after,
        )
