"""A spool that does not follow on what the database holds.

The database may be behind: it is new, or was restored, since the spool was begun (`follows`). Then the batches are
stored, but the database does not come to say that the story is told up to there: what lies between is told by the
server, if it still has it, or found by reading the present.

It may be ahead: another replica went on recording while batches waited here (`closed_again`). Their facts are facts,
and what the other saw go with its own eyes has a newer version than the spool knows. But what the other only found
gone, because the server's history had expired, it closed by the version that the database knew then: a newer one in the
spool opens it again, and nobody would ever tell of it any more. What was there at the other's last word is known, so
all else that a replay leaves open ended between the spool's last word and the other's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bayplan.cluster.kinds import NODE, POD, Kind
from bayplan.cluster.live.reflector_core import Change
from bayplan.cluster.objects import Object, version_of
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import GpuPod, PodRoomPeriod, Rows, StreamPosition
from bayplan.ledger.store.port import Remembered
from bayplan.model.meta import ObjectMeta


def follows(before: Remembered, base: Mapping[str, StreamPosition]) -> bool:
    """Whether a database held all that came before a spool's first batch, as far as the spool says."""
    return all(version_of(before.streams.get(kind, "")) >= each.resource_version for kind, each in base.items())


def closed_again(
    recording: Recording, before: Remembered, after: Remembered, spooled: Mapping[str, StreamPosition]
) -> Rows:
    """What ends those that the replay of a spool has opened again.

    `before` and `after` are what the database held before the replay and after it, `recording` goes on from the
    latter, `spooled` is how far the spool told the story.
    """
    rows = Rows()
    for kind in (NODE, POD):
        here, there = spooled.get(kind.resource), version_of(before.streams.get(kind.resource, ""))
        if here is None or there <= here.resource_version:
            continue
        known = {meta.uid for meta in _open(before, kind)}
        gone = [_gone(kind, meta) for meta in _open(after, kind) if meta.uid not in known]
        at = before.told_at[kind.resource]
        recording.take(kind, gone, When(at, unseen_since=here.at), rows)
        recording.settle(at, rows)
    return rows


def _open(kept: Remembered, kind: Kind) -> Iterator[ObjectMeta]:
    """Those of a kind that have not ended, as far as the ledger keeps anything of them."""
    if kind is NODE:
        for node in kept.nodes:
            yield ObjectMeta(name=node.name, uid=node.uid, resource_version=str(node.resource_version))
        return
    found: dict[str, GpuPod | PodRoomPeriod] = {
        each.pod_uid: each for each in kept.periods if isinstance(each, PodRoomPeriod)
    }
    found |= {pod.uid: pod for pod in kept.pods}
    for uid, row in found.items():
        version = str(row.resource_version)
        yield ObjectMeta(namespace=row.namespace, name=row.name, uid=uid, resource_version=version)


def _gone(kind: Kind, meta: ObjectMeta) -> Change:
    return Change("DELETED", Object(kind, meta, {}, version_of(meta.resource_version)), synthetic=True)
