"""The verdict: what etcd held beside what the database tells, pod by pod and version by version. Pure.

Every version is expected, the one in which the pod went as well. A version may be lacking for one reason only: the
campaign itself kept the ledger from hearing it (the API server was started anew, etcd compacted) or filled the spool,
*and* the ledger says so, by a gap that covers it. Even then the state in which the pod was found afterwards must be
there. A gap alone excuses nothing, or a ledger that sleeps would pass: the version must have been written within the
time of such a fault, before which the ledger was seen to know everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from bayplan.ledger.rows import Gap, GpuPod, GpuPodsEvent, Period, PodRoomPeriod
from bayplan.model.clock import SECOND, parse_rfc3339
from tests.ledger.chaos.oracle import History, Version
from tests.ledger.chaos.transitions import Event, events_of
from tests.ledger.chaos.witness import Hearing, Span

RECOVERY = 30 * SECOND
"""After the API server's return the ledger has so long to read the present."""
_TERMINAL = ("Succeeded", "Failed")
_FIRST = 8
"""So many findings of a sort are told in words."""


class Snapshot(msgspec.Struct, frozen=True):
    """A version as the database gives it back."""

    revision: int
    gone: bool
    object: dict[str, Any]


class Recorded(msgspec.Struct, kw_only=True):
    """What the database tells of one cluster."""

    pods: dict[str, GpuPod] = {}
    snapshots: dict[str, list[Snapshot]] = {}
    events: dict[str, list[GpuPodsEvent]] = {}
    open_periods: dict[str, list[Period]] = {}
    open_rooms: dict[str, list[PodRoomPeriod]] = {}
    gaps: list[Gap] = []


class Unheard(msgspec.Struct, frozen=True):
    """What the faults made impossible to hear."""

    spans: tuple[Span, ...] = ()
    """From when to when the API server's past was out of reach, in microseconds. At the beginning of each the ledger
    knew everything."""
    full_spool: bool = False
    before: int = 0
    """The revision before which there was no ledger: of what was then it finds the last."""


class Verdict(msgspec.Struct):
    """Counts, and the first findings in words."""

    pods: int = 0
    states: int = 0
    events: int = 0
    missing_pods: int = 0
    missing_first: int = 0
    missing_last: int = 0
    missing: int = 0
    excused: int = 0
    """Lacking, and told by the ledger itself as a gap that a fault explains."""
    duplicated: int = 0
    """Snapshots of versions that etcd never had."""
    altered: int = 0
    missing_events: int = 0
    duplicated_events: int = 0
    wrong_ends: int = 0
    inferred_ends: int = 0
    """Of pods that went unseen, with bounds that hold the truth."""
    latest_end: float = 0.0
    """Seconds by which an end that is told as seen was after the ledger could know, at most and without the machine's
    share."""
    wrong_owners: int = 0
    wrong_rooms: int = 0
    """Pods, with GPUs or without, that the database does not tell to take what they take at the end."""
    findings: list[str] = []
    revisions: dict[str, list[int]] = {}
    """Where each sort of finding is, and where all states are: for the faults that were made then."""

    @property
    def sound(self) -> bool:
        """Whether the database tells what etcd held."""
        return not any(getattr(self, name) for name in FAULTS)

    def count(self, what: str, revision: int) -> None:
        """One more of a sort."""
        setattr(self, what, getattr(self, what) + 1)
        self.revisions.setdefault(what, []).append(revision)

    def find(self, what: str, text: str, revision: int = 0) -> None:
        """Count a finding, and say it if it is among the first of its sort."""
        self.count(what, revision)
        if getattr(self, what) <= _FIRST:
            self.findings.append(f"{what}: {text}")


FAULTS = (
    "missing_pods", "missing_first", "missing_last", "missing", "duplicated", "altered", "missing_events",
    "duplicated_events", "wrong_ends", "wrong_owners", "wrong_rooms",
)  # fmt: skip


