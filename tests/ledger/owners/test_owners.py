"""Chains of controllers, in whatever order they become known (L13, L1, L23)."""

from __future__ import annotations

import pytest

from bayplan.cluster.objects import Object, Section
from bayplan.ledger.differ.people import UserRule
from bayplan.ledger.owners import CYCLE, UNREADABLE, Owners
from bayplan.ledger.owners.owners import GRACE
from bayplan.ledger.status.kinds import GroupKind
from bayplan.model.clock import Instant, parse_rfc3339
from bayplan.model.meta import ObjectMeta
from tests.ledger.owners.builders import (
    DEPLOYMENT,
    LATER,
    POD,
    REPLICA_SET,
    at,
    kind,
    new,
    owner,
    pod,
    reference,
    references,
    synthetic,
    workload,
    workloads,
)


def test_a_pod_is_linked_to_each_of_its_controllers() -> None:
    owners = new()
    owners.pod(POD, at(0))
    owners.seen(REPLICA_SET, at(1))
    owners.seen(DEPLOYMENT, at(2))
    told = owners.flush(at(3))
    assert references(told) == {(POD.uid, "web-1-uid", 1), (POD.uid, "web-uid", 2)}
    assert told.roots == {POD.uid: "web-uid"}
    assert owners.root_of("web-1-uid") == "web-uid"
    rows = workloads(told)
    assert rows["web-1"].parent_uid == "web-uid"
    assert (rows["web"].parent_uid, rows["web"].gpu_request, rows["web"].status) == ("", 1000, "Running")
    assert owners.flush(at(4)).rows.by_type == {}


def test_a_late_owner_links_the_pods_below_it_anew() -> None:
    owners = new()
    owners.pod(POD, at(0))
    told = owners.flush(at(0))
    assert told.roots == {POD.uid: "web-1-uid"}
    assert workloads(told)["web-1"].resource_version == 0
    owners.seen(REPLICA_SET, at(1))
    told = owners.flush(at(1))
    assert references(told) == {(POD.uid, "web-uid", 2)}
    assert told.roots == {POD.uid: "web-uid"}
    assert workloads(told)["web"].kind == "Deployment"


def test_a_chain_of_unknown_kinds_is_followed_to_its_top() -> None:
    owners = new()
    for depth in range(9, 0, -1):
        above = [reference(f"w{depth + 1}", f"Kind{depth + 1}")] if depth < 9 else []
        owners.seen(workload(f"w{depth}", f"Kind{depth}", owners=above), at(0))
    owners.pod(pod("p", owner("w1", "Kind1"), gpus=2), at(1))
    told = owners.flush(at(1))
    assert references(told) == {("p-uid", f"w{depth}-uid", depth) for depth in range(1, 10)}
    assert told.roots == {"p-uid": "w9-uid"}
    assert {row.gpu_request for row in workloads(told).values()} == {2000}


@pytest.mark.parametrize(
    "owned_by",
    [
        pytest.param([], id="no reference at all"),
        pytest.param([reference("x", "Deployment", controller=None)], id="a reference that says nothing of control"),
        pytest.param([reference("x", "Deployment", controller=False)], id="a reference that denies control"),
    ],
)
def test_an_owner_that_does_not_control_is_none(owned_by: list[dict[str, object]]) -> None:
    owners = new()
    owners.seen(workload("job", "Job", owners=owned_by), at(0))
    owners.pod(pod("p", owner("job", "Job")), at(0))
    assert owners.flush(at(0)).roots == {"p-uid": "job-uid"}


def test_the_controller_counts_wherever_it_stands_in_the_list() -> None:
    owners = new()
    above = [reference("queue", "Queue", controller=None), reference("set", "JobSet")]
    owners.seen(workload("job", "Job", owners=above), at(0))
    owners.pod(pod("p", owner("job", "Job")), at(0))
    assert owners.flush(at(0)).roots == {"p-uid": "set-uid"}


def test_a_pod_without_controller_has_no_root() -> None:
    owners = new()
    owners.pod(pod("lonely"), at(0))
    told = owners.flush(at(0))
    assert len(told.rows) == 0
    assert told.roots == {}


def test_the_node_of_a_static_pod_is_no_workload() -> None:
    owners = new()
    owners.pod(pod("static", owner("node1", "Node")), at(0))
    assert len(owners.flush(at(0)).rows) == 0
    assert owners.kinds() == {}
    assert owners.root_of("node1-uid") == ""


