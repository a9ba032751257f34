"""Why a pod is no more, in a sentence: who took its place, what its containers ended with, when it disappeared.

The most telling word comes first: somebody made it go (a disruption), else it ended by itself (its phase and the exits
of its containers), else its deletion was asked for, else it disappeared and nobody said why.
"""

from __future__ import annotations

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


class WhyGone(msgspec.Struct, frozen=True):
    """A pod's end, as far as it is known."""

    pod: GpuPod
    sentence: str
    disruptions: tuple[Disruption, ...]
    exits: tuple[GpuPodsEvent, ...]
    """How its containers ended, in order."""
    asked_at: Instant | None
    """When its deletion was asked for."""


def told(pod: GpuPod, disruptions: Sequence[Disruption], events: Sequence[GpuPodsEvent]) -> WhyGone:
    """The answer, of what is stored of a pod, in order of time."""
    exits = tuple(each for each in events if each.event_type == "Exit")
    asked = next((each.at for each in events if each.event_type == "Deleting"), None)
    sentence = f"{pod.namespace}/{pod.name} {_sentence(pod, disruptions, exits, asked)}."
    return WhyGone(pod, sentence, tuple(disruptions), exits, asked)


def _sentence(
    pod: GpuPod, disruptions: Sequence[Disruption], exits: Sequence[GpuPodsEvent], asked: Instant | None
) -> str:
    if disruptions:
        words = _disrupted(disruptions)
        return f"{words}; {_presence(pod)}"
    if pod.phase in ("Succeeded", "Failed"):
        return f"{_ended(pod, exits)}; {_presence(pod)}"
    if asked is not None:
        return f"was deleted by request at {rfc3339(asked)}, while it was {pod.phase}; {_presence(pod)}"
    if pod.gone_at is None:
        where = f" on {pod.node_name}" if pod.node_name else ""
        return f"is not gone: it is {pod.phase}{where}"
    return f"was {pod.phase}, and nobody said why it went; {_presence(pod)}"


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


def _ended(pod: GpuPod, exits: Sequence[GpuPodsEvent]) -> str:
    when = f" at {rfc3339(pod.end_at)}" if pod.end_at is not None else ""
    if pod.phase == "Succeeded":
        return f"finished its work{when}"
    bad = [each for each in exits if each.exit_code]
    reason = f" ({pod.reason})" if pod.reason else ""
    if not bad:
        return f"failed{when}{reason}"
    last = bad[-1]
    why = f", {last.reason}" if last.reason and last.reason != "Error" else ""
    return f"failed{when}{reason}: container {last.subject} exited with {last.exit_code}{why}"


def _presence(pod: GpuPod) -> str:
    if pod.gone_at is None:
        return "its object is still there"
    if pod.end_inferred and pod.end_after is not None:
        return f"it disappeared unseen between {rfc3339(pod.end_after)} and {rfc3339(pod.gone_at)}"
    return f"its object disappeared at {rfc3339(pod.gone_at)}"


async def why_gone(store: Readable, pod: GpuPod) -> WhyGone:
    """Why a pod is no more. Raises StoreUnavailableError, StoreRefusedError."""
    scope = Scope(pod.cluster)
    disruptions: list[Disruption] = await read(store, Disruption, scope, TABLES[Disruption].c.pod_uid == pod.uid)
    events: list[GpuPodsEvent] = await read(store, GpuPodsEvent, scope, TABLES[GpuPodsEvent].c.pod_uid == pod.uid)
    return told(pod, sorted(disruptions, key=_when), sorted(events, key=_when))


def _when(row: Disruption | GpuPodsEvent) -> Instant:
    return row.at
