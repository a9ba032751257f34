"""The examination: the database first, then the cluster beside it. It writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from bayplan.cluster.kinds import EVENT, KINDS, NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.cluster.paging import all_of
from bayplan.cluster.port import Cluster
from bayplan.ledger.differ.gpus import GpuVendors
from bayplan.ledger.differ.pods import concerning
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.finalizers import FINALIZER
from bayplan.ledger.questions.asking import SILENCE, Scope, clusters, last_words, read
from bayplan.ledger.questions.doctor import checks
from bayplan.ledger.questions.doctor.checks import Live
from bayplan.ledger.questions.doctor.findings import Finding, Report
from bayplan.ledger.rights import Owner, Right, needs
from bayplan.ledger.rows import (
    Gap,
    GpuPeriod,
    GpuPod,
    GpuWorkload,
    PendingPeriod,
    Period,
    PodRoomPeriod,
    RunningPeriod,
    StreamPosition,
)
from bayplan.ledger.store.reading import TABLES, Readable, fetch, select_rows
from bayplan.ledger.store.settings import Dialect
from bayplan.ledger.streams import FindKind
from bayplan.model.clock import Instant, parse_rfc3339
from bayplan.model.errors import BayplanError, Forbidden
from bayplan.model.pods import Pod
from bayplan.service.settings import LedgerSettings

ACCESS_REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)
ACCOUNT_REVIEW = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", False)
STREAMS = (POD.resource, NODE.resource, EVENT.resource)
"""What every ledger listens to, by the names of its streams."""
_PAUSE = 5.0
"""Seconds between two comparisons: what differs in both is not mere delay."""


async def built_in(api_version: str, name: str) -> Kind | None:
    """A kind that every cluster has."""
    kind = KINDS.get(name)
    return kind if kind is not None and kind.api_version == api_version else None


class Account(NamedTuple):
    """A ServiceAccount."""

    namespace: str
    name: str

    @property
    def subject(self) -> dict[str, Any]:
        """As the API server knows it."""
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated"]
        return {"user": f"system:serviceaccount:{self.namespace}:{self.name}", "groups": groups}


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for."""

    now: Instant
    cluster: str | None = None
    """Of which cluster rows are looked at; None: of all."""
    live: str | None = None
    """What the cluster that is asked is called in the ledger; None: not known, so it is the only one there is."""
    silence: int = SILENCE
    vendors: GpuVendors = GpuVendors()
    find: FindKind = built_in
    """How a workload's kind is found, to look for finalizers on its objects."""
    finalizer: str = FINALIZER
    settings: LedgerSettings = LedgerSettings()
    """Which rights are needed follows from them."""
    account: Account | None = None
    """Whose rights; None: of whoever asks."""
    pause: float = _PAUSE


async def examine_database(store: Readable, wanted: Examination, *, may_be_over: bool = True) -> Report:
    """What the database alone tells. Raises StoreUnavailableError, StoreRefusedError.

    A cluster of which nothing has been heard for long is over, not in trouble, if it is in a file (a `bayplan up` left
    it behind) and is not known to be the live one. Not `may_be_over`: which is the live one is not known.
    """
    scope = Scope(wanted.cluster)
    names = await clusters(store, scope)
    streams: list[StreamPosition] = await read(store, StreamPosition, scope)
    pods: list[GpuPod] = await read(store, GpuPod, scope, TABLES[GpuPod].c.gone_at.is_(None))
    workloads: list[GpuWorkload] = await read(store, GpuWorkload, scope)
    over, periods = await _left_open(store, scope)
    always = {(name, kind): Instant(0) for name in names or [wanted.cluster or "this cluster"] for kind in STREAMS}
    kinds = always | await _followed(workloads, wanted)
    words = await last_words(store, scope) if may_be_over and store.address.dialect is Dialect.SQLITE else {}
    silent = _silent(words, wanted)
    followed = [each for each in streams if each.cluster not in silent]
    kinds = {key: since for key, since in kinds.items() if key[0] not in silent}
    found = [
        *checks.not_recorded(silent, wanted.now),
        *checks.listeners(followed, kinds, wanted.now, wanted.silence),
        *checks.owners(pods, workloads, wanted.now),
        *checks.gaps(await read(store, Gap, scope)),
        *checks.contradictions(over, periods),
    ]
    return Report(tuple(found), ("listeners", "owners", "gaps", "contradictions"))


