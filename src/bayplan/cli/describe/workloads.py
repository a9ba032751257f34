"""A deployment and what it made; the other workloads in the same manner."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.cli.describe.page import NONE, Doc, Page, Pairs, conditions, events, head, mapping
from bayplan.cli.describe.pods import placement_facts, template_facts
from bayplan.cluster.tables.columns import at, selector_text

REVISION = "deployment.kubernetes.io/revision"
_COUNTS = {
    "Deployment": (
        ("desired", "spec.replicas"),
        ("updated", "status.updatedReplicas"),
        ("total", "status.replicas"),
        ("available", "status.availableReplicas"),
        ("unavailable", "status.unavailableReplicas"),
    ),
    "ReplicaSet": (("desired", "spec.replicas"), ("current", "status.replicas"), ("ready", "status.readyReplicas")),
    "StatefulSet": (("desired", "spec.replicas"), ("current", "status.replicas"), ("ready", "status.readyReplicas")),
    "DaemonSet": (
        ("desired", "status.desiredNumberScheduled"),
        ("current", "status.currentNumberScheduled"),
        ("ready", "status.numberReady"),
        ("misscheduled", "status.numberMisscheduled"),
    ),
    "Job": (("active", "status.active"), ("succeeded", "status.succeeded"), ("failed", "status.failed")),
}
KINDS = frozenset(_COUNTS)
"""The workloads that have a page of their own."""


def workload_page(workload: Doc, replica_sets: Sequence[Doc], found: Sequence[Doc], page: Page) -> None:
    """The page of a workload; `replica_sets` are those of a deployment."""
    spec = workload.get("spec") or {}
    counts = [f"{at(workload, path) or 0} {word}" for word, path in _COUNTS[workload["kind"]]]
    page.pairs(
        [
            *head(workload, page.now),
            ("Selector", selector_text(spec.get("selector")) or NONE),
            ("Pods" if workload["kind"] in ("Job", "DaemonSet") else "Replicas", " | ".join(counts)),
            ("Paused", "True" if spec.get("paused") or spec.get("suspend") else None),
            *_strategy(spec),
            *_job_facts(spec if workload["kind"] == "Job" else {}),
        ]
    )
    _template(page, spec.get("template") or {})
    conditions(page, workload)
    if workload["kind"] == "Deployment":
        page.pairs(_replica_set_facts(workload, replica_sets))
    events(page, found)


def _strategy(spec: Doc) -> Pairs:
    strategy = spec.get("strategy") or spec.get("updateStrategy")
    if not isinstance(strategy, dict):
        return []
    rolling = strategy.get("rollingUpdate") or {}
    return [
        ("Strategy", strategy.get("type", "RollingUpdate")),
        ("Rolling Update", ", ".join(f"{key} {value}" for key, value in sorted(rolling.items())) or None),
        ("Min Ready Seconds", spec.get("minReadySeconds", 0)),
    ]


def _job_facts(spec: Doc) -> Pairs:
    return [
        ("Parallelism", spec.get("parallelism")),
        ("Completions", spec.get("completions")),
        ("Completion Mode", spec.get("completionMode")),
        ("Backoff Limit", spec.get("backoffLimit")),
        ("Deadline Seconds", spec.get("activeDeadlineSeconds")),
    ]


def _template(page: Page, template: Doc) -> None:
    page.heading("Pod Template")
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = mapping(meta.get("annotations"), ": ") or None
    page.pairs([("Labels", mapping(meta.get("labels"))), ("Annotations", annotations)], 2)
    for name, key in (("Init Containers", "initContainers"), ("Containers", "containers")):
        if spec.get(key):
            page.heading(name, 2)
        for container in spec.get(key) or ():
            page.heading(container["name"], 4)
            page.pairs(template_facts(container), 6)
    page.pairs(placement_facts(spec), 2)


def _replica_set_facts(deployment: Doc, replica_sets: Sequence[Doc]) -> Pairs:
    """The newest is the one of the deployment's own revision."""
    revision = _revision(deployment)
    new = [_counted(each) for each in replica_sets if _revision(each) == revision]
    old = [_counted(each) for each in replica_sets if _revision(each) != revision and at(each, "spec.replicas")]
    return [("Old Replica Sets", old), ("New Replica Set", new)]


def _revision(document: Doc) -> str:
    annotations = at(document, "metadata.annotations") or {}
    return str(annotations.get(REVISION, ""))


def _counted(each: Doc) -> str:
    made = f"{at(each, 'status.replicas') or 0}/{at(each, 'spec.replicas') or 0} replicas created"
    return f"{each['metadata']['name']} ({made})"
