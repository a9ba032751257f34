"""What a version of a GPU pod adds to the ledger, given what is known of the pod. Pure.

    changed     a version was seen: state, snapshot, events, periods; one that is not newer adds nothing at all
    gone        the pod disappeared: whatever is open ends
    refreshed   its node or its owners became known later than itself
    remember    what is known, from what a store has kept: going on from it is as if there had been no interruption

Rows of a state carry the version they follow from. `refreshed` and an inferred end bring no version of their own, so a
store must let an equal one through.
"""

from __future__ import annotations

import msgspec

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from bayplan.ledger.differ import transitions
from bayplan.ledger.differ.disruptions import from_conditions
from bayplan.ledger.differ.facts import PodFacts, SpecFacts, pod_facts
from bayplan.ledger.differ.gpus import GpuVendors
from bayplan.ledger.differ.life import End, Life, live_on, seen_end
from bayplan.ledger.differ.people import UserRule
from bayplan.ledger.differ.periods import Holdings, Step, end_all, moved_on
from bayplan.ledger.differ.reading import Odd, section, version
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.rows import (
    GpuPeriod,
    GpuPod,
    PendingPeriod,
    Period,
    PodResource,
    PodRoomPeriod,
    PodSnapshot,
    Rows,
    RunningPeriod,
)
from bayplan.ledger.snapshots import lay_out
from bayplan.ledger.store.port import Remembered
from bayplan.model.clock import Instant
from bayplan.model.pods import PodSpec

_CLAIMS = b'"resourceClaims"'
_ENCODE = msgspec.json.Encoder(order="deterministic").encode


class KnownPod(msgspec.Struct, frozen=True, gc=False):
    """All that the ledger must know of a pod to understand its next version."""

    facts: PodFacts
    life: Life
    row: GpuPod
    holdings: Holdings = Holdings()
    models: dict[str, str] = {}
    """By resource, once its node has told."""
    nameless: tuple[GpuPeriod, ...] = ()
    """Periods that were over before its node told the model."""
    spec_hash: bytes = b""
    odd: tuple[Odd, ...] = ()
    """What the latest version has wrong that the one before had not: to be reported now, and not again."""


def concerning(obj: Object, seen: Seen) -> PodFacts | None:
    """The facts of a pod that nobody knows yet, if it is the ledger's business: it asks for GPUs.

    One that refers to claims is, from its first version on: what of is told later, and then the first version is gone.
    """
    spec = obj.sections.get("spec")
    if spec is None:
        return None
    claims = _CLAIMS in spec.raw and bool(section(obj, "spec", PodSpec, []).resource_claims)
    if not claims and not seen.vendors.asked_for(obj):
        return None
    facts = pod_facts(obj, seen.vendors, seen.people)
    return facts if claims or facts.gpus else None


def changed(known: KnownPod | None, obj: Object, seen: Seen, rows: Rows, facts: PodFacts | None = None) -> KnownPod:
    """What is known after a version; what it adds goes to `rows`. `facts` are its own, where they are there already."""
    if known is not None and version(obj) <= known.facts.resource_version:
        return known
    return _followed(known, obj, seen, rows, facts)


def _followed(
    known: KnownPod | None, obj: Object, seen: Seen, rows: Rows, facts: PodFacts | None = None, *, last: bool = False
) -> KnownPod:
    was, lived = (known.facts, known.life) if known else (None, None)
    facts = _claiming(facts or pod_facts(obj, seen.vendors, seen.people, was), was, seen)
    life = live_on(lived, was, facts, seen)
    models = _models(known.models if known else {}, facts, seen)
    holdings, nameless = (known.holdings, known.nameless) if known else (Holdings(), ())
    if known is None or life is not lived or not _holds_on(known, facts, models):
        step = Step(facts, life, seen, lived, models, _late(was, facts, seen))
        periods = rows.count(GpuPeriod)
        holdings = moved_on(holdings, step, rows)
        nameless += _nameless(rows, periods)
    row = _row(facts, life, seen, known)
    rows.add(row, *transitions.transitions(was, lived, facts, life, seen))
    rows.add(*from_conditions(was, facts, seen))
    odd = facts.odd if was is None or not facts.odd else tuple(each for each in facts.odd if each not in was.odd)
    hash_ = _snapshot(known, obj, facts, seen, rows, last=last)
    now = KnownPod(facts, life, row, holdings, models, nameless, hash_, odd)
    _resources(known, now, seen, rows)
    return now


