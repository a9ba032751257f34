"""Follows the controllers above GPU pods, and says what became of them.

What is told (a pod, a workload's object, the end of either) is taken in by `pod`, `pod_gone`, `refused`, `seen` and
`gone`, in any order; `flush` gives out what has changed since, once for each batch. A workload is known from the first
reference to it; what its own object adds, and whose it is, may come later, and links all pods below it anew. A uid is
the object: a new one of the same name is another. Every object of a watched kind is kept while it exists, since a pod
may still turn up below it, but only those that GPU pods were seen below, or that were refused such, are told of.

Nodes are no workloads: the owner of a static pod's mirror is where it runs, not whose it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bayplan.cluster.objects import Object
from bayplan.ledger.differ.people import UserRule
from bayplan.ledger.differ.reading import Odd, identity
from bayplan.ledger.owners.chains import Chains
from bayplan.ledger.owners.reading import read
from bayplan.ledger.owners.workload import Pod, PodLink, Workload
from bayplan.ledger.rows import GpuPod, GpuWorkload, Rows, WorkloadPodReference
from bayplan.ledger.status.kinds import LIGHT, RULES, GroupKind
from bayplan.ledger.status.verdict import State, Verdict
from bayplan.model.clock import SECOND, Instant
from bayplan.model.meta import OwnerReference

CYCLE = "BP-D025"
UNREADABLE = "BP-D026"
GRACE = 300 * SECOND
"""How long an ended workload without pods is still known: streams of different kinds are seconds apart, and a pod may
be told after its owner's end."""
_STATES = {state.value: state for state in State}


class Watch(msgspec.Struct, frozen=True):
    """A kind that must be followed."""

    api_version: str
    kind: str
    whole: bool
    """Whole objects; else their metadata suffice."""


class Told(msgspec.Struct, frozen=True):
    """What has changed since the last time."""

    rows: Rows
    """GpuWorkload and WorkloadPodReference."""
    roots: Mapping[str, str]
    """The workload at the top, by the uid of each pod for which it is another now."""
    odd: tuple[Odd, ...] = ()
    """Cycles and objects that cannot be read, each once."""
    met: tuple[GpuWorkload, ...] = ()
    """Of the rows, those of workloads of which there was none."""


