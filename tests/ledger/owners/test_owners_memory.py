"""What is watched for, for how long it is remembered, and what a restart leaves of it (L13, L14)."""

from __future__ import annotations

from bayplan.ledger.owners import Watch
from bayplan.ledger.owners.owners import GRACE
from bayplan.ledger.rows import GpuPod
from bayplan.ledger.status.kinds import GroupKind
from bayplan.model.clock import Instant
from tests.ledger.owners.builders import (
    DEPLOYMENT,
    LATER,
    POD,
    REPLICA_SET,
    at,
    new,
    owner,
    pod,
    reference,
    synthetic,
    workload,
    workloads,
)

# --- watches


def test_watches_grow_with_kinds_and_not_with_workloads() -> None:
    owners = new()
    for n in range(500):
        of_kind = f"Kind{n % 6}"
        owners.seen(workload(f"w{n}", of_kind), at(0))
        owners.pod(pod(f"p{n}", owner(f"w{n}", of_kind)), at(0))
    owners.flush(at(0))
    assert len(owners.kinds()) == 6


def test_whole_objects_for_kinds_with_rules_and_for_tops_and_metadata_for_what_is_between() -> None:
    owners = new()
    owners.pod(POD, at(0))
    owners.pod(pod("p", owner("x", "Between")), at(0))
    owners.flush(at(0))
    assert owners.kinds() == {
        GroupKind("apps", "ReplicaSet"): Watch("apps/v1", "ReplicaSet", False),
        GroupKind("example.com", "Between"): Watch("example.com/v1", "Between", False),
    }
    owners.seen(REPLICA_SET, at(1))
    owners.seen(workload("x", "Between", owners=[reference("y", "Top")]), at(1))
    owners.seen(workload("y", "Top"), at(1))
    owners.flush(at(1))
    assert {str(kind): watch.whole for kind, watch in owners.kinds().items()} == {
        "ReplicaSet.apps": False,
        "Deployment.apps": True,
        "Between.example.com": False,
        "Top.example.com": True,
    }


def test_a_replica_set_at_the_top_is_wanted_whole() -> None:
    owners = new()
    owners.pod(POD, at(0))
    owners.seen(workload("web-1", "ReplicaSet"), at(0))
    owners.flush(at(0))
    assert owners.kinds() == {GroupKind("apps", "ReplicaSet"): Watch("apps/v1", "ReplicaSet", True)}


def test_versions_of_one_kind_share_a_watch() -> None:
    owners = new()
    first = reference("a", "Thing") | {"apiVersion": "example.com/v2"}
    owners.seen(workload("j1", "Job", owners=[first]), at(0))
    owners.seen(workload("j2", "Job", owners=[reference("b", "Thing")]), at(0))
    owners.pod(pod("p1", owner("j1", "Job")), at(0))
    owners.pod(pod("p2", owner("j2", "Job")), at(0))
    owners.flush(at(0))
    assert sorted(map(str, owners.kinds())) == ["Job.batch", "Thing.example.com"]


def test_a_reference_that_names_a_wrong_kind_leaves_no_watch_behind() -> None:
    owners = new()
    owners.pod(pod("p", owner("job", "Jobb")), at(0))
    owners.flush(at(0))
    owners.seen(workload("job", "Job"), at(1))
    owners.flush(at(1))
    assert list(map(str, owners.kinds())) == ["Job.batch"]


# --- memory


def test_what_has_ended_and_has_no_pods_left_is_forgotten() -> None:
    owners = new()
    owners.seen(DEPLOYMENT, at(0))
    owners.seen(REPLICA_SET, at(0))
    owners.pod(POD, at(0))
    owners.flush(at(0))
    owners.gone(workload("web", "Deployment", version=2), at(0))
    owners.gone(workload("web-1", "ReplicaSet", version=2, owners=[reference("web", "Deployment")]), at(0))
    owners.flush(at(0))
    owners.collect(LATER)
    assert len(owners) == 3
    owners.pod_gone(POD.uid, at(0))
    for n in (1, 2, 3):
        owners.flush(Instant(LATER * n))
        owners.collect(Instant(LATER * n + GRACE))
    assert len(owners) == 0
    assert owners.kinds() == {}