def _holds_on(known: KnownPod, facts: PodFacts, models: dict[str, str]) -> bool:
    """Whether a pod whose life went on as it was has what it had."""
    was = known.facts
    same = was.counted is facts.counted and was.claimed == facts.claimed and models is known.models
    return same and was.phase == facts.phase and was.node == facts.node


def gone(known: KnownPod, seen: Seen, final: Object | None = None) -> Rows:
    """What a pod's disappearance adds. `final` is its last version, where the watch told it."""
    rows = Rows()
    now = known
    if final is not None and final.sections and version(final) > known.facts.resource_version:
        now = _followed(known, final, seen, rows, last=True)
    end = now.life.end or seen_end(seen)
    if end.after is not None:
        end = End(end.at, _evidence(now, end.after, end.at))
    resource_version = max(now.facts.resource_version, version(final) if final is not None else 0)
    facts = msgspec.structs.replace(now.facts, resource_version=resource_version)
    end_all(now.holdings, end, resource_version, rows)
    row = msgspec.structs.replace(
        now.row,
        resource_version=resource_version,
        updated_at=seen.at,
        running=False,
        deleted=True,
        end_at=end.at,
        end_inferred=end.after is not None,
        end_after=end.after,
        gone_at=seen.at,
    )
    rows.add(row, transitions.gone(facts, seen))
    life = msgspec.structs.replace(now.life, end=end)
    _resources(now, KnownPod(facts, life, row, models=now.models), seen, rows)
    return rows


def _evidence(known: KnownPod, after: Instant, at: Instant) -> Instant:
    """The latest instant at which the pod was there for certain: it speaks of some itself."""
    said = [known.life.created_at, known.life.bound_at, known.life.started_at, known.facts.deletion_asked_at]
    return min(max(after, *[each for each in said if each is not None]), at)


def refreshed(known: KnownPod, seen: Seen) -> tuple[KnownPod, Rows]:
    """What its node (the model), its owners (the root) or its claims add that came to be known after the pod itself."""
    rows = Rows()
    facts = _claiming(known.facts, known.facts, seen)
    models = _models(known.models, facts, seen)
    owner = known.row.owner_uid
    root = (owner and seen.root_of(owner)) or known.row.root_uid
    if facts is known.facts and models == known.models and root == known.row.root_uid:
        return known, rows
    step = Step(facts, known.life, seen, known.life, models, _late(known.facts, facts, seen))
    holdings = moved_on(known.holdings, step, rows)
    late = [each for each in known.nameless if each.resource in models]
    rows.add(*[msgspec.structs.replace(each, gpu_model=models[each.resource]) for each in late])
    nameless = tuple(each for each in known.nameless if each not in late)
    row = msgspec.structs.replace(known.row, root_uid=root, gpu_allocated=sum(facts.gpus.values()))
    if row != known.row:
        rows.add(row)
    now = KnownPod(facts, known.life, row, holdings, models, nameless, known.spec_hash)
    _resources(known, now, seen, rows)
    return now, rows


# --- rows