def test_workers_of_a_leader_belong_to_the_set_above_the_leader() -> None:
    owners = new()
    owners.pod(pod("lws-0", owner("lws", "StatefulSet", uid="leaders-uid"), gpus=1), at(0))
    owners.seen(workload("lws-0", "StatefulSet", uid="workers-uid", owners=[reference("lws-0", "Pod")]), at(1))
    owners.pod(pod("lws-0-1", owner("lws-0", "StatefulSet", uid="workers-uid"), gpus=8), at(2))
    above = [reference("lws", "LeaderWorkerSet", uid="lws-uid")]
    owners.seen(workload("lws", "StatefulSet", uid="leaders-uid", owners=above), at(3))
    told = owners.flush(at(4))
    assert told.roots == {"lws-0-uid": "lws-uid", "lws-0-1-uid": "lws-uid"}
    assert workloads(told)["lws"].gpu_request == 9000
    assert workloads(told)["lws-0"].gpu_request == 8000
    owners.pod_gone("lws-0-uid", at(0))
    assert workloads(owners.flush(at(5)))["lws"].gpu_request == 8000


def test_a_new_object_of_the_same_name_is_another() -> None:
    owners = new()
    for n in (1, 2):
        owners.seen(workload("job", "Job", uid=f"job{n}", version=n), at(n))
        owners.pod(pod(f"p{n}", owner("job", "Job", uid=f"job{n}"), gpus=n), at(n))
        if n == 1:
            owners.gone(workload("job", "Job", uid="job1", version=9), at(1))
    rows = workloads(owners.flush(at(3)))
    assert (rows["job1"].gpu_request, rows["job1"].status, rows["job1"].end_at) == (1000, "Deleted", at(1))
    assert (rows["job2"].gpu_request, rows["job2"].end_at) == (2000, None)


# --- cycles


def test_a_cycle_is_cut_and_reported_once() -> None:
    owners = new()
    owners.seen(workload("a", "A", owners=[reference("b", "B")]), at(0))
    owners.seen(workload("b", "B", owners=[reference("a", "A")]), at(0))
    owners.pod(pod("p", owner("a", "A")), at(0))
    told = owners.flush(at(0))
    assert references(told) == {("p-uid", "a-uid", 1), ("p-uid", "b-uid", 2)}
    assert told.roots == {"p-uid": "b-uid"}
    assert [odd.code for odd in told.odd] == [CYCLE]
    owners.pod(pod("q", owner("b", "B")), at(1))
    assert owners.flush(at(1)).odd == ()


def test_one_that_controls_itself_is_its_own_root() -> None:
    owners = new()
    owners.seen(workload("a", "A", owners=[reference("a", "A")]), at(0))
    owners.pod(pod("p", owner("a", "A")), at(0))
    told = owners.flush(at(0))
    assert told.roots == {"p-uid": "a-uid"}
    assert [odd.code for odd in told.odd] == [CYCLE]


def test_a_cycle_is_forgotten_when_it_is_gone() -> None:
    owners = new()
    for name, above in (("a", "b"), ("b", "a")):
        owners.seen(workload(name, "A", owners=[reference(above, "A")]), at(0))
        owners.gone(workload(name, "A", version=2, owners=[reference(above, "A")]), at(0))
    for n in (0, 1):
        owners.flush(Instant(LATER + n))
        owners.collect(Instant(LATER + n + GRACE))
    assert len(owners) == 0


def test_a_pod_that_was_gone_before_its_owner_was_told_is_linked_all_the_same() -> None:
    owners = new()
    owners.pod(POD, at(0))
    owners.pod_gone(POD.uid, at(1))
    owners.flush(at(1))
    owners.seen(REPLICA_SET, at(2))
    told = owners.flush(at(2))
    assert references(told) == {(POD.uid, "web-uid", 2)}
    assert told.roots == {POD.uid: "web-uid"}
    assert workloads(told)["web"].gpu_request == 0


# --- ends


def test_a_workload_ends_when_its_object_goes() -> None:
    owners = new()
    owners.seen(DEPLOYMENT, at(0))
    owners.pod(pod("p", owner("web", "Deployment")), at(0))
    owners.flush(at(0))
    owners.gone(workload("web", "Deployment", version=7, spec={"replicas": 1}, status={"readyReplicas": 1}), at(5))
    row = workloads(owners.flush(at(6)))["web"]
    assert (row.status, row.end_at, row.end_inferred, row.resource_version) == ("Deleted", at(5), False, 7)
    assert row.status_reason == "deleted while Running"