def judge(
    history: History,
    recorded: Recorded,
    unheard: Unheard = Unheard(),  # noqa: B008 - frozen
    hearing: Hearing = Hearing(),  # noqa: B008 - nobody changes it
) -> Verdict:
    """Compare. `history` holds all pods; of those without GPUs only what they take is the ledger's business."""
    verdict = Verdict()
    of_pods = [gap for gap in recorded.gaps if gap.kind == "pods"]
    gaps = [(int(gap.after_revision or 0), int(gap.up_to_revision or 0)) for gap in of_pods]
    dropped = sum(gap.dropped for gap in of_pods) if unheard.full_spool else 0
    wanted = {uid: versions for uid, versions in history.pods.items() if asks_for_gpus(versions[0].object)}
    for uid in recorded.snapshots.keys() - wanted.keys():
        verdict.find("duplicated", f"{uid} is no GPU pod of this cluster")
    for versions in wanted.values():
        verdict.pods += 1
        dropped -= _judge_pod(verdict, history, recorded, versions, _required(versions, gaps, unheard), dropped)
        row = recorded.pods.get(versions[0].object["metadata"]["uid"])
        if row is not None:
            _judge_end(verdict, recorded, row, versions, hearing)
    for uid, versions in history.pods.items():
        _judge_room(verdict, recorded.open_rooms.get(uid, ()), versions[-1])
    return verdict


def asks_for_gpus(pod: dict[str, Any]) -> bool:
    """Whether a container of a pod asks for a device of the load's vendors."""
    containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    return any("gpu" in name or "gaudi" in name or "/mig-" in name for each in containers for name in _asked(each))


def _asked(container: dict[str, Any]) -> list[str]:
    resources = container.get("resources", {})
    return [*resources.get("requests", ()), *resources.get("limits", ())]


def _judge_pod(
    verdict: Verdict,
    history: History,
    recorded: Recorded,
    versions: list[Version],
    required: set[int],
    droppable: int,
) -> int:
    """Judge one pod; how many of the states that a full spool may drop it lacks."""
    uid, name = versions[0].object["metadata"]["uid"], _name(versions[0])
    snapshots = {each.revision: each for each in recorded.snapshots.get(uid, ())}
    dropped: set[int] = set()
    lost = False
    for version in versions:
        at = version.revision
        verdict.count("states", at)
        known = snapshots.pop(at, None)
        if known is not None:
            if _plain(known.object) != _plain(version.object) or known.gone != version.gone:
                verdict.find("altered", f"{name} at {at}", at)
        elif at not in required:
            verdict.count("excused", at)
        elif len(dropped) < droppable and version not in (versions[0], versions[-1]):
            verdict.count("excused", at)
            dropped.add(at)
        else:
            lost = True
            _missing(verdict, versions, version)
    for revision in snapshots:
        verdict.find("duplicated", f"{name} at {revision}, which etcd never had", revision)
    row = recorded.pods.get(uid)
    if row is not None:
        _judge_events(verdict, recorded, versions, dropped)
        root = _root(history, uid)
        if row.root_uid != root:
            verdict.find("wrong_owners", f"{name}: root {row.root_uid or 'none'}, not {root or 'none'}")
    elif lost:
        verdict.find("missing_pods", name, versions[0].revision)
    return len(dropped)


def _required(versions: list[Version], gaps: Sequence[tuple[int, int]], unheard: Unheard) -> set[int]:
    """The revisions that must be there: all that could be heard, and what a list found at the end of each gap."""
    early = [each for each in versions if each.revision <= unheard.before]
    required = {each.revision for each in versions[max(0, len(early) - 1) :]}
    if early and early[-1].gone:
        required.remove(early[-1].revision)
    deaf = {each.revision for each in versions if _within(each.at, unheard)}
    for after, up_to in gaps:
        within = [each for each in versions if after < each.revision <= up_to]
        required -= deaf & {each.revision for each in within}
        if within and not within[-1].gone:
            required.add(within[-1].revision)
    return required


def _within(at: int, unheard: Unheard) -> bool:
    return any(begin <= at <= end + RECOVERY for begin, end in unheard.spans)


def _missing(verdict: Verdict, versions: list[Version], version: Version) -> None:
    text = f"{_name(version)} at {version.revision}{' (its end)' if version.gone else ''}"
    sorts = {"missing": True, "missing_first": version is versions[0], "missing_last": version is versions[-1]}
    for sort, holds in sorts.items():
        if holds:
            verdict.find(sort, text, version.revision)


def _judge_events(verdict: Verdict, recorded: Recorded, versions: list[Version], dropped: set[int]) -> None:
    """A full spool drops states, not their events."""
    uid = versions[0].object["metadata"]["uid"]
    stored = {each.revision for each in recorded.snapshots.get(uid, ())} | dropped
    seen = [each for each in versions if each.revision in stored]
    expected = Counter(events_of(seen, versions[-1].gone))
    got = Counter(Event(each.resource_version, each.event_type, each.subject) for each in recorded.events.get(uid, ()))
    verdict.events += expected.total()
    for event in (expected - got).elements():
        verdict.find("missing_events", f"{_name(versions[0])}: {' '.join(map(str, event))}", event.revision)
    for event in (got - expected).elements():
        verdict.find("duplicated_events", f"{_name(versions[0])}: {' '.join(map(str, event))}", event.revision)