def _row(facts: PodFacts, life: Life, seen: Seen, known: KnownPod | None) -> GpuPod:
    was = known.row if known else None
    same_labels = known is not None and known.facts.labels == facts.labels
    owner = facts.owner.uid if facts.owner else ""
    end = life.end
    return GpuPod(
        cluster=seen.cluster,
        uid=facts.uid,
        resource_version=facts.resource_version,
        namespace=facts.namespace,
        name=facts.name,
        node_name=facts.node,
        gpu_allocated=sum(facts.gpus.values()),
        phase=facts.phase,
        reason=facts.reason,
        running=facts.phase == "Running",
        deleted=facts.deleting,
        owner_uid=owner,
        root_uid=_root(owner, was, seen),
        user=facts.user,
        labels=was.labels if was and same_labels else _ENCODE(facts.labels).decode(),
        ip=facts.ip,
        container_image=facts.spec.image,
        priority=facts.spec.priority,
        restarts=facts.restarts,
        created_at=life.created_at,
        updated_at=seen.at,
        bound_at=life.bound_at,
        started_at=life.started_at,
        end_at=end.at if end else None,
        end_inferred=end is not None and end.after is not None,
        end_after=end.after if end else None,
    )


def _root(owner: str, was: GpuPod | None, seen: Seen) -> str:
    """The top of its chain. One that is known is another only when its owners tell (`refreshed`)."""
    if was is not None and was.root_uid and was.owner_uid == owner:
        return was.root_uid
    return (seen.root_of(owner) if owner else "") or (was.root_uid if was else "")


def _claiming(facts: PodFacts, was: PodFacts | None, seen: Seen) -> PodFacts:
    """With what others say of its GPUs: its claims, and its node, whose devices may be cut into pieces.

    A claim that is given back is given back because the pod has ended, so nothing that was known is taken back.
    """
    told = seen.claimed(facts.uid)
    same = was is not None and was is not facts and was.counted is facts.counted and was.node == facts.node
    if told is None and was is not None and same:
        return msgspec.structs.replace(facts, claimed=was.claimed) if was.claimed else facts
    claimed = {**(was.claimed if was else {}), **(told.devices if told else {})}
    for resource, asked in facts.counted.asked.items() if facts.node else ():
        pieces = seen.pieces_of(facts.node, resource)
        if pieces > 1:
            claimed[resource] = asked // pieces
    return facts if claimed == facts.claimed else msgspec.structs.replace(facts, claimed=claimed)


def _late(was: PodFacts | None, facts: PodFacts, seen: Seen) -> frozenset[str]:
    """The resources of which others tell another number than was known, although the pod asks for what it did.

    An allocation is made before the pod is bound, and never changed, so it is the right number from the beginning on;
    except where a claim that pods share has passed to this one.
    """
    if was is None or facts.claimed == was.claimed:
        return frozenset()
    told = seen.claimed(facts.uid)
    passed = told is not None and told.since is not None
    asks, asked = facts.counted.asked, was.counted.asked
    return frozenset(
        name
        for name, amount in facts.claimed.items()
        if was.claimed.get(name) != amount and (asks[name] == asked.get(name) if name in asks else not passed)
    )


def _nameless(rows: Rows, first: int) -> tuple[GpuPeriod, ...]:
    """Of the periods from a position on, those that are over and have no model."""
    periods = rows.by_type.get(GpuPeriod, ())[first:]
    return tuple([p for p in periods if isinstance(p, GpuPeriod) and p.end_at is not None and not p.gpu_model])


def _models(known: dict[str, str], facts: PodFacts, seen: Seen) -> dict[str, str]:
    if not facts.node or known.keys() == facts.gpus.keys():
        return known
    asked = [resource for resource in facts.gpus if resource not in known]
    told = {resource: model for resource in asked if (model := seen.model_of(facts.node, resource))}
    return {**known, **told} if told else known