class Owners:
    """The workloads above the GPU pods of one cluster."""

    def __init__(self, cluster: str, people: UserRule = UserRule()) -> None:  # noqa: B008 - frozen
        self._cluster = cluster
        self._people = people
        self._chains = Chains()
        self._workloads: dict[str, Workload] = {}
        self._pods: dict[str, Pod] = {}
        self._hints: dict[str, str] = {}
        """The stored root of pods whose chain is known no further than to this uid."""
        self._wanted: dict[GroupKind, dict[str, bool]] = {}
        """The workloads for whose sake a kind is watched; whether each stands at the top."""
        self._idle: dict[str, Instant] = {}
        """Since when nothing more is expected of a workload; oldest first."""
        self._leaving: dict[str, Instant] = {}
        """Pods that are gone, and since when; oldest first."""
        self._changed: dict[str, None] = {}
        self._moved: dict[str, None] = {}
        self._odd: list[Odd] = []
        self._met: list[GpuWorkload] = []
        self._reported: set[object] = set()

    def remember(self, workloads: Iterable[GpuWorkload], pods: Iterable[GpuPod]) -> None:
        """Begin with what is stored: workloads that have not ended or that stand above these pods, pods that exist.

        Nothing of it is given out again unless it changes.
        """
        for row in workloads:
            self._workloads[row.uid] = _remembered(row)
            self._changed[row.uid] = None
        for workload in list(self._workloads.values()):
            assert workload.row is not None
            self._chains.link(workload.uid, self._recalled(workload.row.parent_uid, workload.first_at))
        for pod in pods:
            self._remember_pod(pod)

    def _recalled(self, uid: str, at: Instant) -> str:
        """A uid that others refer to; of one that was not remembered (it has ended) that is all that is known."""
        if uid and uid not in self._workloads:
            self._workloads[uid] = Workload(uid=uid, api_version="", kind="", namespace="", name="", first_at=at)
        return uid

    def _remember_pod(self, row: GpuPod) -> None:
        pod = self._pods[row.uid] = Pod(PodLink(row.uid, row.namespace, None, row.gpu_allocated, row.phase))
        pod.root = row.root_uid
        self._chains.link(row.uid, self._recalled(row.owner_uid if row.root_uid else "", row.created_at))
        self._place(pod)
        pod.told.update(pod.chain)
        if pod.chain and not self._workloads[pod.chain[-1]].kind:
            self._hints[pod.chain[-1]] = row.root_uid

    # --- what is told

    def pod(self, link: PodLink, at: Instant) -> None:
        """A GPU pod, as it is now."""
        pod = self._pods.get(link.uid)
        if pod is not None and pod.gone:
            return  # a uid does not come back
        fresh = pod is None
        if pod is None:
            pod = self._pods[link.uid] = Pod(link)
        elif pod.link == link:
            return
        self._tally(pod, -1)
        pod.link = link
        self._tally(pod, 1)
        if self._chains.link(link.uid, self._refer(link.owner, link.namespace, at)) or fresh:
            self._relink(link.uid)

    def pod_gone(self, uid: str, at: Instant) -> None:
        """A pod's object is gone. Until the top of its chain is known it is kept, for those who come later."""
        pod = self._pods.get(uid)
        if pod is None or pod.gone:
            return
        self._tally(pod, -1)
        pod.gone = True
        top = self._workloads[pod.chain[-1]] if pod.chain else None
        if top is None or (top.seen and uid not in self._moved):
            self._drop_pod(uid)
        else:
            self._leaving[uid] = at

    def refused(self, owner: OwnerReference, namespace: str, at: Instant) -> None:
        """A controller was kept from making a GPU pod: it matters, though perhaps no pod ever stands below it."""
        self._involve(self._refer(owner, namespace, at))

    def _involve(self, uid: str) -> None:
        for each in (uid, *self._chains.above(uid)[0]) if uid else ():
            self._workloads[each].involved = True
            self._changed[each] = None

    def _drop_pod(self, uid: str) -> None:
        del self._pods[uid]
        if uid not in self._workloads and (parent := self._chains.drop(uid)):
            self._changed[parent] = None

    def seen(self, obj: Object, at: Instant) -> None:
        """A workload's object was added or modified. An older version than the known one changes nothing."""
        uid = identity(obj)
        workload = self._workloads[self._recalled(uid, at)]
        if obj.version < workload.version or (workload.gone and obj.version == workload.version):
            return
        for fault in read(workload, obj, self._people):
            self._report((UNREADABLE, uid), UNREADABLE, f"{workload.kind} {'/'.join(obj.key)}: {fault}")
        workload.seen, workload.gone, workload.end_inferred, workload.end_after = True, False, False, None
        parent = self._refer(obj.meta.controller, workload.namespace, at)
        hinted = self._hints.pop(uid, None) is not None
        if self._chains.link(uid, parent) or hinted:
            self._relink(uid)
        if workload.involved:
            self._involve(parent)
        self._changed[uid] = None

    def gone(self, obj: Object, at: Instant, *, inferred: bool = False, after: Instant | None = None) -> None:
        """A workload's object was deleted. Inferred: nobody saw it, and it happened later than `after`."""
        if not inferred:
            self.seen(obj, at)
        workload = self._workloads.get(identity(obj))
        if workload is None or workload.gone:
            return
        if inferred and workload.seen and obj.key != (workload.namespace, workload.name):
            return  # a reference had it in its pod's namespace; it has none, and was met without
        workload.close(at, inferred=inferred, after=workload.first_at if inferred and after is None else after)
        self._changed[workload.uid] = None

    # --- what follows

    def flush(self, at: Instant) -> Told:
        """What has changed since the last call."""
        rows, roots = Rows(), {}
        for uid in self._moved:
            if (pod := self._pods.get(uid)) is not None and (root := self._told_of(pod, rows, at)) != pod.root:
                pod.root = roots[uid] = root
        for uid in self._changed:
            if (workload := self._workloads.get(uid)) is not None:
                self._settle(workload, rows, at)
        told = Told(rows, roots, tuple(self._odd), tuple(self._met))
        self._moved, self._changed, self._odd, self._met = {}, {}, [], []
        return told

    def root_of(self, owner: str) -> str:
        """The top of the chain that begins with this controller, as far as it is known; '' where it is no workload."""
        if owner not in self._workloads:
            return self._hints.get(owner, "")
        above = self._chains.above(owner)[0]
        last = above[-1] if above else owner
        return self._hints.get(last, last)

    def is_told(self, uid: str) -> bool:
        """Whether it is a workload that has a row."""
        workload = self._workloads.get(uid)
        return workload is not None and workload.row is not None

    def is_root(self, uid: str) -> bool:
        """Whether it is a workload that was seen, stands above GPU pods and below nobody."""
        workload = self._workloads.get(uid)
        return workload is not None and workload.involved and workload.seen and not self._chains.parent(uid)

    def kinds(self) -> dict[GroupKind, Watch]:
        """The kinds that must be followed now (as of the last flush): one watch each, however many workloads.

        Whole objects of kinds with rules and of kinds at the top of a chain; of the others only metadata.
        """
        return {kind: self._watch(kind, wanted) for kind, wanted in self._wanted.items()}

    def _watch(self, kind: GroupKind, wanted: dict[str, bool]) -> Watch:
        first = self._workloads[next(iter(wanted))]
        whole = (kind in RULES and kind not in LIGHT) or any(wanted.values())
        return Watch(first.api_version, first.kind, whole)

    def known(self, kind: GroupKind) -> dict[tuple[str, str], tuple[str, str]]:
        """What a reflector of a kind must be told at its start, so that it tells of those that are gone by then.

        They have no revision: each that it meets is told again. Of two of one name the one that was seen is told: it is
        the elder, and must be ended.
        """
        open_ones = [each for each in self._workloads.values() if each.group_kind == kind and not each.gone]
        open_ones.sort(key=lambda each: each.seen)
        return {(each.namespace, each.name): (each.uid, "") for each in open_ones}

    def collect(self, at: Instant) -> None:
        """Forget what has ended and has no pods left. What nobody ever saw ends with its last pod: flush tells."""
        for uid, since in list(self._leaving.items()):
            if at - since >= GRACE and uid not in self._moved:
                del self._leaving[uid]
                self._drop_pod(uid)
        for uid, since in list(self._idle.items()):
            if at - since < GRACE:
                break
            workload = self._workloads[uid]
            if uid in (cycle := self._chains.above(uid)[1]):  # else each keeps the next one
                self._chains.link(uid, "")
                self._reported.discard(frozenset(cycle))
            if workload.involved and not workload.ended:
                workload.close(at, inferred=True, after=since)
                self._changed[uid] = None
            elif workload.seen and not workload.gone:
                workload.involved = False
                del self._idle[uid]
                self._want(workload)
            elif not self._chains.has_below(uid):
                self._drop(workload)

    def forget(self, kind: GroupKind) -> None:
        """A kind is no longer followed: nobody would tell of the ends of its objects."""
        for workload in [each for each in self._workloads.values() if each.group_kind == kind and not each.involved]:
            workload.seen = False
            self._changed[workload.uid] = None
            if not self._chains.has_below(workload.uid):
                self._drop(workload)

    def __len__(self) -> int:
        """How many workloads and pods are known."""
        return len(self._workloads) + len(self._pods)

    # --- inside

    def _refer(self, reference: OwnerReference | None, namespace: str, at: Instant) -> str:
        """The uid of a controller, which is known from now on; '' where there is none."""
        if reference is None or not reference.uid or (reference.kind, reference.api_version) == ("Node", "v1"):
            return ""
        self._recalled(reference.uid, at)
        workload = self._workloads[reference.uid]
        if not workload.kind:
            workload.api_version, workload.kind = reference.api_version, reference.kind
            workload.namespace, workload.name = namespace, reference.name
            self._changed[reference.uid] = None
        return reference.uid

    def _relink(self, uid: str) -> None:
        """What is above this one has changed, and so for every pod below it."""
        for each in self._chains.below(uid):
            if (pod := self._pods.get(each)) is not None:
                self._tally(pod, -1)
                self._place(pod)

    def _place(self, pod: Pod) -> None:
        pod.chain, cycle = self._chains.above(pod.link.uid)
        self._tally(pod, 1)
        self._moved[pod.link.uid] = None
        if cycle:
            self._report(frozenset(cycle), CYCLE, f"controllers in a circle: {' -> '.join((*cycle, cycle[0]))}")

    def _tally(self, pod: Pod, by: int) -> None:
        for uid in pod.chain:
            workload = self._workloads[uid]
            workload.involved = True
            if not pod.gone:
                workload.count(pod.link, by)
            self._changed[uid] = None

    def _report(self, once: object, code: str, what: str) -> None:
        if once not in self._reported:
            self._reported.add(once)
            self._odd.append(Odd(code, what))

    def _told_of(self, pod: Pod, rows: Rows, at: Instant) -> str:
        """Give out references to workloads that are new to a pod; its root."""
        for depth, uid in enumerate(pod.chain, 1):
            if uid not in pod.told:
                pod.told.add(uid)
                reference: dict[str, Any] = {"workload_uid": uid, "pod_uid": pod.link.uid, "depth": depth}
                rows.add(WorkloadPodReference(cluster=self._cluster, created_at=at, **reference))
        return self.root_of(pod.chain[0]) if pod.chain else ""

    def _settle(self, workload: Workload, rows: Rows, at: Instant) -> None:
        """Give out a workload's row if it is another than before, and see what is still expected of it."""
        uid = workload.uid
        if workload.involved and workload.kind:
            row = workload.to_row(self._cluster, self._chains.parent(uid), at)
            old = workload.row
            if old is None or msgspec.structs.replace(row, updated_at=old.updated_at) != old:
                workload.row = row
                rows.add(row)
                if old is None:
                    self._met.append(row)
        self._want(workload)
        if len(workload.pods) == 0 and (workload.ended or not workload.seen):
            self._idle.setdefault(uid, at)
        else:
            self._idle.pop(uid, None)

    def _want(self, workload: Workload) -> None:
        """Note whether its kind is watched for its sake."""
        kind, uid = workload.group_kind, workload.uid
        wants = workload.involved and not workload.gone and workload.kind != ""
        if workload.wanted is not None and (workload.wanted != kind or not wants):  # a reference may name a wrong kind
            wanted = self._wanted[workload.wanted]
            del wanted[uid]
            if not wanted:
                del self._wanted[workload.wanted]
        if wants:
            self._wanted.setdefault(kind, {})[uid] = workload.seen and not self._chains.parent(uid)
        workload.wanted = kind if wants else None

    def _drop(self, workload: Workload) -> None:
        uid = workload.uid
        workload.involved = False
        self._want(workload)
        self._idle.pop(uid, None)
        self._changed.pop(uid, None)
        self._hints.pop(uid, None)
        self._reported.discard((UNREADABLE, uid))
        del self._workloads[uid]
        if uid not in self._pods and (parent := self._chains.drop(uid)):
            self._changed[parent] = None


def _remembered(row: GpuWorkload) -> Workload:
    kind = GroupKind(row.group_version.rpartition("/")[0], row.kind)
    state = _STATES.get(row.status)
    says = state is not None and (row.end_at is not None or (kind in RULES and kind not in LIGHT))
    return Workload(
        uid=row.uid,
        api_version=row.group_version,
        kind=row.kind,
        namespace=row.namespace,
        name=row.name,
        first_at=row.created_at,
        created_at=row.created_at,
        version=row.resource_version,
        labels=row.labels,
        annotations=row.annotations,
        user=row.user,
        own=Verdict(state, row.status_reason, row.end_at is not None, row.end_at) if says and state else None,
        seen=row.resource_version > 0,
        gone=state is State.DELETED,
        deleting=state is State.TERMINATING,
        involved=True,
        end_at=row.end_at,
        end_inferred=row.end_inferred,
        end_after=row.end_after,
        at_end=row.gpu_request,
        row=row,
    )
