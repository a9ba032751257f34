"""Why a pod is no more, in a sentence: who took its place, what its containers ended with, when it disappeared.

The most telling word comes first: somebody made it go (a disruption), else its deletion was asked for before it ended,
else it ended by itself (its phase and the exits of its containers), else it disappeared and nobody said why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from bayplan.ledger.differ.disruptions import RULES
from bayplan.ledger.questions.asking import Scope, read
from bayplan.ledger.rows import Disruption, GpuPod, GpuPodsEvent
from bayplan.ledger.store.reading import TABLES, Readable
from bayplan.model.clock import Instant, rfc3339

_DEEDS = {
    "PreemptionByScheduler": "was preempted",
    "DeletionByTaintManager": "was evicted because of a taint of its node",
    "DeletionByDeviceTaintManager": "was evicted because of a taint of its device",
    "EvictionByEvictionAPI": "was evicted through the eviction API (a drain, for one)",
    "DeletionByPodGC": "was removed because its node was gone",
    "TerminationByKubelet": "was ended by the kubelet",
    "StoppedByKueue": "was stopped by its queue",
}
_ENDS = ("Succeeded", "Failed")
_PREEMPTOR = re.compile(r"Preempted by pod (\S+) on node ")
"""kube-scheduler 1.36 framework/preemption/executor.go (PreemptPod)."""


class WhyGone(msgspec.Struct, frozen=True):
    """A pod's end, as far as it is known."""

    pod: GpuPod
    sentence: str
    disruptions: tuple[Disruption, ...]
    exits: tuple[GpuPodsEvent, ...]
    """How its containers ended, in order."""
    asked_at: Instant | None
    """When its deletion was asked for."""
    gone_after: Instant | None = None
    """Set where nobody saw its object disappear: it was there then, and not at `pod.gone_at` any more."""


def told(pod: GpuPod, disruptions: Sequence[Disruption], events: Sequence[GpuPodsEvent]) -> WhyGone:
    """The answer, of what is stored of a pod, in order of time."""
    exits = tuple(each for each in events if each.event_type == "Exit")
    asked = next((each for each in events if each.event_type == "Deleting"), None)
    after = _unseen_after(pod, events)
    presence = _presence(pod, after)
    if disruptions:
        words = f"{_disrupted(disruptions)}; {presence}"
    elif asked is not None and _asked_first(pod, asked, events):
        words = f"{_deleted(pod, asked, exits)}; {presence}"
    elif pod.phase in _ENDS:
        words = f"{_ended(pod, exits)}; {presence}"
    elif pod.gone_at is None:
        where = f" on {pod.node_name}" if pod.node_name else ""
        words = f"is not gone: it is {pod.phase}{where}"
    else:
        words = f"was {pod.phase}, and nobody said why it went; {presence}"
    sentence = f"{pod.namespace}/{pod.name} {words}."
    return WhyGone(pod, sentence, tuple(disruptions), exits, asked.at if asked else None, after)


def _asked_first(pod: GpuPod, asked: GpuPodsEvent, events: Sequence[GpuPodsEvent]) -> bool:
    """Whether a deletion was asked for before the pod ended.

    Both times are in whole seconds, so versions decide; times only where one version told both.
    """
    if pod.phase not in _ENDS or pod.end_at is None:
        return True
    ends = [each for each in events if each.event_type == "Phase" and each.value in _ENDS]
    if not ends or ends[-1].resource_version == asked.resource_version:
        return asked.at <= pod.end_at
    return asked.resource_version < ends[-1].resource_version


def _disrupted(disruptions: Sequence[Disruption]) -> str:
    """One deed may be told twice, by the pod's condition and by an Event: each knows what the other does not."""
    first = disruptions[0]
    rule = RULES.get(first.rule, first.rule)
    same = [each for each in disruptions if RULES.get(each.rule, each.rule) == rule]
    by = next((each.by for each in same if each.by), "")
    whom = next((each.for_pod for each in same if each.for_pod), "")
    message = next((each.message for each in same if each.message), "")
    parts = [
        _DEEDS.get(rule, "was made to go"),
        f"by {by}" if by else "",
        f"to make room for {whom}" if whom else "",
        f"at {rfc3339(first.at)}",
        f"({rule}: {message})" if message else f"({rule})",
    ]
    return " ".join(filter(None, parts))