def _resources(was: KnownPod | None, now: KnownPod, seen: Seen, rows: Rows) -> None:
    """A row for each resource of which something is new."""
    ended = was is not None and was.life.end != now.life.end
    if was is not None and not ended and was.facts.gpus is now.facts.gpus and was.models is now.models:
        return
    asked, before = now.facts.gpus, was.facts.gpus if was else {}
    for resource in {**before, **asked}:
        gpus, model = asked.get(resource, 0), now.models.get(resource, "")
        if was and not ended and (before.get(resource, 0), was.models.get(resource, "")) == (gpus, model):
            continue
        rows.add(
            PodResource(
                cluster=seen.cluster,
                uid=now.facts.uid,
                resource=resource,
                resource_version=now.facts.resource_version,
                gpu_model=model,
                gpu_allocated=gpus,
                created_at=now.life.created_at,
                end_at=now.life.end.at if now.life.end else None,
            )
        )


def _snapshot(known: KnownPod | None, obj: Object, facts: PodFacts, seen: Seen, rows: Rows, *, last: bool) -> bytes:
    known_hash = known.spec_hash if known else b""
    packed = lay_out(obj, known_hash if known and known.facts.spec is facts.spec else b"")
    if packed.spec_hash and packed.spec_hash != known_hash:
        rows.add(packed.blob(seen.cluster, seen.at))
    rows.add(
        PodSnapshot(
            cluster=seen.cluster,
            pod_uid=facts.uid,
            resource_version=facts.resource_version,
            namespace=facts.namespace,
            name=facts.name,
            observed_at=seen.at,
            spec_hash=packed.spec_hash,
            state=packed.state,
            dictionary=packed.dictionary,
            gone=last,
        )
    )
    return packed.spec_hash


# --- going on after a restart


def remember(kept: Remembered, vendors: GpuVendors, people: UserRule) -> dict[str, KnownPod]:
    """The pods that have not gone, by uid, as `changed` left them."""
    periods: dict[str, list[Period]] = {}
    for period in kept.periods:
        if isinstance(period, GpuPeriod | RunningPeriod | PendingPeriod | PodRoomPeriod):
            periods.setdefault(period.pod_uid, []).append(period)
    return {
        row.uid: _remembered(row, kept.last.get(row.uid), periods.get(row.uid, []), vendors, people)
        for row in kept.pods
        if row.gone_at is None
    }


def _remembered(
    row: GpuPod, last: bytes | None, periods: list[Period], vendors: GpuVendors, people: UserRule
) -> KnownPod:
    facts = _facts_of(row) if last is None else pod_facts(Object.from_raw(POD, last), vendors, people)
    # A snapshot may hold less than was seen (managedFields); what the row says was found in the whole.
    held = {period.resource: period.gpus for period in periods if isinstance(period, GpuPeriod)}
    claimed = {resource: gpus for resource, gpus in held.items() if facts.gpus.get(resource) != gpus}
    facts = msgspec.structs.replace(
        facts,
        user=row.user,
        resource_version=row.resource_version,
        claimed=claimed if facts.whole else {},
        owner=None,  # whoever goes by it has not been told by this run
    )
    end = None if row.end_at is None else End(row.end_at, row.end_after)
    gpus = {each.resource: each for each in periods if isinstance(each, GpuPeriod)}
    running = next((each for each in periods if isinstance(each, RunningPeriod)), None)
    pending = next((each for each in periods if isinstance(each, PendingPeriod)), None)
    room = next((each for each in periods if isinstance(each, PodRoomPeriod)), None)
    return KnownPod(
        facts,
        Life(row.created_at, row.bound_at, row.started_at, end),
        row,
        Holdings(gpus, running, pending, room),
        {resource: each.gpu_model for resource, each in gpus.items() if each.gpu_model},
    )


def _facts_of(row: GpuPod) -> PodFacts:
    """The facts of a pod of which no snapshot is left: what its row says."""
    labels: dict[str, str] = msgspec.json.decode(row.labels)
    return PodFacts(
        uid=row.uid,
        namespace=row.namespace,
        name=row.name,
        resource_version=row.resource_version,
        phase=row.phase,
        spec=SpecFacts(node=row.node_name, image=row.container_image, priority=row.priority),
        labels=labels,
        deleting=row.deleted,
        whole=False,
    )
