"""A preempted pod's Event says for whom, as kube-scheduler's does."""

from __future__ import annotations

from bayplan.cluster.kinds import EVENT
from tests.cluster.test_scheduler_preemption import _full


def test_the_event_of_a_preempted_pod_names_the_pod_that_gets_its_place() -> None:
    bench = _full("4")
    bench.pod("p", priorityClassName="high")
    bench.to(11)
    (told,) = [each.doc() for each in bench.world.store.objects(EVENT) if each.doc()["reason"] == "Preempted"]
    uid = bench.view("p").metadata.uid
    assert told["message"] == f"Preempted by pod {uid} on node a"
    related = {key: told["related"][key] for key in ("kind", "namespace", "name", "uid", "apiVersion")}
    assert related == {"kind": "Pod", "namespace": "default", "name": "p", "uid": uid, "apiVersion": "v1"}


def test_other_events_are_related_to_nobody() -> None:
    bench = _full("4")
    bench.to(11)
    told = [each.doc() for each in bench.world.store.objects(EVENT)]
    assert told
    assert not [each for each in told if "related" in each]
