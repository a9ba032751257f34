"""Which pods of a node a drain may evict, which it leaves, and which it must not touch unless told to.

Source of truth: k8s.io/kubectl 0.36 pkg/drain/filters.go, its order and its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec

Doc = dict[str, Any]

_MIRROR = "kubernetes.io/config.mirror"


class Act(Enum):
    """What is done with a pod."""

    EVICT = "evict"
    LEAVE = "leave"
    REFUSE = "refuse"


class Rules(msgspec.Struct, frozen=True):
    """What the drain is allowed to do."""

    force: bool = False
    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """What is done with a pod, and the words for it where there is something to say."""

    act: Act
    words: str = ""


_SILENT = Verdict(Act.EVICT)


def verdict(pod: Doc, rules: Rules) -> Verdict:
    """The first rule that refuses or spares the pod; else the last one that has something to say."""
    told = _SILENT
    for rule in (_daemon_set, _mirror, _local_storage, _unreplicated):
        found = rule(pod, rules)
        if found.act is not Act.EVICT:
            return found
        told = found if found.words else told
    return told


def summary(pods: Sequence[tuple[Doc, Verdict]], act: Act, prefix: str = "") -> list[str]:
    """`cannot delete Pods that declare no controller (use --force to override): default/a, default/b`."""
    by_words: dict[str, list[str]] = {}
    for pod, found in pods:
        if found.act is act and found.words:
            meta = pod["metadata"]
            by_words.setdefault(found.words, []).append(f"{meta.get('namespace', '')}/{meta['name']}")
    return [f"{prefix}{words}: {', '.join(names)}" for words, names in by_words.items()]


def _daemon_set(pod: Doc, rules: Rules) -> Verdict:
    owner = controller(pod)
    if owner is None or owner["kind"] != "DaemonSet" or _finished(pod):
        return _SILENT
    if rules.ignore_daemonsets:
        return Verdict(Act.LEAVE, "ignoring DaemonSet-managed Pods")
    return Verdict(Act.REFUSE, "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)")


def _mirror(pod: Doc, _: Rules) -> Verdict:
    mirrored = _MIRROR in (pod["metadata"].get("annotations") or {})
    return Verdict(Act.LEAVE) if mirrored else _SILENT


def _local_storage(pod: Doc, rules: Rules) -> Verdict:
    local = any("emptyDir" in volume for volume in pod["spec"].get("volumes") or ())
    if not local or _finished(pod):
        return _SILENT
    if rules.delete_emptydir_data:
        return Verdict(Act.EVICT, "deleting Pods with local storage")
    return Verdict(Act.REFUSE, "Pods with local storage (use --delete-emptydir-data to override)")


def _unreplicated(pod: Doc, rules: Rules) -> Verdict:
    if controller(pod) is not None or _finished(pod):
        return _SILENT
    if rules.force:
        return Verdict(Act.EVICT, "deleting Pods that declare no controller")
    return Verdict(Act.REFUSE, "Pods that declare no controller (use --force to override)")


def controller(pod: Doc) -> Doc | None:
    """The owner that would make the pod anew."""
    owners: list[Doc] = pod["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def _finished(pod: Doc) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
