"""Namespaces that are deleted, and what keeps them."""

from __future__ import annotations

from bayplan.cluster.embedded.controllers.event_expiry import EventExpiry
from bayplan.cluster.embedded.controllers.garbage_collector import GarbageCollector
from bayplan.cluster.embedded.controllers.job import JobController
from bayplan.cluster.embedded.controllers.job_orphans import JobOrphans
from bayplan.cluster.embedded.controllers.namespace import NamespaceController
from bayplan.cluster.kinds import CONFIG_MAP, DEPLOYMENT, EVENT, JOB, NAMESPACE, POD
from bayplan.model.policies import Namespace
from tests.cluster.controllers.stage import Stage, workload


def _stage() -> Stage:
    stage = Stage(NamespaceController(), GarbageCollector(), JobController(), JobOrphans())
    stage.server.create(NAMESPACE, "", {"metadata": {"name": "team"}})
    return stage


def test_an_empty_namespace_goes_at_once() -> None:
    stage = _stage()
    stage.server.delete(NAMESPACE, "", "team")
    stage.settle()
    assert stage.store.get(NAMESPACE, "", "team") is None


def test_a_namespace_goes_with_everything_in_it() -> None:
    stage = _stage()
    stage.server.create(DEPLOYMENT, "team", {"metadata": {"name": "web"}, "spec": workload(3)})
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "work:1"}]}
    stage.server.create(JOB, "team", {"metadata": {"name": "job"}, "spec": {"template": {"spec": pod}}})
    stage.settle()
    assert stage.store.count(POD, "team") == 4
    stage.server.delete(NAMESPACE, "", "team")
    stage.settle()
    assert stage.store.get(NAMESPACE, "", "team") is None
    assert [kind.name for kind in stage.store.kinds() if stage.store.count(kind, "team")] == []


def test_what_holds_a_namespace_is_told() -> None:
    stage = _stage()
    body = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    stage.server.create(CONFIG_MAP, "team", body)
    stage.server.delete(NAMESPACE, "", "team")
    stage.settle()
    held = stage.server.get(NAMESPACE, "", "team").view(Namespace)
    assert held.status.phase == "Terminating"
    assert [(one.type, one.status, one.message) for one in held.status.conditions] == [
        ("NamespaceDeletionDiscoveryFailure", "False", "All resources successfully discovered"),
        ("NamespaceDeletionGroupVersionParsingFailure", "False", "All legacy kube types successfully parsed"),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            "True",
            "Some resources are remaining: configmaps. has 1 resource instances",
        ),
        (
            "NamespaceFinalizersRemaining",
            "True",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
        ),
    ]
    patch = b'{"metadata":{"finalizers":null}}'
    stage.server.patch(CONFIG_MAP, "team", "held", "application/merge-patch+json", patch)
    stage.settle()
    assert stage.store.get(NAMESPACE, "", "team") is None


def test_events_go_an_hour_after_they_were_last_seen() -> None:
    stage = Stage(EventExpiry())
    stage.create(DEPLOYMENT, "web", workload(1))
    assert stage.store.count(EVENT) > 0
    event = next(stage.store.objects(EVENT))
    stage.wait(1800)
    stage.server.replace_sections(event, {"count": 2, "lastTimestamp": "2026-01-01T00:30:00Z"})
    stage.wait(1800)
    assert [each.name for each in stage.store.objects(EVENT)] == [event.name]
    stage.wait(1800)
    assert stage.store.count(EVENT) == 0
