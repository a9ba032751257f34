"""What is known of one cluster, and what each change adds to its ledger. Pure: changes and times in, rows out.

Streams of different kinds are told in any order against each other, so whatever needs two of them waits here for the
second: a pod's GPU model for its node, its root for its owners, its claims for their slices, an eviction's Event for
the pod. Of objects nothing is kept beyond the batch but what `KnownPod`, `KnownNode`, `Owners` and `Devices` hold.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from bayplan.cluster.kinds import EVENT, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE, Kind
from bayplan.cluster.live.reflector_core import Change, Key, Known
from bayplan.cluster.objects import Object
from bayplan.ledger.differ import disruptions, nodes, pods, quotas
from bayplan.ledger.differ.devices import Devices
from bayplan.ledger.differ.gpus import GpuVendors
from bayplan.ledger.differ.guests import Guests
from bayplan.ledger.differ.people import UserRule
from bayplan.ledger.differ.reading import Odd, identity
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.owners import Owners, PodLink
from bayplan.ledger.rows import Disruption, GpuPod, GpuWorkload, PodRoomPeriod, Rows, WorkloadSnapshot
from bayplan.ledger.snapshots import lay_out
from bayplan.ledger.status.kinds import GroupKind
from bayplan.ledger.store.port import Remembered
from bayplan.model.clock import SECOND, Instant

_MOST_WAITING = 10_000
"""Pods gone lately, and Events of pods that nobody has seen yet: streams are seconds apart, not hours."""
_LONGEST_WAIT = 60 * SECOND


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


class _Early(msgspec.Struct, frozen=True):
    """What an Event said of a pod that nobody has seen yet."""

    disruption: Disruption
    version: int
    at: Instant


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
        self.met: tuple[GpuWorkload, ...] = ()
        """Workloads that the latest `settle` told of for the first time."""
        self._vendors = vendors or GpuVendors()
        self._people = people
        self.pods = pods.remember(kept, self._vendors, people)
        self.nodes = nodes.remember(kept)
        self.owners = Owners(cluster, people)
        self.owners.remember(kept.workloads, kept.pods)
        told_at = kept.told_at.get(RESOURCE_CLAIM.resource)
        self.devices = Devices(frozenset(row.uid for row in kept.pods), told_at)
        self._node_of = {node.row.name: node for node in self.nodes.values()}
        rooms = (period for period in kept.periods if isinstance(period, PodRoomPeriod))
        self.guests = Guests((each for each in rooms if each.pod_uid not in self.pods), self._has_gpus)
        self._nameless: dict[str, set[str]] = {}
        """Pods, by node, whose GPUs have no model yet."""
        for known in self.pods.values():
            self._await_model(known)
        self._versions: dict[str, tuple[Object, bool]] = {}
        """The workloads' objects of this batch, and whether each is gone with it."""
        self._gone: OrderedDict[str, GpuPod] = OrderedDict()
        """Pods that have gone lately: their Events and owners may come after them."""
        self._early: dict[str, list[_Early]] = {}
        """By pod; oldest first."""
        self._by_kind = {
            POD: self._pod,
            NODE: self._node,
            EVENT: self._event,
            RESOURCE_CLAIM: self._claim,
            RESOURCE_SLICE: self._slice,
        }

    def known(self, kind: Kind) -> dict[Key, Known]:
        """What a reflector of a kind must be told, so that it tells of those that are gone by now."""
        if kind is POD:
            return self.guests.known() | {
                (each.row.namespace, each.row.name): (each.row.uid, str(each.facts.resource_version))
                for each in self.pods.values()
            }
        if kind is NODE:
            return {("", each.row.name): (each.row.uid, str(each.resource_version)) for each in self.nodes.values()}
        return {} if kind in self._by_kind else self.owners.known(GroupKind(kind.group, kind.name))

    def take(self, kind: Kind, changes: Iterable[Change], when: When, rows: Rows) -> None:
        """Add what changes of one kind bring."""
        one = self._by_kind.get(kind, self._workload)
        seen = self._seen(when.at, None)
        for change in changes:
            after = when.inferred_after(change)
            if after != seen.inferred_after:
                seen = self._seen(when.at, after)
            one(change, seen, rows)

    def settle(self, at: Instant, rows: Rows) -> None:
        """Add what follows from the batch for others: pods and nodes with claims, the workloads above, pods below."""
        with_claims, with_slices = self.devices.changed()
        seen = self._seen(at, None)
        for name in with_slices:
            self._refresh_node(name, seen, rows)
        for uid in with_claims:
            self._refresh(uid, seen, rows)
        told = self.owners.flush(at)
        rows.extend(told.rows)
        self.met = told.met
        for uid, root in told.roots.items():
            if uid in self._gone:
                self._gone[uid] = msgspec.structs.replace(self._gone[uid], root_uid=root)
                rows.add(self._gone[uid])
            self._refresh(uid, seen, rows)
        for uid, (obj, gone) in self._versions.items():
            if self.owners.is_told(uid):
                self._snapshot(uid, obj, at, rows, gone=gone)
        self._versions = {}
        self.odd += [("", each) for each in told.odd]

    def is_kept(self, obj: Object) -> bool:
        """Whether an object's last state matters: it is a GPU pod, or the workload at the top of one's chain."""
        return obj.uid in self.pods if obj.kind is POD else self.owners.is_root(obj.uid)

    def collect(self, at: Instant) -> None:
        """Forget workloads that have ended, and Events of pods that are no GPU pods, or they would be known by now.

        What the former changes comes with the next `settle`.
        """
        self.owners.collect(at)
        for uid, waiting in list(self._early.items()):
            if at - waiting[0].at < _LONGEST_WAIT:
                break
            del self._early[uid]

    def told(self, kind: Kind, revision: int) -> int:
        """How far a stream may be said to be told: not past what still waits for another, and is nowhere stored."""
        waiting = [each.version - 1 for early in self._early.values() for each in early] if kind == EVENT else []
        return min([revision, *waiting])

    # --- a change of each kind

    def _pod(self, change: Change, seen: Seen, rows: Rows) -> None:
        obj = change.object
        uid = identity(obj)
        known = self.pods.get(uid)
        if change.type == "DELETED":
            self._pod_gone(uid, change, seen, rows)
            return
        facts = pods.concerning(obj, seen) if known is None else None
        if known is None and facts is None:
            self.guests.changed(obj, seen, rows)
            return
        now = pods.changed(known, obj, seen, rows, facts)
        if now is known:
            return
        if known is None:  # what counts as a GPU may be another now
            self.guests.forget(uid)
        self.pods[uid] = now
        self._report(obj, now.odd)
        if known is None or now.holdings is not known.holdings or now.facts.owner is not known.facts.owner:
            self._await_model(now)
            self._tell_owners(now, seen.at)
        if self._early:
            rows.add(*(each.disruption for each in self._early.pop(uid, ())))

    def _pod_gone(self, uid: str, change: Change, seen: Seen, rows: Rows) -> None:
        known = self.pods.pop(uid, None)
        if known is None:
            self.guests.gone(uid, change.object, seen, rows)
            return
        added = pods.gone(known, seen, None if change.synthetic else change.object)
        rows.extend(added)
        self._nameless.get(known.facts.node, set()).discard(uid)
        self.owners.pod_gone(uid, seen.at)
        self._gone[uid] = [row for row in added.by_type[GpuPod] if isinstance(row, GpuPod)][-1]
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
        self._keep_node(known, now, rows)
        self._report(obj, now.odd)
        if known is None or known.labels != now.labels:
            for pod in self._nameless.pop(now.row.name, ()):
                self._refresh(pod, seen, rows)

    def _claim(self, change: Change, seen: Seen, rows: Rows) -> None:
        del rows  # they come with `settle`
        odd: list[Odd] = []
        self.devices.claim(change.object, seen.at, self._end_of, odd, gone=change.type == "DELETED")
        self._report(change.object, tuple(odd))

    def _slice(self, change: Change, seen: Seen, rows: Rows) -> None:
        del seen, rows  # they come with `settle`
        odd: list[Odd] = []
        self.devices.slice(change.object, odd, gone=change.type == "DELETED")
        self._report(change.object, tuple(odd))

    def _end_of(self, pod: str) -> Instant | None:
        known = self.pods.get(pod)
        if known is None:
            return self._gone[pod].end_at if pod in self._gone else None
        return known.life.end.at if known.life.end is not None else None

    def _event(self, change: Change, seen: Seen, rows: Rows) -> None:
        if change.type == "DELETED":
            return
        disruption = disruptions.from_event(change.object, seen)
        if disruption is not None:
            uid = disruption.pod_uid
            # Of what happened before this run, the pod may have gone before it too: then nobody will tell of it.
            if uid in self.pods or uid in self._gone or seen.inferred_after is not None:
                rows.add(disruption)
            elif len(self._early) < _MOST_WAITING:
                self._early.setdefault(uid, []).append(_Early(disruption, change.object.version, seen.at))
            return
        refusal = quotas.from_event(change.object, seen)
        if refusal is not None and self._vendors.spoken_of(refusal.wait.message):
            rows.add(refusal.wait)
            self.owners.refused(refusal.owner, refusal.namespace, seen.at)

    def _workload(self, change: Change, seen: Seen, rows: Rows) -> None:
        del rows  # they come with `settle`
        obj = change.object
        gone = change.type == "DELETED"
        if not change.synthetic:
            self.owners.seen(obj, seen.at)
        if obj.sections:  # else its metadata alone are followed, or nobody saw it go
            self._versions[identity(obj)] = (obj, gone)
        if gone:
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
            pieces_of=self._pieces_of,
            pools=self.devices.pools,
            claimed=self.devices.claimed,
            root_of=self.owners.root_of,
            inferred_after=after,
        )

    def _model_of(self, node: str, resource: str) -> str:
        known = self._node_of.get(node)
        return known.model_of(resource, self._vendors) if known is not None else ""

    def _pieces_of(self, node: str, resource: str) -> int:
        known = self._node_of.get(node)
        return known.pieces_of(resource, self._vendors) if known is not None else 1

    def _await_model(self, known: pods.KnownPod) -> None:
        facts = known.facts
        if facts.node and (known.nameless or not known.models.keys() >= facts.gpus.keys()):
            self._nameless.setdefault(facts.node, set()).add(facts.uid)

    def _refresh(self, uid: str, seen: Seen, rows: Rows) -> None:
        known = self.pods.get(uid)
        if known is None:
            return
        now, added = pods.refreshed(known, seen)
        self.pods[uid] = now
        self._await_model(now)
        if now.row.gpu_allocated != known.row.gpu_allocated:
            self._tell_owners(now, seen.at)
        rows.extend(added)

    def _refresh_node(self, name: str, seen: Seen, rows: Rows) -> None:
        known = self._node_of.get(name)
        if known is None:
            return
        now, added = nodes.refreshed(known, seen)
        rows.extend(added)
        self._keep_node(known, now, rows)
        for pod in self._nameless.pop(name, ()):
            self._refresh(pod, seen, rows)

    def _keep_node(self, known: nodes.KnownNode | None, now: nodes.KnownNode, rows: Rows) -> None:
        self.nodes[now.row.uid] = self._node_of[now.row.name] = now
        if now.has_gpus and not (known is not None and known.has_gpus):
            self.guests.got_gpus(now.row.name, rows)

    def _has_gpus(self, node: str) -> bool:
        known = self._node_of.get(node)
        return known is not None and known.has_gpus

    def _tell_owners(self, now: pods.KnownPod, at: Instant) -> None:
        facts = now.facts
        self.owners.pod(PodLink(facts.uid, facts.namespace, facts.owner, now.row.gpu_allocated, facts.phase), at)

    def _snapshot(self, uid: str, obj: Object, at: Instant, rows: Rows, *, gone: bool) -> None:
        packed = lay_out(obj)
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
                gone=gone,
            )
        )

    def _report(self, obj: Object, odd: tuple[Odd, ...]) -> None:
        if odd:
            where = f"{obj.kind.name} {'/'.join(obj.key)}"
            self.odd += [(where, each) for each in odd]
