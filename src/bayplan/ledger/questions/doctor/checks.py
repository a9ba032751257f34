"""The checks: each a suspicion, told by plain values, pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bayplan.cluster.objects import Object
from bayplan.ledger.finalizers import DEADLINE
from bayplan.ledger.questions.doctor.findings import Finding
from bayplan.ledger.rights import OWNERS, TABLE, Owner, Right
from bayplan.ledger.rows import Gap, GpuPod, GpuWorkload, Period, StreamPosition
from bayplan.ledger.store.port import SchemaError, StoreUnavailableError
from bayplan.model.ages import human_duration
from bayplan.model.clock import SECOND, Instant, parse_rfc3339, rfc3339
from bayplan.model.errors import BayplanError

LAG = 60 * SECOND
"""A ledger that is behind by less is just at work."""
FOLLOWED = {line.kind for line in TABLE if "watch" in line.verbs}
"""What is listened to whoever turns up, by the names of its streams."""


def database(error: BayplanError | None) -> list[Finding]:
    """What opening the database said."""
    if error is None:
        return []
    if isinstance(error, StoreUnavailableError):
        return [Finding("LD001", "database", error.message)]
    return [Finding("LD003" if isinstance(error, SchemaError) else "LD002", "database", error.message, error.hint)]


def rights(answers: Mapping[Right, bool], who: str) -> list[Finding]:
    """What the cluster allows to somebody. The cure of a kind that is not of the roles by default names it."""
    usual = {Owner(line.group, line.resource) for line in TABLE} | set(OWNERS)
    found = []
    for right in (right for right, allowed in answers.items() if not allowed):
        owner = Owner(right.group, right.resource)
        add = "" if owner in usual else f"bayplan ledger manifest --owners {'/'.join(owner)} ... | kubectl apply -f -"
        found.append(Finding("LD004", str(right), f"{who} may not {right}", add))
    return found


def not_recorded(words: Mapping[str, Instant], now: Instant) -> list[Finding]:
    """The clusters that nobody records any more, each once; with their last words."""
    return [
        Finding("LD015", name, f"its last word is of {rfc3339(at)}, {human_duration(now - at)} ago")
        for name, at in sorted(words.items())
    ]


def listeners(
    streams: Iterable[StreamPosition], wanted: Mapping[tuple[str, str], Instant], now: Instant, silence: int
) -> list[Finding]:
    """Whether every cluster's kinds are listened to; `wanted` are cluster and kind, and since when.

    Of a kind that is not wanted nothing is left: nobody listens any more, on purpose.
    """
    heard = {(each.cluster, each.kind): each for each in streams}
    never = [
        Finding("LD005", ": ".join(key), "no listener ever committed anything")
        for key, since in wanted.items()
        if key not in heard and now - since > LAG
    ]
    dead = [
        Finding(
            "LD006",
            f"{each.cluster}: {each.kind}",
            f"last heard of {human_duration(now - each.at)} ago, at {rfc3339(each.at)}",
        )
        for key, each in heard.items()
        if now - each.at > silence and (key in wanted or each.kind in FOLLOWED)
    ]
    return never + dead


def owners(pods: Iterable[GpuPod], workloads: Iterable[GpuWorkload], now: Instant) -> list[Finding]:
    """Whether those above every pod are known: their rows are there, and their objects were seen.

    A chain ends where an object was not seen, so the pod's own controller and the top of its chain tell it all.
    """
    known = {(each.cluster, each.uid): each for each in workloads}
    found = []
    for pod in pods:
        for uid in dict.fromkeys((pod.owner_uid, pod.root_uid)):
            owner = known.get((pod.cluster, uid))
            if not uid or (owner is not None and (owner.resource_version or now - owner.created_at <= LAG)):
                continue
            what = f"its controller {uid} has no row"
            if owner is not None:
                what = f"{owner.kind}.{owner.group_version} {owner.name} above it was never seen"
            found.append(Finding("LD007", f"{pod.namespace}/{pod.name}", what))
    return found


def finalizers(objects: Iterable[Object], finalizer: str, now: Instant) -> list[Finding]:
    """Whether objects hang in their deletion because of us."""
    found = []
    for each in objects:
        asked = each.meta.deletion_timestamp
        if asked is None or finalizer not in each.meta.finalizers:
            continue
        waits = now - parse_rfc3339(asked)
        if waits > DEADLINE:
            name = "/".join(filter(None, (each.namespace, each.kind.name, each.name)))
            found.append(Finding("LD008", name, f"terminating for {human_duration(waits)} with {finalizer}"))
    return found


class Live(NamedTuple):
    """A GPU pod of the cluster, as far as it is compared."""

    name: str
    resource_version: int
    created_at: Instant
    phase: str
    node: str


def agreement(rows: Sequence[GpuPod], live: Mapping[str, Live], now: Instant) -> list[Finding]:
    """Whether ledger and cluster tell the same; `rows` are those not gone, of one cluster."""
    found = []
    known = {row.uid: row for row in rows}
    for row in rows:
        name = f"{row.namespace}/{row.name}"
        seen = live.get(row.uid)
        if seen is None:
            found.append(Finding("LD009", name, f"uid {row.uid}: {row.phase} in the ledger, not in the cluster"))
        elif differences := _differences(row, seen):
            found.append(Finding("LD011", name, differences))
    for uid, seen in live.items():
        if uid not in known and now - seen.created_at > LAG:
            age = human_duration(now - seen.created_at)
            found.append(Finding("LD010", seen.name, f"uid {uid}: {seen.phase} for {age}, not in the ledger"))
    return found


def _differences(row: GpuPod, seen: Live) -> str:
    if row.resource_version > seen.resource_version:
        return ""  # the ledger has heard more than the list that it is compared with
    pairs = (("phase", row.phase, seen.phase), ("node", row.node_name, seen.node))
    return ", ".join(
        f"{what} {ours or 'none'} in the ledger, {theirs or 'none'} in the cluster"
        for what, ours, theirs in pairs
        if ours != theirs
    )


def lasting(first: Iterable[Finding], second: Iterable[Finding]) -> list[Finding]:
    """What was found twice: whatever the ledger has caught up with in between was no fault."""
    before = {(each.code, each.subject) for each in first}
    return [each for each in second if (each.code, each.subject) in before]


def gaps(told: Iterable[Gap]) -> list[Finding]:
    """Where states are missing."""
    return [
        Finding(
            "LD012",
            f"{gap.cluster}: {gap.kind}",
            f"{gap.dropped or 'some'} states between {rfc3339(gap.from_at)} and {rfc3339(gap.to_at)}"
            + (f": {gap.why}" if gap.why else ""),
        )
        for gap in told
    ]


def contradictions(pods: Iterable[GpuPod], open_periods: Iterable[Period]) -> list[Finding]:
    """Whether anything is still open of pods that have let go; `pods` are those that ended."""
    ended = {(pod.cluster, pod.uid): (pod, pod.end_at) for pod in pods if pod.end_at is not None}
    found = []
    for period in open_periods:
        known = ended.get((period.cluster, getattr(period, "pod_uid", "")))
        if known is not None:
            pod, end = known
            what = f"{period.table} from {rfc3339(period.start_at)} is open, the pod ended at {rfc3339(end)}"
            found.append(Finding("LD013", f"{pod.namespace}/{pod.name}", what))
    return found
