"""A workload as it was at a time: its last version by then, judged by the rules of its kind and by its pods of then.

Its row is its latest state, which says nothing of the time before it. Where no version had been kept by then, its pods
are all that speaks: of a kind whose metadata alone are followed, or before its first GPU pod made it known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from bayplan.cluster.kinds import Kind
from bayplan.cluster.objects import Object
from bayplan.ledger.differ.people import UserRule
from bayplan.ledger.owners.reading import read
from bayplan.ledger.owners.workload import PodLink, Workload
from bayplan.ledger.questions.asking import Clause, Scope
from bayplan.ledger.rows import GpuWorkload, SpecBlob, WorkloadPodReference, WorkloadSnapshot
from bayplan.ledger.snapshots import unpack
from bayplan.ledger.status.judge import of_pods
from bayplan.ledger.store.reading import TABLES, Readable, fetch
from bayplan.model.clock import Instant


class Version(msgspec.Struct, frozen=True):
    """What had been seen of a workload by a time."""

    observed_at: Instant | None = None
    """When its last version was; None: none had been, and there is no state either."""
    state: bytes | None = None
    spec: bytes | None = None
    had_pods: bool = False
    """Whether a GPU pod had stood below it by then."""


UNSEEN = Version()


async def versions_at(
    store: Readable, at: Instant, scope: Scope, existed: Sequence[Clause]
) -> dict[tuple[str, str], Version]:
    """The last versions by then, by cluster and uid, of the workloads that existed and whose row is younger.

    Raises StoreUnavailableError, StoreRefusedError.
    """
    row, version, blob = TABLES[GpuWorkload], TABLES[WorkloadSnapshot], TABLES[SpecBlob]
    inner, link = version.alias("newest").c, TABLES[WorkloadPodReference].c
    # From the newest on: PostgreSQL, SQLite and MariaDB all walk the key backwards, and stop at the first that fits.
    newest = (
        sa.select(inner.resource_version)
        .where(inner.cluster == row.c.cluster, inner.workload_uid == row.c.uid, inner.observed_at <= at)
        .order_by(inner.resource_version.desc())
        .limit(1)
        .correlate(row)
        .scalar_subquery()
    )
    of_row = sa.and_(
        version.c.cluster == row.c.cluster, version.c.workload_uid == row.c.uid, version.c.resource_version == newest
    )
    of_spec = sa.and_(blob.c.cluster == version.c.cluster, blob.c.hash == version.c.spec_hash)
    had_pods = sa.exists().where(
        link.cluster == row.c.cluster, link.workload_uid == row.c.uid, link.created_at <= at
    )  # one is enough
    query: sa.Select[Any] = (
        sa.select(row.c.cluster, row.c.uid, version.c.observed_at, version.c.state, blob.c.data, had_pods)
        .select_from(row.outerjoin(version, of_row).outerjoin(blob, of_spec))
        .where(*scope.of(GpuWorkload), *existed, row.c.updated_at > at)
    )
    return {
        (cluster, uid): Version(seen, state, spec, bool(had))
        for cluster, uid, seen, state, spec, had in await fetch(store, query)
    }


def as_of(row: GpuWorkload, version: Version, pods: Iterable[PodLink], at: Instant) -> GpuWorkload:
    """The row as it was, made of what had been seen by then; of one of which nothing had been, `updated_at` stays later
    than `at`, and labels, annotations and owner are the latest. Its user always is: settings say where that is written.

    Raises SnapshotError.
    """
    then = Workload(
        uid=row.uid,
        api_version=row.group_version,
        kind=row.kind,
        namespace=row.namespace,
        name=row.name,
        first_at=row.created_at,
        labels=row.labels,
        annotations=row.annotations,
    )
    parent = row.parent_uid
    if version.state is not None:
        obj = _object(row, unpack(version.state, version.spec))
        read(then, obj, UserRule())
        above = obj.meta.controller
        parent = "" if above is None or (above.kind, above.api_version) == ("Node", "v1") else above.uid
    then.user = row.user
    for pod in pods:
        then.count(pod, 1)
    if version.state is None and not version.had_pods and not len(then.pods):
        then.own = of_pods(then.pods, ever=False)
    seen = row.updated_at if version.observed_at is None else version.observed_at
    return not_yet_ended(then.to_row(row.cluster, parent, seen), at)


def not_yet_ended(row: GpuWorkload, at: Instant) -> GpuWorkload:
    """The row of one that had not ended by then, without an end to come."""
    if row.end_at is None or row.end_at <= at:
        return row
    return replace(row, end_at=None, end_inferred=False, end_after=None)


def _object(row: GpuWorkload, raw: bytes) -> Object:
    group, _, version = row.group_version.rpartition("/")
    return Object.from_raw(Kind(group, version, row.kind, "", bool(row.namespace)), raw)