def test_a_workload_ends_when_its_status_says_so_and_its_deletion_changes_nothing() -> None:
    done = {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": "2026-05-29T00:00:00Z"}
    owners = new()
    owners.pod(pod("p", owner("job", "Job"), phase="Succeeded"), at(0))
    owners.seen(workload("job", "Job", version=1, status={"active": 1, "ready": 1}), at(0))
    assert workloads(owners.flush(at(0)))["job"].end_at is None
    owners.seen(workload("job", "Job", version=2, status=done), at(1))
    row = workloads(owners.flush(at(1)))["job"]
    assert (row.status, row.end_at) == ("Succeeded", parse_rfc3339("2026-05-29T00:00:00Z"))
    owners.gone(workload("job", "Job", version=3, status=done), at(99))
    row = workloads(owners.flush(at(99)))["job"]
    assert (row.status, row.end_at) == ("Succeeded", parse_rfc3339("2026-05-29T00:00:00Z"))


def test_an_end_without_a_time_is_when_it_was_seen() -> None:
    owners = new()
    owners.pod(pod("p", owner("x", "Experiment")), at(0))
    owners.seen(workload("x", "Experiment", status={"phase": "Failed"}), at(1))
    assert workloads(owners.flush(at(1)))["x"].end_at == at(1)
    owners.seen(workload("x", "Experiment", version=2, status={"phase": "Failed"}), at(9))
    assert workloads(owners.flush(at(9)))["x"].end_at == at(1)


def test_one_that_takes_its_end_back_goes_on() -> None:
    owners = new()
    owners.pod(pod("p", owner("x", "Experiment")), at(0))
    owners.seen(workload("x", "Experiment", status={"phase": "Failed"}), at(1))
    owners.flush(at(1))
    owners.seen(workload("x", "Experiment", version=2, status={"phase": "Running"}), at(2))
    row = workloads(owners.flush(at(2)))["x"]
    assert (row.status, row.end_at) == ("Running", None)


def test_an_end_that_nobody_saw_is_marked_with_its_bounds() -> None:
    owners = new()
    owners.seen(DEPLOYMENT, at(0))
    owners.pod(pod("p", owner("web", "Deployment")), at(0))
    owners.gone(synthetic(DEPLOYMENT), at(60), inferred=True, after=at(20))
    row = workloads(owners.flush(at(60)))["web"]
    assert (row.status, row.end_at, row.end_inferred, row.end_after) == ("Deleted", at(60), True, at(20))
    assert row.resource_version == 1


def test_a_deletion_asked_for_shows() -> None:
    owners = new()
    owners.pod(pod("p", owner("web", "Deployment")), at(0))
    asked = {"deletionTimestamp": "2026-05-29T00:00:00Z"}
    owners.seen(workload("web", "Deployment", meta=asked, status={"readyReplicas": 1}), at(0))
    row = workloads(owners.flush(at(0)))["web"]
    assert (row.status, row.end_at) == ("Terminating", None)


def test_an_owner_deleted_before_its_pod_is_told_is_still_its_owner() -> None:
    owners = new()
    owners.seen(REPLICA_SET, at(0))
    owners.gone(workload("web-1", "ReplicaSet", version=2, owners=[reference("web", "Deployment")]), at(1))
    owners.flush(at(1))
    owners.pod(POD, at(2))
    told = owners.flush(at(2))
    assert told.roots == {POD.uid: "web-uid"}
    assert workloads(told)["web-1"].end_at == at(1)


def test_an_older_version_changes_nothing() -> None:
    owners = new()
    owners.pod(pod("p", owner("job", "Job")), at(0))
    owners.seen(workload("job", "Job", version=5, status={"active": 1, "ready": 1}), at(0))
    owners.flush(at(0))
    owners.seen(workload("job", "Job", version=4, status={"active": 1, "ready": 0}), at(1))
    assert len(owners.flush(at(1)).rows) == 0


def test_a_reference_in_the_pods_namespace_to_a_cluster_wide_owner_does_not_end_it() -> None:
    owners = new()
    owners.pod(pod("p", owner("fleet", "Fleet")), at(0))
    owners.flush(at(0))
    ((key, (uid, _)),) = owners.known(GroupKind("example.com", "Fleet")).items()
    owners.seen(workload("fleet", "Fleet", namespace=""), at(1))
    gone = Object(kind("example.com/v1", "Fleet"), ObjectMeta(namespace=key[0], name=key[1], uid=uid), {}, 0)
    owners.gone(gone, at(1), inferred=True)
    assert workloads(owners.flush(at(1)))["fleet"].end_at is None


# --- GPUs


def test_gpus_are_summed_over_pods_that_have_not_ended_while_it_goes_on() -> None:
    owners = new()
    owners.seen(workload("job", "Job", status={"active": 2}), at(0))
    for name, gpus, phase in (("a", 1, "Running"), ("b", 2, "Pending"), ("c", 4, "Failed"), ("d", 8, "Succeeded")):
        owners.pod(pod(name, owner("job", "Job"), gpus=gpus, phase=phase), at(0))
    assert workloads(owners.flush(at(0)))["job"].gpu_request == 3000
    owners.pod_gone("a-uid", at(0))
    assert workloads(owners.flush(at(1)))["job"].gpu_request == 2000


def test_gpus_of_an_ended_workload_are_those_of_its_pods_at_its_end() -> None:
    owners = new()
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    owners.pod(pod("a", owner("job", "Job"), gpus=2, phase="Succeeded"), at(0))
    owners.seen(workload("job", "Job", status=done), at(0))
    assert workloads(owners.flush(at(0)))["job"].gpu_request == 2000
    owners.pod(pod("b", owner("job", "Job"), gpus=3, phase="Succeeded"), at(1))
    assert workloads(owners.flush(at(1)))["job"].gpu_request == 5000
    owners.pod_gone("a-uid", at(0))
    owners.pod_gone("b-uid", at(0))
    assert len(owners.flush(at(2)).rows) == 0


def test_pods_that_go_before_their_terminating_owner_still_count() -> None:
    owners = new()
    owners.pod(pod("a", owner("set", "JobSet"), gpus=2), at(0))
    owners.seen(workload("set", "JobSet", meta={"deletionTimestamp": "2026-05-29T00:00:00Z"}), at(0))
    owners.flush(at(0))
    owners.pod_gone("a-uid", at(0))
    owners.flush(at(1))
    owners.gone(workload("set", "JobSet", version=2), at(2))
    row = workloads(owners.flush(at(2)))["set"]
    assert (row.gpu_request, row.status) == (2000, "Deleted")


def test_many_pods_in_one_batch_give_one_row_of_their_workload() -> None:
    owners = new()
    for n in range(100):
        owners.pod(pod(f"p{n}", owner("job", "Job")), at(0))
    told = owners.flush(at(0))
    assert len(told.rows) == 101
    assert workloads(told)["job"].gpu_request == 100_000


def test_whose_a_workload_is_and_what_it_carries() -> None:
    owners = Owners("here", UserRule(labels=("team",)))
    last_applied = "kubectl.kubernetes.io/last-applied-configuration"
    meta = {"labels": {"team": "vision"}, "annotations": {"note": "x", last_applied: "{...}"}}
    owners.seen(workload("job", "Job", meta=meta), at(0))
    owners.pod(pod("p", owner("job", "Job")), at(0))
    row = workloads(owners.flush(at(0)))["job"]
    assert (row.user, row.labels, row.annotations) == ("vision", '{"team":"vision"}', '{"note":"x"}')
    assert (row.cluster, row.group_version, row.namespace) == ("here", "batch/v1", "ml")
    assert row.created_at == parse_rfc3339("2026-05-01T00:00:00Z")


# --- odd objects


def test_a_status_that_cannot_be_read_is_reported_once() -> None:
    owners = new()
    odd = workload("x", "Experiment", status={})
    odd.sections["status"] = Section(b'{"phase": "Running", "message": "\\ud800"}')
    worse = workload("y", "Experiment", status={})
    worse.sections["status"] = Section(b"{")
    for n, obj in enumerate((odd, worse)):
        for _ in range(3):
            owners.seen(obj, at(n))
        owners.pod(pod(f"p{n}", owner(obj.name, "Experiment"), phase="Pending"), at(n))
    told = owners.flush(at(2))
    assert [fault.code for fault in told.odd] == [UNREADABLE]  # half a character is read as one that is not known
    assert {name: row.status for name, row in workloads(told).items()} == {"x": "Running", "y": "Pending"}


def test_an_object_without_uid_or_name_stops_nothing() -> None:
    owners = new()
    owners.seen(Object(kind("example.com/v1", "X"), ObjectMeta(), {}, 0), at(0))
    owners.gone(Object(kind("example.com/v1", "X"), ObjectMeta(name="y"), {}, 0), at(0))
    owners.gone(Object(kind("example.com/v1", "X"), ObjectMeta(name="z"), {}, 0), at(0), inferred=True)
    owners.pod(pod("p", owner("", "", uid="u")), at(0))
    owners.pod_gone("never-seen", at(0))
    owners.flush(at(0))
    owners.collect(LATER)
    owners.flush(LATER)
