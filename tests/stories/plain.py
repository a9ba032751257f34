"""What is observed, freed of chance: names that were made up become roles, times, uids and addresses become words.

Replica sets and revisions are numbered in the order in which they came: `web#1`, `db@2`. A pod with a name made up is
its owner and a star, and those of one role are told apart by nothing but what they look like.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from tests.stories.engines import COMMON_NODES
from tests.stories.story import Doc

_SUFFIX = r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9-])"
"""What the API server adds to a generateName."""
_WORDS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "<time>"),
    (r"(?<![\d.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])", "<address>"),
    (rf"(?<![a-z0-9-])(?:{'|'.join(COMMON_NODES)})(?![a-z0-9-])", "<node>"),
    (r"-2\d{7}(?!\d)", "-<minute>"),  # a CronJob names its jobs after the minute
    (r"https://<address>:\d+", "<server>"),
    (r"Waiting for [^\n]*\n", ""),  # as often as kubectl happened to look
    (r"\d+/\d+ nodes are available: .*", "no node is available"),  # the nodes of other stories are among them
    (r"\(combined from similar events\): ", ""),  # from the tenth on, and how many there are is chance
)
_LOST = ("managedFields", "uid", "resourceVersion", "creationTimestamp", "generateName", "selfLink")
_WORK_IN_PARALLEL = ("replicaset-controller", "daemonset-controller", "job-controller")
_TRIED_AGAIN = ("FailedScheduling", "FailedCreate", "FailedGetResourceMetric", "FailedComputeMetricsReplicas")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_BY_KUBELETS = "written by the kubelet, which KWOK plays in one step"
NOT_COMPARED = (
    ("Pod", "spec", ("nodeName",), "where the scheduler puts a pod is judged elsewhere"),
    (
        "Pod",
        "spec",
        ("volumes", "serviceAccount", "serviceAccountName"),
        "the embedded engine gives out no service accounts",
    ),
    (
        "Pod",
        "status",
        (
            *("containerStatuses", "initContainerStatuses", "hostIP", "hostIPs", "podIP", "podIPs", "startTime"),
            *("observedGeneration", "allocatedResources", "resources"),
        ),
        _BY_KUBELETS,
    ),
    (
        "Node",
        "status",
        (
            *("addresses", "allocatable", "capacity", "daemonEndpoints", "images", "nodeInfo", "phase", "features"),
            *("runtimeHandlers", "declaredFeatures"),
        ),
        _BY_KUBELETS,
    ),
    ("Node", "spec", ("podCIDR", "podCIDRs"), "there is no network"),
    ("Node", "metadata", ("annotations",), "how a kubelet is silenced differs"),
)
"""Fields that no story compares: kind, part, names, reason."""
_ONLY_A_KUBELETS = ("PodReadyToStartContainers",)
_WITHOUT_WORDS = ("Initialized", "Ready", "ContainersReady", "MemoryPressure", "DiskPressure", "PIDPressure")


class Roles:
    """Roles for the names that are made up, kept through a story."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}

    def learn(self, objects: Iterable[Doc]) -> None:
        """Number the replica sets and revisions that are new, by their age."""
        new = [each for each in objects if each["kind"] in ("ReplicaSet", "ControllerRevision")]
        for each in sorted(new, key=lambda one: (one["metadata"]["creationTimestamp"], one.get("revision", 0))):
            name = each["metadata"]["name"]
            owner = next((one["name"] for one in each["metadata"].get("ownerReferences", ())), "")
            if name in self._words or not owner or not name.startswith(f"{owner}-"):
                continue
            mark = "#" if each["kind"] == "ReplicaSet" else "@"
            number = 1 + sum(1 for role in self._words.values() if role.startswith(f"{owner}{mark}"))
            self._words[name] = f"{owner}{mark}{number}"
            self._words[name.removeprefix(f"{owner}-")] = f"{mark}{number}"

    def text(self, text: str) -> str:
        """A text with roles in place of names, and words in place of times, uids and addresses."""
        for name in sorted(self._words, key=len, reverse=True):
            text = re.sub(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", self._words[name], text)
        for pattern, word in _WORDS:
            text = re.sub(pattern, word, text)
        return re.sub(_SUFFIX, "-*", text)

    def value(self, value: Any) -> Any:
        """The same for a whole document."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(each) for key, each in value.items()}
        return value


def states(objects: Sequence[Doc], roles: Roles) -> Doc:
    """The objects by kind and role; those of one role in the order of what they look like."""
    found: dict[str, list[Doc]] = {}
    for each in objects:
        plain = roles.value(_without_chance(each))
        found.setdefault(f"{each['kind']} {plain['metadata'].pop('name')}", []).append(plain)
    result: Doc = {}
    for role in sorted(found):
        alike = sorted(found[role], key=lambda one: json.dumps(one, sort_keys=True))
        result |= {role if len(alike) == 1 else f"{role} ({n} of {len(alike)})": one for n, one in enumerate(alike, 1)}
    return result


def _without_chance(item: Doc) -> Doc:
    kept = {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}
    kept["metadata"] = {key: value for key, value in item["metadata"].items() if key not in _LOST}
    annotations = {key: value for key, value in kept["metadata"].get("annotations", {}).items() if key != _LAST_APPLIED}
    kept["metadata"]["annotations"] = annotations
    for kind, part, fields, _ in NOT_COMPARED:
        if kind == item["kind"]:
            kept[part] = {key: value for key, value in kept.get(part, {}).items() if key not in fields}
    if item["kind"] in ("Pod", "Node"):
        kept["status"]["conditions"] = _conditions(kept["status"].get("conditions", ()))
    for each in kept.get("spec", {}).get("containers", ()):
        each.pop("volumeMounts", None)
    if item["kind"] == "Node":  # several workers add taints, in an order of chance
        kept["spec"]["taints"] = sorted(kept["spec"].get("taints", ()), key=lambda one: (one["key"], one["effect"]))
    return kept


def _conditions(given: Sequence[Doc]) -> list[Doc]:
    """Conditions of a pod or node, sorted; KWOK writes them in another order and with fewer words than a kubelet."""
    conditions = []
    for one in given:
        silent = one["type"] in _WITHOUT_WORDS and one.get("reason") != "NodeStatusUnknown"
        fields = ("type", "status") if silent else ("type", "status", "reason", "message")
        if one["type"] not in _ONLY_A_KUBELETS:
            conditions.append({key: one[key] for key in fields if one.get(key)})
    return sorted(conditions, key=lambda one: str(one["type"]))


def told(events: Sequence[Doc], since: int, roles: Roles) -> Doc:
    """What was told of each object since that many Events, in order; objects of one role have a list each, in a list.

    Repetitions count once, and what is tried again and again once in a story: how often is chance. So is the order in
    which some controllers, which work on several pods at a time, tell the like of them.
    """
    lines: dict[tuple[str, str], list[str]] = {}
    tried: set[tuple[str, str]] = set()
    for number, each in enumerate(events):
        component = each.get("reportingComponent") or each.get("source", {}).get("component", "")
        about = each["involvedObject"]
        retried = (about.get("uid"), each["reason"])
        again = retried in tried
        if each["reason"] in _TRIED_AGAIN:
            tried.add(retried)
        if number < since or again or component == "kubelet":  # as which KWOK says nothing
            continue
        said = lines.setdefault((about["kind"], about["name"]), [])
        said.append(f"{component}: {each['type']} {each['reason']}: {roles.text(each.get('message', ''))}")
    result: dict[str, list[list[str]]] = {}
    for (kind, name), said in lines.items():
        result.setdefault(f"{kind} {roles.text(name)}", []).append(_in_order(said))
    return {role: sorted(result[role]) for role in sorted(result)}


def _in_order(lines: Sequence[str]) -> list[str]:
    found: list[str] = []
    for (component, _), same in itertools.groupby(lines, key=lambda line: tuple(line.split(": ", 2)[:2])):
        several = [*dict.fromkeys(same)]
        found += sorted(several) if component in _WORK_IN_PARALLEL else several
    return found
