"""Hints about the waiting pod itself, and what they all ask of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.plugins.node_declared_features import needed_features
from bayplan.scheduling.plugins.node_unschedulable import CORDON
from bayplan.scheduling.queue.hints.contract import NEVER

if TYPE_CHECKING:
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.queue.hints.contract import Judge


def holds_place(pod: PodInfo) -> bool:
    """Whether a pod counts on some node: it is there, or others were evicted for it."""
    return bool(pod.pod.spec.node_name or pod.pod.status.nominated_node_name)


def itself(_old: PodInfo, new: PodInfo) -> Judge:
    """An update may help the pod that was updated, nobody else."""
    if new.pod.spec.node_name:
        return NEVER
    return lambda pod: pod.key == new.key


def tolerates_cordon(old: PodInfo, new: PodInfo) -> Judge:
    """NodeUnschedulable: the pod's new toleration is of cordoned nodes."""
    tolerates = any(each.tolerates(CORDON) for each in new.pod.spec.tolerations)
    return itself(old, new) if tolerates else NEVER


def needs_otherwise(old: PodInfo, new: PodInfo) -> Judge:
    """NodeDeclaredFeatures: the pod needs other features than before."""
    changed = needed_features(old.pod.spec) != needed_features(new.pod.spec)
    return itself(old, new) if changed else NEVER