def _silent(words: Mapping[str, Instant], wanted: Examination) -> dict[str, Instant]:
    return {name: at for name, at in words.items() if wanted.now - at > wanted.silence and name != wanted.live}


async def _left_open(store: Readable, scope: Scope) -> tuple[list[GpuPod], list[Period]]:
    """Pods that have ended and of which a period is open, and these periods. From the periods to their pods: those that
    are open are few, pods that have ended are all there ever were.
    """
    pods, periods = list[GpuPod](), list[Period]()
    for kind in (GpuPeriod, RunningPeriod, PendingPeriod, PodRoomPeriod):
        period, pod = TABLES[kind], TABLES[GpuPod]
        both = period.join(pod, sa.and_(pod.c.cluster == period.c.cluster, pod.c.uid == period.c.pod_uid))
        where = [*scope.of(kind), period.c.end_at.is_(None), pod.c.end_at.is_not(None)]
        order = [period.c[name] for name in kind.key]
        periods += await fetch(store, select_rows(kind).select_from(both).where(*where).order_by(*order))
        pods += await fetch(store, select_rows(GpuPod).select_from(both).where(*where))
    return pods, periods


async def _followed(workloads: Sequence[GpuWorkload], wanted: Examination) -> dict[tuple[str, str], Instant]:
    """Cluster and stream of the kinds of which a workload goes on, as far as their names are known, and since when."""
    since: dict[tuple[str, str, str], Instant] = {}
    for row in workloads:
        if row.end_at is None:
            kind = (row.cluster, row.group_version, row.kind)
            since[kind] = min(since.get(kind, row.created_at), row.created_at)
    found = {}
    for (name, api_version, kind_name), at in since.items():
        try:
            known = await wanted.find(api_version, kind_name)
        except BayplanError:  # the cluster's part of the examination meets it too, and tells
            continue
        if known is not None:
            found[name, known.resource] = at
    return found


async def examine_cluster(cluster: Cluster, store: Readable | None, wanted: Examination) -> Report:
    """What the cluster tells, and how it compares with the ledger. Nothing that it refuses ends the examination.

    Raises StoreUnavailableError, StoreRefusedError, and the cluster's errors but Forbidden.
    """
    checked, skipped = ["rights"], list[str]()
    kinds = await _kinds(store, wanted, skipped)
    kept: list[Object] = []
    for kind in (POD, *kinds):
        try:
            kept += [each async for each in all_of(cluster, kind)]
        except Forbidden as error:
            skipped.append(f"finalizers of {kind.plural}: {error.message}")
    owners = {Owner(kind.group, kind.plural) for kind in (*kinds, *await _above(kept, wanted))}
    asked = [right for line in needs(wanted.settings, sorted(owners)) for right in line.rights]
    who = f"{wanted.account.namespace}/{wanted.account.name}" if wanted.account else "whoever asks"
    found = checks.rights(await _rights(cluster, asked, wanted.account), who)
    found += checks.finalizers(kept, wanted.finalizer, wanted.now)
    checked.append("finalizers")
    name = await _name(store, wanted)
    if store is None or name is None:
        skipped.append("agreement: it is not known which cluster of the ledger this one is; say it with --cluster")
    else:
        found += await _agreement(cluster, store, name, wanted, skipped)
        checked.append("agreement")
    return Report(tuple(found), tuple(checked), tuple(skipped))