def _deleted(pod: GpuPod, asked: GpuPodsEvent, exits: Sequence[GpuPodsEvent]) -> str:
    """How it went after somebody had asked for its deletion."""
    words = f"was deleted by request at {rfc3339(asked.at)}"
    if pod.phase not in _ENDS:
        return f"{words}, while it was {pod.phase}"
    after = [each for each in exits if each.resource_version >= asked.resource_version]
    telling = [each for each in after if each.exit_code] or after
    return f"{words}, its {_exited(telling[-1])}" if telling else words


def _ended(pod: GpuPod, exits: Sequence[GpuPodsEvent]) -> str:
    when = f" at {rfc3339(pod.end_at)}" if pod.end_at is not None else ""
    if pod.phase == "Succeeded":
        return f"finished its work{when}"
    bad = [each for each in exits if each.exit_code]
    reason = f" ({pod.reason})" if pod.reason else ""
    if not bad:
        return f"failed{when}{reason}"
    return f"failed{when}{reason}: {_exited(bad[-1])}"


def _exited(end: GpuPodsEvent) -> str:
    why = f", {end.reason}" if end.reason and end.reason not in ("Error", "Completed") else ""
    return f"container {end.subject} exited with {end.exit_code}{why}"


def _unseen_after(pod: GpuPod, events: Sequence[GpuPodsEvent]) -> Instant | None:
    """The latest time at which its object was there for certain, if nobody saw it disappear.

    A row bounds a pod's end alone. Where that was known, the times that the object itself has told of stand in, and not
    when its versions were read: whoever catches up reads them late, after the object was gone.
    """
    unseen = any(each.event_type == "Gone" and each.reason == "inferred" for each in events)
    if pod.gone_at is None or not (unseen or pod.end_inferred):
        return None
    said = [pod.created_at, pod.bound_at, pod.started_at, pod.end_after if pod.end_inferred else pod.end_at]
    said += [each.at for each in events if each.event_type != "Gone" and each.at < each.observed_at <= pod.gone_at]
    return min(max(each for each in said if each is not None), pod.gone_at)


def _presence(pod: GpuPod, after: Instant | None) -> str:
    if pod.gone_at is None:
        return "its object is still there"
    if after is None:
        return f"its object disappeared at {rfc3339(pod.gone_at)}"
    it = "it" if pod.end_inferred else "its object"
    return f"{it} disappeared unseen between {rfc3339(after)} and {rfc3339(pod.gone_at)}"


async def why_gone(store: Readable, pod: GpuPod) -> WhyGone:
    """Why a pod is no more. Raises StoreUnavailableError, StoreRefusedError."""
    scope = Scope(pod.cluster)
    found: list[Disruption] = await read(store, Disruption, scope, TABLES[Disruption].c.pod_uid == pod.uid)
    disruptions = [await _named(store, scope, each) for each in found]
    events: list[GpuPodsEvent] = await read(store, GpuPodsEvent, scope, TABLES[GpuPodsEvent].c.pod_uid == pod.uid)
    return told(pod, sorted(disruptions, key=_when), sorted(events, key=_when))


async def _named(store: Readable, scope: Scope, told: Disruption) -> Disruption:
    """With the name of the pod that got its place, where an Event has but its uid and it is one of the ledger's."""
    preemptor = _PREEMPTOR.match(told.message)
    if told.for_pod or preemptor is None:
        return told
    found: list[GpuPod] = await read(store, GpuPod, scope, TABLES[GpuPod].c.uid == preemptor[1])
    return msgspec.structs.replace(told, for_pod=f"{found[0].namespace}/{found[0].name}") if found else told


def _when(row: Disruption | GpuPodsEvent) -> Instant:
    return row.at
