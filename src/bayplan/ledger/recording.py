"""What is known of one cluster, and what each change adds to its ledger. Pure: changes and times in, rows out.

Streams of different kinds are told in any order against each other, so whatever needs two of them waits here for the
second: a pod's GPU model for its node, its root for its owners, an eviction's Event for the pod. Of objects nothing is
kept beyond the batch but what `KnownPod`, `KnownNode` and `Owners` hold.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from bayplan.cluster.kinds import EVENT, NODE, POD, Kind
from bayplan.cluster.live.reflector_core import Change, Key, Known
from bayplan.cluster.objects import Object
from bayplan.ledger.differ import disruptions, nodes, pods, quotas
from bayplan.ledger.differ.gpus import VENDORS, GpuVendors
from bayplan.ledger.differ.people import UserRule
from bayplan.ledger.differ.reading import Odd, identity
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.owners import Owners, PodLink
from bayplan.ledger.rows import Disruption, GpuWorkload, Rows, WorkloadSnapshot
from bayplan.ledger.snapshots import pack
from bayplan.ledger.status.kinds import GroupKind
from bayplan.ledger.store.port import Remembered
from bayplan.model.clock import Instant

_MOST_WAITING = 10_000
"""Pods gone lately, and Events of pods that nobody has seen yet: streams are seconds apart, not hours."""
_DOMAINS = tuple({name.split("/")[0] for vendor in VENDORS for name in vendor.resources})


class When(msgspec.Struct, frozen=True):
    """When changes were seen, and whether anybody saw them happen."""

    at: Instant
    unseen_since: Instant | None = None
    """Set where what happened unseen is caught up with: the last instant at which all was known."""
    up_to: int | None = None
    """Of such changes, those up to this version were not seen; None: all."""

    def inferred_after(self, change: Change) -> Instant | None:
        """The last instant at which all was known, if it was before this change."""
        if self.unseen_since is not None and (self.up_to is None or change.object.version <= self.up_to):
            return self.unseen_since
        return Instant(0) if change.synthetic else None


class Recording:
    """The ledger of one cluster in the making."""

    def __init__(
        self,
        cluster: str,
        kept: Remembered = Remembered(),  # noqa: B008 - frozen
        *,
        vendors: GpuVendors | None = None,
        people: UserRule = UserRule(),  # noqa: B008 - frozen
    ) -> None:
        self.cluster = cluster
        self.odd: list[tuple[str, Odd]] = []
        """What was wrong with objects, and which; the shell reports and clears it."""
        self._vendors = vendors or GpuVendors()
        self._people = people
        self.pods = pods.remember(kept, self._vendors, people)
        self.nodes = nodes.remember(kept)
        self.owners = Owners(cluster, people)
        self.owners.remember(kept.workloads, kept.pods)
        self._node_of = {node.row.name: node for node in self.nodes.values()}
        self._nameless: dict[str, set[str]] = {}
        """Pods, by node, whose GPUs have no model yet."""
        for known in self.pods.values():
            self._await_model(known)
        self._told = {row.uid for row in kept.workloads}
        """Workloads that have a row."""
        self._versions: dict[str, Object] = {}
        """The workloads' objects of this batch."""
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._early: OrderedDict[str, list[Disruption]] = OrderedDict()

    def known(self, kind: Kind) -> dict[Key, Known]:
        """What a reflector of a kind must be told, so that it tells of those that are gone by now."""
        if kind is POD:
            return {
                (each.row.namespace, each.row.name): (each.row.uid, str(each.facts.resource_version))
                for each in self.pods.values()
            }
        if kind is NODE:
            return {("", each.row.name): (each.row.uid, str(each.resource_version)) for each in self.nodes.values()}
        return {} if kind is EVENT else self.owners.known(GroupKind(kind.group, kind.name))

    def take(self, kind: Kind, changes: Iterable[Change], when: When, rows: Rows) -> None:
        """Add what changes of one kind bring."""
        one = {POD: self._pod, NODE: self._node, EVENT: self._event}.get(kind, self._workload)
        plain = self._seen(when.at, None)
        for change in changes:
            after = when.inferred_after(change)
            one(change, plain if after is None else self._seen(when.at, after), rows)

    def settle(self, at: Instant, rows: Rows) -> None:
        """Add what follows from the batch for the workloads above, and for pods below them."""
        told = self.owners.flush(at)
        rows.extend(told.rows)
        seen = self._seen(at, None)
        for uid in told.roots:
            self._refresh(uid, seen, rows)
        for row in told.rows.by_type.get(GpuWorkload, ()):
            assert isinstance(row, GpuWorkload)
            self._told.add(row.uid)
        for uid, obj in self._versions.items():
            if uid in self._told:
                self._snapshot(uid, obj, at, rows)
        self._versions = {}
        self.odd += [("", each) for each in told.odd]

    def collect(self, at: Instant) -> None:
        """Forget workloads that have ended; what that changes comes with the next `settle`."""
        self.owners.collect(at)

    # --- a change of each kind

    def _pod(self, change: Change, seen: Seen, rows: Rows) -> None:
        obj = change.object
        uid = identity(obj)
        known = self.pods.get(uid)
        if change.type == "DELETED":
            self._pod_gone(uid, change, seen, rows)
            return
        if not pods.concerns(known, obj, seen):
            return
        now, added = pods.changed(known, obj, seen)
        if now is known:
            return
        rows.extend(added)
        self.pods[uid] = now
        self._await_model(now)
        self._report(obj, now.odd)
        facts = now.facts
        self.owners.pod(PodLink(uid, facts.namespace, facts.owner, now.row.gpu_allocated, facts.phase), seen.at)
        rows.add(*self._early.pop(uid, ()))

    def _pod_gone(self, uid: str, change: Change, seen: Seen, rows: Rows) -> None:
        known = self.pods.pop(uid, None)
        if known is None:
            return
        rows.extend(pods.gone(known, seen, None if change.synthetic else change.object))
        self._nameless.get(known.facts.node, set()).discard(uid)
        self.owners.pod_gone(uid, seen.at)
        self._gone[uid] = None
        if len(self._gone) > _MOST_WAITING:
            self._gone.popitem(last=False)

    def _node(self, change: Change, seen: Seen, rows: Rows) -> None:
        obj = change.object
        uid = identity(obj)
        known = self.nodes.get(uid)
        if change.type == "DELETED":
            if known is not None:
                rows.extend(nodes.gone(known, seen, None if change.synthetic else obj))
                del self.nodes[uid]
                if self._node_of.get(known.row.name) is known:
                    del self._node_of[known.row.name]
            return
        now, added = nodes.changed(known, obj, seen)
        if now is known:
            return
        rows.extend(added)
        self.nodes[uid] = self._node_of[now.row.name] = now
        self._report(obj, now.odd)
        if known is None or known.labels != now.labels:
            for pod in self._nameless.pop(now.row.name, ()):
                self._refresh(pod, seen, rows)

    def _event(self, change: Change, seen: Seen, rows: Rows) -> None:
        if change.type == "DELETED":
            return
        disruption = disruptions.from_event(change.object, seen)
        if disruption is not None:
            uid = disruption.pod_uid
            if uid in self.pods or uid in self._gone:
                rows.add(disruption)
            else:
                self._early.setdefault(uid, []).append(disruption)
                if len(self._early) > _MOST_WAITING:
                    self._early.popitem(last=False)
            return
        wait = quotas.from_event(change.object, seen)
        if wait is not None and any(domain in wait.message for domain in _DOMAINS):
            rows.add(wait)

    def _workload(self, change: Change, seen: Seen, rows: Rows) -> None:
        del rows  # they come with `settle`
        obj = change.object
        if obj.sections:
            self.owners.seen(obj, seen.at)
            self._versions[identity(obj)] = obj
        if change.type == "DELETED":
            after = seen.inferred_after
            self.owners.gone(obj, seen.at, inferred=after is not None, after=after or None)

    # --- inside

    def _seen(self, at: Instant, after: Instant | None) -> Seen:
        return Seen(
            cluster=self.cluster,
            at=at,
            vendors=self._vendors,
            people=self._people,
            model_of=self._model_of,
            root_of=self.owners.root_of,
            inferred_after=after,
        )

    def _model_of(self, node: str, resource: str) -> str:
        known = self._node_of.get(node)
        return known.model_of(resource, self._vendors) if known is not None else ""

    def _await_model(self, known: pods.KnownPod) -> None:
        facts = known.facts
        if facts.node and (known.nameless or any(resource not in known.models for resource in facts.gpus)):
            self._nameless.setdefault(facts.node, set()).add(facts.uid)

    def _refresh(self, uid: str, seen: Seen, rows: Rows) -> None:
        known = self.pods.get(uid)
        if known is None:
            return
        self.pods[uid], added = pods.refreshed(known, seen)
        self._await_model(self.pods[uid])
        rows.extend(added)

    def _snapshot(self, uid: str, obj: Object, at: Instant, rows: Rows) -> None:
        packed = pack(obj)
        if packed.spec_hash:
            rows.add(packed.blob(self.cluster, at))
        rows.add(
            WorkloadSnapshot(
                cluster=self.cluster,
                workload_uid=uid,
                resource_version=obj.version,
                observed_at=at,
                spec_hash=packed.spec_hash,
                state=packed.state,
                dictionary=packed.dictionary,
            )
        )

    def _report(self, obj: Object, odd: tuple[Odd, ...]) -> None:
        if odd:
            where = f"{obj.kind.name} {'/'.join(obj.key)}"
            self.odd += [(where, each) for each in odd]