def test_a_finished_job_that_stays_is_no_longer_watched_for() -> None:
    owners = new()
    owners.seen(workload("job", "Job", status={"conditions": [{"type": "Complete", "status": "True"}]}), at(0))
    owners.pod(pod("p", owner("job", "Job"), phase="Succeeded"), at(0))
    owners.flush(at(0))
    owners.pod_gone("p-uid", at(0))
    owners.flush(at(0))
    assert len(owners.kinds()) == 1
    owners.collect(LATER)
    assert owners.kinds() == {}
    owners.forget(GroupKind("batch", "Job"))
    assert len(owners) == 0


def test_one_that_nobody_ever_saw_ends_with_its_last_pod() -> None:
    owners = new()
    owners.pod(pod("p", owner("x", "Forbidden")), at(0))
    owners.flush(at(0))
    owners.pod_gone("p-uid", at(0))
    owners.flush(at(10))
    owners.collect(Instant(at(10) + GRACE))
    row = workloads(owners.flush(Instant(at(10) + GRACE)))["x"]
    assert (row.status, row.end_inferred, row.end_after) == ("Deleted", True, at(10))
    owners.collect(Instant(at(11) + GRACE))
    assert len(owners) == 0


def test_what_has_nothing_to_do_with_gpus_is_known_but_never_told_of() -> None:
    owners = new()
    owners.seen(DEPLOYMENT, at(0))
    owners.seen(REPLICA_SET, at(0))
    assert len(owners.flush(at(0)).rows) == 0
    assert owners.kinds() == {}
    owners.gone(workload("web", "Deployment", version=2), at(0))
    owners.gone(workload("web-1", "ReplicaSet", version=2, owners=[reference("web", "Deployment")]), at(0))
    for n in (1, 2, 3):
        owners.flush(Instant(LATER * n))
        owners.collect(Instant(LATER * n + GRACE))
    assert len(owners) == 0


# --- after a restart


def stored_pod(root: str) -> GpuPod:
    return GpuPod(
        cluster="here",
        uid=POD.uid,
        resource_version=1,
        namespace="ml",
        name="web-1-a",
        gpu_allocated=1000,
        phase="Running",
        owner_uid="web-1-uid",
        root_uid=root,
        created_at=at(0),
        updated_at=at(0),
    )


def test_a_restart_tells_nothing_that_was_told() -> None:
    owners = new()
    owners.seen(DEPLOYMENT, at(0))
    owners.seen(REPLICA_SET, at(0))
    owners.pod(POD, at(0))
    rows = workloads(owners.flush(at(0))).values()
    again = new()
    again.remember(rows, [stored_pod("web-uid")])
    told = again.flush(at(9))
    assert (len(told.rows), told.roots) == (0, {})
    assert again.kinds() == owners.kinds()
    again.seen(DEPLOYMENT, at(10))
    again.seen(REPLICA_SET, at(10))
    again.pod(POD, at(10))
    told = again.flush(at(10))
    assert (len(told.rows), told.roots) == (0, {})


def test_after_a_restart_the_reflector_is_told_what_was_known() -> None:
    owners = new()
    owners.seen(DEPLOYMENT, at(0))
    owners.pod(pod("p", owner("web", "Deployment")), at(0))
    again = new()
    again.remember(workloads(owners.flush(at(0))).values(), [])
    assert again.known(GroupKind("apps", "Deployment")) == {("ml", "web"): ("web-uid", "")}
    again.gone(synthetic(DEPLOYMENT), at(60), inferred=True, after=at(3))
    row = workloads(again.flush(at(60)))["web"]
    assert (row.status, row.end_after, row.labels) == ("Deleted", at(3), "{}")


def test_of_two_of_one_name_the_reflector_is_told_the_elder() -> None:
    owners = new()
    owners.seen(workload("job", "Job", uid="old"), at(0))
    owners.pod(pod("p", owner("job", "Job", uid="new")), at(1))
    assert owners.known(GroupKind("batch", "Job")) == {("ml", "job"): ("old", "")}


def test_a_root_that_ended_before_the_restart_stays_the_root() -> None:
    again = new()
    again.remember([], [stored_pod("web-uid")])
    again.pod(POD, at(1))
    told = again.flush(at(1))
    assert told.roots == {}
    assert again.root_of("web-1-uid") == "web-uid"
    again.seen(REPLICA_SET, at(2))
    assert again.flush(at(2)).roots == {}
    assert again.root_of("web-1-uid") == "web-uid"
