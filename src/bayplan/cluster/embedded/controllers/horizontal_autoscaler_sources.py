"""Where metrics come from, and what is said when they do not come.

Only resource metrics have a source here. The words for the others are those of a controller manager in a cluster
without adapters for custom and external metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Doc = dict[str, Any]

_NO_CUSTOM = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
_NO_EXTERNAL = "unable to fetch metrics from external metrics API: the server could not find the requested resource"

FAILURES: dict[str, tuple[str, Callable[[Doc], str]]] = {
    "Resource": (
        "FailedGetResourceMetric",
        lambda spec: f"failed to get {spec['resource']['name']} resource metric value",
    ),
    "ContainerResource": (
        "FailedGetContainerResourceMetric",
        lambda spec: f"failed to get {spec['containerResource']['container']} container metric value",
    ),
    "Pods": ("FailedGetPodsMetric", lambda _spec: "failed to get pods metric value"),
    "Object": ("FailedGetObjectMetric", lambda _spec: "failed to get object metric value"),
    "External": (
        "FailedGetExternalMetric",
        lambda spec: f"failed to get {spec['external']['metric']['name']} external metric value",
    ),
}
"""By type of metric: the reason of the Event and condition, and what the error of all metrics says before it."""


def named(spec: Doc) -> Doc:
    """How the status names a resource metric."""
    if spec["type"] == "ContainerResource":
        return {"name": spec["containerResource"]["name"], "container": spec["containerResource"]["container"]}
    return {"name": spec["resource"]["name"]}


def no_source(spec: Doc, namespace: str) -> str:
    """Why a metric that is not a resource's has no value."""
    match spec["type"]:
        case "Pods":
            return f"unable to get metric {spec['pods']['metric']['name']}: {_NO_CUSTOM}"
        case "Object":
            source = spec["object"]
            about = source["describedObject"]
            name = source["metric"]["name"]
            return f"unable to get metric {name}: {about['kind']} on {namespace} {about['name']}/{_NO_CUSTOM}"
        case _:
            metric = spec["external"]["metric"]
            name = metric["name"]
            why = f"{_NO_EXTERNAL} (get {name}.external.metrics.k8s.io)"
            return f"unable to get external metric {namespace}/{name}/{_selector(metric)}: {why}"


def _selector(metric: Doc) -> str:
    """A label selector as Go prints a pointer to one."""
    selector = metric.get("selector")
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.get("matchLabels", {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one['key']},Operator:{one['operator']},"
        f"Values:[{' '.join(one.get('values', ()))}],}},"
        for one in selector.get("matchExpressions", ())
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
