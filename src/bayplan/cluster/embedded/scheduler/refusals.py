"""Refusals that hold for other pods as well: a pod that asks for the same, on a cluster that has not changed since.

A refusal has to tell what is wrong with every node, so it costs as much as there are nodes; and those who wait are
mostly alike, and woken together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from bayplan.scheduling.decision import Decision, Preemption
    from bayplan.scheduling.pods import PodInfo

    Refused = tuple[Decision, Preemption]


class Refusals:
    """What was answered to pods, as of one version of the cluster."""

    def __init__(self) -> None:
        self._version = 0
        self._known: dict[Hashable, Refused] = {}

    def of(self, pod: PodInfo, version: int) -> Refused | None:
        """The answer to a pod alike."""
        if version != self._version:
            self._known.clear()
            self._version = version
        return self._known.get(_alike(pod)) if self._known else None

    def keep(self, pod: PodInfo, decision: Decision, preemption: Preemption) -> None:
        """Keep an answer, as of the version that was last asked for.

        Not one that changes anything: where others are evicted, or where the next search begins elsewhere. Nor one
        that is about this very pod: it has a nomination, or claims that may go by its name.
        """
        spec = pod.pod.spec
        own = pod.pod.status.nominated_node_name or spec.volumes or spec.resource_claims
        if not own and not preemption.node and decision.evaluated == decision.nodes:
            self._known[_alike(pod)] = decision, preemption


def _alike(pod: PodInfo) -> Hashable:
    spec, owner = pod.pod.spec, pod.pod.metadata.controller
    nominated = pod.pod.status.nominated_node_name
    return (
        pod.wants, frozenset(pod.labels.items()), owner and (owner.kind, owner.name), pod.priority, spec.scheduler_name,
        spec.preemption_policy, nominated, pod.gpus.ask,
    )  # fmt: skip