async def _kinds(store: Readable | None, wanted: Examination, skipped: list[str]) -> list[Kind]:
    """The kinds of the workloads that have not ended."""
    if store is None:
        return []
    column = TABLES[GpuWorkload].c
    rows: list[GpuWorkload] = await read(store, GpuWorkload, Scope(wanted.cluster), column.end_at.is_(None))
    found = []
    for api_version, name in sorted({(row.group_version, row.kind) for row in rows}):
        kind = await wanted.find(api_version, name)
        if kind is None:
            skipped.append(f"finalizers of {name} ({api_version}): the cluster does not have the kind")
        else:
            found.append(kind)
    return found


async def _above(objects: Sequence[Object], wanted: Examination) -> list[Kind]:
    """The kinds of the controllers of GPU pods, whether the ledger has heard of them or not."""
    seen = Seen(cluster="", at=wanted.now, vendors=wanted.vendors)
    ours = [each for each in objects if each.kind == POD and concerning(each, seen)]
    above = {(owner.api_version, owner.kind) for each in ours if (owner := each.meta.controller) is not None}
    found = [await wanted.find(*each) for each in sorted(above)]
    return [kind for kind in found if kind is not None and kind != NODE]


async def _name(store: Readable | None, wanted: Examination) -> str | None:
    """The cluster of the ledger that the live one is compared with; None: there is none to compare with."""
    names = [] if store is None else await clusters(store, Scope(wanted.cluster))
    if wanted.cluster is None and wanted.live is not None:
        names = [name for name in names if name == wanted.live]
    return names[0] if len(names) == 1 else None


async def _rights(cluster: Cluster, asked: Sequence[Right], account: Account | None) -> dict[Right, bool]:
    answers = {}
    kind, subject = (ACCESS_REVIEW, {}) if account is None else (ACCOUNT_REVIEW, account.subject)
    for right in asked:
        answer = await cluster.create(kind, {"spec": {**subject, "resourceAttributes": right._asdict()}})
        answers[right] = bool((answer.doc().get("status") or {}).get("allowed"))
    return answers


async def _agreement(
    cluster: Cluster, store: Readable, name: str, wanted: Examination, skipped: list[str]
) -> list[Finding]:
    async def compared() -> list[Finding]:
        # First the cluster: the ledger may know more, never less.
        objects = [each async for each in all_of(cluster, POD)]
        rows: list[GpuPod] = await read(store, GpuPod, Scope(name), TABLES[GpuPod].c.gone_at.is_(None))
        known = {row.uid for row in rows}
        seen = Seen(cluster=name, at=wanted.now, vendors=wanted.vendors)
        ours = [each for each in objects if each.uid in known or concerning(each, seen)]
        return checks.agreement(rows, {each.uid: _live(each) for each in ours}, wanted.now)

    try:
        first = await compared()
        if not first:
            return []
        await asyncio.sleep(wanted.pause)
        return checks.lasting(first, await compared())
    except Forbidden as error:
        skipped.append(f"agreement: {error.message}")
        return []


def _live(obj: Object) -> Live:
    pod = obj.view(Pod)
    created = obj.meta.creation_timestamp
    return Live(
        f"{obj.namespace}/{obj.name}",
        obj.version,
        parse_rfc3339(created) if created else Instant(0),
        pod.status.phase,
        pod.spec.node_name,
    )


async def examine(
    open_store: Callable[[], Awaitable[Readable]], cluster: Cluster | None, wanted: Examination
) -> Report:
    """Everything: opens the database (the caller closes it) and asks the cluster, if there is one."""
    store: Readable | None = None
    try:
        store = await open_store()
        known = cluster is None or wanted.live is not None
        parts = [Report((), ("database",)), await examine_database(store, wanted, may_be_over=known)]
    except BayplanError as error:
        parts = [Report(tuple(checks.database(error)), ("database",), ("what the database tells",))]
    if cluster is not None:
        try:
            parts.append(await examine_cluster(cluster, store, wanted))
        except BayplanError as error:
            parts.append(
                Report((Finding("LD014", "cluster", error.message, error.hint),), (), ("what the cluster tells",))
            )
    return Report(
        tuple(each for part in parts for each in part.findings),
        tuple(each for part in parts for each in part.checked),
        tuple(each for part in parts for each in part.skipped),
    )
