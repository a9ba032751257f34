"""The examination: the database first, then the cluster beside it. It writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from bayplan.cluster.kinds import KINDS, NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Cluster
from bayplan.ledger.differ.gpus import GpuVendors
from bayplan.ledger.differ.pods import concerns
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.finalizers import FINALIZER
from bayplan.ledger.questions.asking import SILENCE, Scope, clusters, read
from bayplan.ledger.questions.doctor import checks
from bayplan.ledger.questions.doctor.checks import Live, Right
from bayplan.ledger.questions.doctor.findings import Finding, Report
from bayplan.ledger.rows import (
    Gap,
    GpuPeriod,
    GpuPod,
    GpuWorkload,
    PendingPeriod,
    RunningPeriod,
    StreamPosition,
)
from bayplan.ledger.store.reading import TABLES, Readable
from bayplan.model.clock import Instant, parse_rfc3339
from bayplan.model.errors import BayplanError, Forbidden
from bayplan.model.pods import Pod

ACCESS_REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)
STREAMS = (POD.resource, NODE.resource)
"""What every ledger listens to, by the names of its streams."""
RIGHTS = tuple(
    Right(group, resource, verb)
    for group, resource, verbs in (
        ("", "pods", "list watch"),
        ("", "nodes", "list watch"),
        ("", "events", "list watch"),
        ("coordination.k8s.io", "leases", "get create update"),
    )
    for verb in verbs.split()
)
_PAUSE = 5.0
"""Seconds between two comparisons: what differs in both is not mere delay."""
_PAGE = 500


FindKind = Callable[[str, str], Awaitable[Kind | None]]
"""The kind of an apiVersion and a name; None: the cluster does not have it."""


async def built_in(api_version: str, name: str) -> Kind | None:
    """A kind that every cluster has."""
    kind = KINDS.get(name)
    return kind if kind is not None and kind.api_version == api_version else None


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
    rights: Sequence[Right] = RIGHTS
    pause: float = _PAUSE


async def examine_database(store: Readable, wanted: Examination) -> Report:
    """What the database alone tells. Raises StoreUnavailableError, StoreRefusedError."""
    scope = Scope(wanted.cluster)
    names = await clusters(store, scope)
    streams: list[StreamPosition] = await read(store, StreamPosition, scope)
    pods: list[GpuPod] = await read(store, GpuPod, scope, TABLES[GpuPod].c.gone_at.is_(None))
    workloads: list[GpuWorkload] = await read(store, GpuWorkload, scope)
    over: list[GpuPod] = await read(store, GpuPod, scope, TABLES[GpuPod].c.end_at.is_not(None))
    periods = [
        period
        for kind in (GpuPeriod, RunningPeriod, PendingPeriod)
        for period in await read(store, kind, scope, TABLES[kind].c.end_at.is_(None))
    ]
    kinds = [(name, kind) for name in names or [wanted.cluster or "this cluster"] for kind in STREAMS]
    found = [
        *checks.listeners(streams, kinds, wanted.now, wanted.silence),
        *checks.owners(pods, workloads),
        *checks.gaps(await read(store, Gap, scope)),
        *checks.contradictions(over, periods),
    ]
    return Report(tuple(found), ("listeners", "owners", "gaps", "contradictions"))


async def examine_cluster(cluster: Cluster, store: Readable | None, wanted: Examination) -> Report:
    """What the cluster tells, and how it compares with the ledger. Nothing that it refuses ends the examination.

    Raises StoreUnavailableError, StoreRefusedError, and the cluster's errors but Forbidden.
    """
    found = checks.rights(await _rights(cluster, wanted.rights))
    checked, skipped = ["rights"], list[str]()
    kept: list[Object] = []
    for kind in (POD, *await _kinds(store, wanted, skipped)):
        try:
            kept += await _list(cluster, kind)
        except Forbidden as error:
            skipped.append(f"finalizers of {kind.plural}: {error.message}")
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


async def _name(store: Readable | None, wanted: Examination) -> str | None:
    """The cluster of the ledger that the live one is compared with; None: there is none to compare with."""
    names = [] if store is None else await clusters(store, Scope(wanted.cluster))
    if wanted.cluster is None and wanted.live is not None:
        names = [name for name in names if name == wanted.live]
    return names[0] if len(names) == 1 else None


async def _rights(cluster: Cluster, asked: Sequence[Right]) -> dict[Right, bool]:
    answers = {}
    for right in asked:
        attributes = {"group": right.group, "resource": right.resource, "verb": right.verb}
        answer = await cluster.create(ACCESS_REVIEW, {"spec": {"resourceAttributes": attributes}})
        answers[right] = bool((answer.doc().get("status") or {}).get("allowed"))
    return answers


async def _list(cluster: Cluster, kind: Kind) -> list[Object]:
    found, after = list[Object](), ""
    while True:
        page = await cluster.list(kind, None, limit=_PAGE, after=after)
        found += page.items
        after = page.next
        if not after:
            return found


async def _agreement(
    cluster: Cluster, store: Readable, name: str, wanted: Examination, skipped: list[str]
) -> list[Finding]:
    async def compared() -> list[Finding]:
        objects = await _list(cluster, POD)  # first the cluster: the ledger may know more, never less
        rows: list[GpuPod] = await read(store, GpuPod, Scope(name), TABLES[GpuPod].c.gone_at.is_(None))
        known = {row.uid for row in rows}
        seen = Seen(cluster=name, at=wanted.now, vendors=wanted.vendors)
        ours = [each for each in objects if each.uid in known or concerns(None, each, seen)]
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
        parts = [Report((), ("database",)), await examine_database(store, wanted)]
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