def _judge_end(verdict: Verdict, recorded: Recorded, row: GpuPod, versions: list[Version], hearing: Hearing) -> None:
    last, still_open = versions[-1], recorded.open_periods.get(row.uid, ())
    stored = {each.revision for each in recorded.snapshots.get(row.uid, ())}
    said = next((_finished(each.object) for each in reversed(versions) if each.revision in stored), None)
    wrong = ""
    if (row.gone_at is not None) != last.gone:
        wrong = "is gone and not closed" if last.gone else "is there and closed"
    elif said is not None:
        if row.end_at is None or abs(row.end_at - said) > SECOND:
            wrong = f"ended at {said}, not {row.end_at}"
    elif last.gone:
        wrong = _unseen_end(verdict, row, last, hearing)
    elif row.end_at is not None:
        wrong = f"has not ended, the row says {row.end_at}"
    if not wrong and (last.gone or said is not None) and still_open:
        wrong = f"has ended, and {type(still_open[0]).__name__} is open"
    if wrong:
        verdict.find("wrong_ends", f"{_name(last)} {wrong}", last.revision)


def _unseen_end(verdict: Verdict, row: GpuPod, last: Version, hearing: Hearing) -> str:
    """What is wrong with the end of a pod that just disappeared.

    One that is told as seen is right to a second after the ledger could know; of one that is told as inferred the
    bounds hold the truth. Allowed for is how well the two who watched know the time themselves, and how long the
    machine did not let the ledger run.
    """
    assert row.end_at is not None
    finished, blur = _finished(last.object), hearing.blur(last.revision)
    truth = finished or hearing.happened_by(last.revision, last.at)
    known = finished or hearing.known_by(last.revision, last.at)
    slack = SECOND + blur
    if row.end_inferred:
        verdict.inferred_ends += 1
        after = row.end_after or 0
        inside = after <= known + slack + hearing.starved(truth, after) and truth <= row.end_at + slack
        return "" if inside else f"went at {truth}, not between {after} and {row.end_at}"
    starved = hearing.starved(known, row.end_at)
    late, excused = (row.end_at - known) / SECOND, (blur + starved) / SECOND
    verdict.latest_end = max(verdict.latest_end, late - excused)
    if truth - slack <= row.end_at <= known + slack + starved:
        return ""
    return f"went at {truth}; told as seen {late:.1f} s after it could be known, and the machine explains {excused:.1f}"


def _judge_room(verdict: Verdict, still_open: Sequence[PodRoomPeriod], last: Version) -> None:
    """A pod that is bound and has not ended takes what it asks for, once; any other nothing."""
    spec, there = last.object["spec"], not last.gone and last.object["status"].get("phase") not in _TERMINAL
    taken = [(each.node_name, each.cpu) for each in still_open]
    asked = [(spec["nodeName"], _cpu(spec))] if there and spec.get("nodeName") else []
    if taken != asked:
        verdict.find("wrong_rooms", f"{_name(last)} takes {taken}, not {asked}", last.revision)


def _cpu(spec: dict[str, Any]) -> int:
    """Thousandths that its only container asks for: the load writes nothing else."""
    (container,) = spec["containers"]
    text = container.get("resources", {}).get("requests", {}).get("cpu", "0m")
    return int(text.removesuffix("m"))


def _finished(pod: dict[str, Any]) -> int | None:
    """When the last container of a pod in a terminal phase finished."""
    status = pod.get("status", {})
    if status.get("phase") not in _TERMINAL:
        return None
    ends = [
        each.get("state", {}).get("terminated", {}).get("finishedAt") for each in status.get("containerStatuses", ())
    ]
    return max((parse_rfc3339(end) for end in ends if end), default=None)


def _root(history: History, uid: str) -> str:
    """The uid at the top of a chain of controllers; empty for a pod that has none."""
    top, seen = "", {uid}
    while (uid := history.controllers.get(uid, "")) and uid not in seen:
        top = uid
        seen.add(uid)
    return top


def _name(version: Version) -> str:
    meta = version.object["metadata"]
    return f"{meta['namespace']}/{meta['name']} ({meta['uid'][:8]})"


def _plain(value: Any) -> Any:
    """JSON without what says nothing: null, and the empty."""
    if isinstance(value, dict):
        return {name: plain for name, each in value.items() if (plain := _plain(each)) not in (None, {}, [])}
    return [_plain(each) for each in value] if isinstance(value, list) else value
