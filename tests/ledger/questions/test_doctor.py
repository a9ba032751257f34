"""Every finding of the doctor is provoked: by plain values, and in a real database beside a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from bayplan.cluster import kinds
from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.kinds import JOB, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Cluster
from bayplan.ledger.finalizers import FINALIZER
from bayplan.ledger.questions.asking import SILENCE, open_ledger
from bayplan.ledger.questions.doctor import checks
from bayplan.ledger.questions.doctor.checks import Live
from bayplan.ledger.questions.doctor.examine import ACCESS_REVIEW, ACCOUNT_REVIEW, Account, Examination, examine
from bayplan.ledger.questions.doctor.findings import CODES, Finding, Report
from bayplan.ledger.rights import Right
from bayplan.ledger.rows import Gap, Row
from bayplan.ledger.store.port import SchemaError, StoreRefusedError, StoreUnavailableError
from bayplan.ledger.store.reading import Readable
from bayplan.ledger.store.sql import SqlStore
from bayplan.model.clock import SECOND, Instant, VirtualClock, rfc3339
from bayplan.model.errors import BayplanError, Forbidden, ServerError
from bayplan.service.settings import LedgerSettings
from tests.ledger.books import CLUSTER, GPU, held, hour, pod, stream, workload, written

NOW = hour(24)


def _codes(findings: list[Finding] | tuple[Finding, ...]) -> list[str]:
    return [each.code for each in findings]


# --- the checks


@pytest.mark.parametrize(
    ("error", "codes"),
    [
        pytest.param(None, [], id="it opens"),
        pytest.param(StoreUnavailableError("refused"), ["LD001"], id="it cannot be reached"),
        pytest.param(StoreRefusedError("wrong password"), ["LD002"], id="it refuses"),
        pytest.param(SchemaError("older", hint="migrate"), ["LD003"], id="its schema is another"),
    ],
)
def test_the_database(error: BayplanError | None, codes: list[str]) -> None:
    assert _codes(checks.database(error)) == codes


def test_rights_that_are_missing() -> None:
    lease = Right("coordination.k8s.io", "leases", "get", "kube-system", "bayplan-ledger")
    denied = (Right("apps", "replicasets", "watch"), Right("example.com", "trainers", "list"), lease)
    usual, custom, named = checks.rights({Right("", "pods", "list"): True, **dict.fromkeys(denied, False)}, "me")
    assert (usual.code, usual.what) == ("LD004", "me may not watch replicasets.apps")
    assert usual.remedy == "Apply what `bayplan ledger manifest` prints."
    assert custom.remedy == "bayplan ledger manifest --owners example.com/trainers ... | kubectl apply -f -"
    assert named.what == "me may not get leases.coordination.k8s.io bayplan-ledger in kube-system"


@pytest.mark.parametrize(
    ("streams", "codes"),
    [
        pytest.param([stream("pods", NOW)], [], id="heard just now"),
        pytest.param([stream("pods", Instant(NOW - SILENCE))], [], id="quiet, but not for too long"),
        pytest.param([stream("pods", Instant(NOW - SILENCE - 1))], ["LD006"], id="silent for too long"),
        pytest.param([], ["LD005"], id="never heard"),
        pytest.param([stream("pods", NOW, "west")], ["LD005"], id="another cluster's listener is none"),
        pytest.param(
            [stream("pods", NOW), stream("jobs.batch", hour(1))], [], id="one that nobody wants may be silent"
        ),
        pytest.param([stream("pods", NOW), stream("events", hour(1))], ["LD006"], id="one of those always wanted"),
    ],
)
def test_listeners(streams: list[Any], codes: list[str]) -> None:
    assert _codes(checks.listeners(streams, {(CLUSTER, "pods"): hour(0)}, NOW, SILENCE)) == codes


@pytest.mark.parametrize(
    ("owner", "root", "cluster", "codes"),
    [
        pytest.param("", "", CLUSTER, [], id="nobody made it"),
        pytest.param("trainer-job", "trainer-job", CLUSTER, [], id="its owner is known"),
        pytest.param("other", "other", CLUSTER, ["LD007"], id="its owner is not"),
        pytest.param("trainer-job", "trainer-job", "west", ["LD007"], id="an owner of another cluster is none"),
        pytest.param("trainer-job", "unseen-job", CLUSTER, ["LD007"], id="the top of its chain was never seen"),
        pytest.param("trainer-job", "fresh-job", CLUSTER, [], id="the top of its chain was heard of just now"),
    ],
)
def test_owners(owner: str, root: str, cluster: str, codes: list[str]) -> None:
    workloads = [
        workload("trainer"),
        workload("unseen", resource_version=0),
        workload("fresh", resource_version=0, created_at=NOW),
    ]
    pods = [pod("p", owner_uid=owner, root_uid=root, cluster=cluster)]
    assert _codes(checks.owners(pods, workloads, NOW)) == codes


def _object(kind: Kind = POD, **metadata: Any) -> Object:
    return Object.from_raw(kind, msgspec.json.encode({"metadata": {"name": "x", "namespace": "ns", **metadata}}))


@pytest.mark.parametrize(
    ("metadata", "codes"),
    [
        pytest.param({"finalizers": [FINALIZER]}, [], id="it is not being deleted"),
        pytest.param({"deletionTimestamp": rfc3339(hour(1)), "finalizers": ["a/b"]}, [], id="another's finalizer"),
        pytest.param({"deletionTimestamp": rfc3339(NOW), "finalizers": [FINALIZER]}, [], id="asked for just now"),
        pytest.param({"deletionTimestamp": rfc3339(hour(1)), "finalizers": [FINALIZER]}, ["LD008"], id="stuck"),
    ],
)
def test_finalizers(metadata: dict[str, Any], codes: list[str]) -> None:
    assert _codes(checks.finalizers([_object(JOB, **metadata)], FINALIZER, NOW)) == codes


@pytest.mark.parametrize(
    ("rows", "live", "codes"),
    [
        pytest.param([pod("p")], {"p": Live("vision/p", 1, hour(0), "Running", "")}, [], id="they agree"),
        pytest.param([pod("p")], {}, ["LD009"], id="the cluster has it not"),
        pytest.param([], {"p": Live("vision/p", 1, hour(0), "Running", "")}, ["LD010"], id="the ledger has it not"),
        pytest.param([], {"p": Live("vision/p", 1, NOW, "Pending", "")}, [], id="it was made just now"),
        pytest.param([pod("p")], {"p": Live("vision/p", 2, hour(0), "Failed", "")}, ["LD011"], id="phases differ"),
        pytest.param([pod("p")], {"p": Live("vision/p", 1, hour(0), "Running", "n")}, ["LD011"], id="nodes differ"),
        pytest.param(
            [pod("p", resource_version=3)],
            {"p": Live("vision/p", 2, hour(0), "Pending", "")},
            [],
            id="the ledger has heard more than the list",
        ),
    ],
)
def test_agreement(rows: list[Any], live: dict[str, Live], codes: list[str]) -> None:
    assert _codes(checks.agreement(rows, live, NOW)) == codes


def test_what_is_caught_up_with_is_no_fault() -> None:
    first, other = Finding("LD009", "a/b", "x"), Finding("LD009", "a/c", "x")
    assert checks.lasting([first], [first, other]) == [first]
    assert checks.lasting([first], []) == []


def test_gaps_and_contradictions() -> None:
    gap = Gap(cluster=CLUSTER, kind="pods", from_at=hour(1), to_at=hour(2), dropped=7, why="the spool was full")
    assert [each.what for each in checks.gaps([gap])] == [
        "7 states between 2026-01-01T01:00:00Z and 2026-01-01T02:00:00Z: the spool was full"
    ]
    ended = pod("p", end_at=hour(2))
    assert _codes(checks.contradictions([ended], [held("p", hour(1))])) == ["LD013"]
    assert checks.contradictions([ended], [held("q", hour(1))]) == []


def test_every_code_is_provoked_here() -> None:
    told = Path(__file__).read_text()
    assert [code for code in CODES if f'"{code}"' not in told] == []
    assert all(meaning.cure for meaning in CODES.values())


# --- the examination


class Allowing:
    """A cluster that answers reviews of rights by a list of what is denied, and refuses to list what it says so of."""

    def __init__(self, cluster: Cluster, denied: tuple[str, ...] = (), unlistable: tuple[str, ...] = ()) -> None:
        self._cluster, self._denied, self._unlistable = cluster, denied, unlistable
        self.asked: list[dict[str, str]] = []

    async def create(self, kind: Kind, body: Any, namespace: str = "", **how: Any) -> Object:
        assert kind == (ACCOUNT_REVIEW if "user" in body["spec"] else ACCESS_REVIEW)
        asked = body["spec"]["resourceAttributes"]
        self.asked.append(asked)
        allowed = f"{asked['verb']} {asked['resource']}" not in self._denied
        return Object.from_raw(kind, msgspec.json.encode({"metadata": {}, "status": {"allowed": allowed}}))

    async def list(self, kind: Kind, namespace: str | None = None, **how: Any) -> Any:
        if kind.plural in self._unlistable:
            raise Forbidden(f"{kind.plural} is forbidden")
        return await self._cluster.list(kind, namespace, **how)


@pytest.fixture
async def cluster() -> Cluster:
    made = embedded_cluster(clock=VirtualClock(hour(0)), seed=1)
    container = {"name": "c", "image": "i", "resources": {"limits": {GPU: "1"}}}
    await made.create(kinds.POD, {"metadata": {"name": "p"}, "spec": {"containers": [container]}}, "default")
    return made


async def _uid(cluster: Cluster) -> Object:
    return await cluster.get(kinds.POD, "p", "default")


def _sound(obj: Object) -> list[Row]:
    """A ledger that says what the cluster says."""
    row = pod("p", "default", uid=obj.uid, resource_version=obj.version, phase="Pending")
    return [row, *_heard()]


def _heard(at: Instant = NOW, cluster: str = CLUSTER) -> list[Row]:
    return [stream(kind, at, cluster) for kind in ("pods", "nodes", "events")]


async def _examined(path: Path, rows: list[Row] | None, beside: Any, **more: Any) -> Report:
    url = f"sqlite:///{path / 'ledger.db'}"
    if rows is not None:
        await (await written(str(path / "ledger.db"), rows)).close()
    opened: list[SqlStore] = []

    async def opening() -> Readable:
        opened.append(await open_ledger(url))
        return opened[0]

    try:
        return await examine(opening, beside, Examination(now=NOW, pause=0, **more))
    finally:
        for store in opened:
            await store.close()


async def test_a_sound_ledger_has_no_findings(cluster: Cluster, tmp_path: Path) -> None:
    report = await _examined(tmp_path, _sound(await _uid(cluster)), Allowing(cluster))
    assert (report.findings, report.skipped, report.healthy) == ((), (), True)
    assert set(report.checked) >= {"database", "listeners", "owners", "rights", "finalizers", "agreement"}


async def test_a_ledger_that_disagrees_with_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    rows = [pod("ghost", "default"), stream("pods", hour(1)), stream("nodes", NOW), stream("events", NOW)]
    report = await _examined(tmp_path, [*rows], Allowing(cluster, denied=("watch pods",)))
    assert sorted(_codes(report.findings)) == ["LD004", "LD006", "LD009", "LD010"]
    assert not report.healthy


async def test_a_missing_file_and_a_missing_migration(cluster: Cluster, tmp_path: Path) -> None:
    assert _codes((await _examined(tmp_path, None, None)).findings) == ["LD002"]
    (tmp_path / "ledger.db").touch()
    report = await _examined(tmp_path, None, Allowing(cluster))
    assert _codes(report.findings) == ["LD003"]
    assert report.findings[0].remedy == "bring it up to date: bayplan ledger migrate --database URL"
    assert "rights" in report.checked  # the cluster is still asked


async def test_a_database_that_cannot_be_reached(tmp_path: Path) -> None:
    async def opening() -> Readable:
        return await open_ledger("postgresql://u@127.0.0.1:1/x")

    report = await examine(opening, None, Examination(now=NOW))
    assert _codes(report.findings) == ["LD001"]


async def test_a_schema_that_is_newer(tmp_path: Path) -> None:
    store = await written(str(tmp_path / "ledger.db"), [])
    async with store.engine.begin() as connection:
        await connection.execute(sa.text("UPDATE bayplan_ledger_version SET version_num = '9999'"))
    await store.close()
    (found,) = (await _examined(tmp_path, None, None)).findings
    assert (found.code, "newer" in found.what) == ("LD003", True)


async def test_what_the_cluster_refuses_is_skipped_and_said(cluster: Cluster, tmp_path: Path) -> None:
    report = await _examined(tmp_path, _sound(await _uid(cluster)), Allowing(cluster, unlistable=("pods",)))
    assert report.skipped == ("finalizers of pods: pods is forbidden", "agreement: pods is forbidden")


async def test_a_cluster_that_cannot_be_asked_is_a_warning(cluster: Cluster, tmp_path: Path) -> None:
    class Down(Allowing):
        async def create(self, kind: Kind, body: Any, namespace: str = "", **how: Any) -> Object:
            raise ServerError("no route to host")

    report = await _examined(tmp_path, _sound(await _uid(cluster)), Down(cluster))
    assert (_codes(report.findings), report.healthy) == (["LD014"], True)


async def test_stuck_workloads_of_any_kind_are_found(cluster: Cluster, tmp_path: Path) -> None:
    stuck = _object(JOB, deletionTimestamp=rfc3339(Instant(NOW - 3600 * SECOND)), finalizers=[FINALIZER])

    class Holding(Allowing):
        async def list(self, kind: Kind, namespace: str | None = None, **how: Any) -> Any:
            found = await super().list(kind, namespace, **how)
            return msgspec.structs.replace(found, items=(stuck,)) if kind == JOB else found

    rows = [
        *_sound(await _uid(cluster)),
        workload("trainer"),
        stream("jobs.batch", NOW),
        workload("odd", kind="Trainer", group_version="example.com/v1"),
    ]
    report = await _examined(tmp_path, rows, Holding(cluster))
    assert _codes(report.findings) == ["LD008"]
    assert report.skipped == ("finalizers of Trainer (example.com/v1): the cluster does not have the kind",)


async def test_several_clusters_need_a_name_to_be_compared(cluster: Cluster, tmp_path: Path) -> None:
    rows = [*_sound(await _uid(cluster)), *_heard(NOW, "west")]
    both = await _examined(tmp_path, rows, Allowing(cluster))
    assert [each.partition(":")[0] for each in both.skipped] == ["agreement"]
    for said in ({"cluster": CLUSTER}, {"live": CLUSTER}):
        assert (await _examined(tmp_path, None, Allowing(cluster), **said)).skipped == ()
    other = await _examined(tmp_path, None, Allowing(cluster), live="north")
    assert [each.partition(":")[0] for each in other.skipped] == ["agreement"]


async def test_rows_that_contradict_and_owners_that_are_missing(tmp_path: Path) -> None:
    rows: list[Row] = [
        pod("p", owner_uid="nobody", end_at=hour(2)),
        held("p", hour(1)),
        Gap(cluster=CLUSTER, kind="pods", from_at=hour(1), to_at=hour(2)),
    ]
    report = await _examined(tmp_path, rows, None)
    assert sorted(_codes(report.findings)) == ["LD005", "LD005", "LD005", "LD007", "LD012", "LD013"]


@pytest.mark.parametrize(
    ("heard", "code"),
    [
        pytest.param([], "LD005", id="it never spoke"),
        pytest.param([stream("jobs.batch", hour(1))], "LD006", id="it spoke for the last time hours ago"),
    ],
)
async def test_a_kind_of_which_a_workload_goes_on_has_a_listener(heard: list[Row], code: str, tmp_path: Path) -> None:
    report = await _examined(tmp_path, [*_heard(), workload("trainer"), *heard], None)
    assert [(each.code, each.subject) for each in report.findings] == [(code, f"{CLUSTER}: jobs.batch")]


@pytest.mark.parametrize(
    ("heard", "live", "found"),
    [
        pytest.param(_heard(hour(1)), None, [("LD015", CLUSTER)], id="a run that has ended is told once, and no fault"),
        pytest.param(
            [*_heard(hour(1), "west"), *_heard()], CLUSTER, [("LD015", "west")], id="another than the live one is over"
        ),
        pytest.param(
            _heard(hour(1)),
            CLUSTER,
            [("LD006", f"{CLUSTER}: {kind}") for kind in ("events", "nodes", "pods")],
            id="of the live one the listeners are dead",
        ),
    ],
)
async def test_a_cluster_that_nobody_records_any_more(
    heard: list[Row], live: str | None, found: list[tuple[str, str]], tmp_path: Path
) -> None:
    report = await _examined(tmp_path, heard, None, live=live)
    assert sorted((each.code, each.subject) for each in report.findings) == found
    assert report.healthy == (found[0][0] == "LD015")


async def test_rights_follow_from_settings_and_from_the_owners_that_there_are(cluster: Cluster, tmp_path: Path) -> None:
    allowing = Allowing(cluster, denied=("patch pods", "watch jobs"))
    rows = [*_sound(await _uid(cluster)), workload("trainer"), stream("jobs.batch", NOW)]
    settings = LedgerSettings(finalizers="on", election="off")
    report = await _examined(tmp_path, rows, allowing, settings=settings, account=Account("bayplan", "ledger"))
    assert [each.what for each in report.findings] == [
        "bayplan/ledger may not patch pods",
        "bayplan/ledger may not watch jobs.batch",
    ]
    assert not {"leases", "services", "rayjobs"} & {each["resource"] for each in allowing.asked}


def test_the_page_lists_every_code_with_its_cure() -> None:
    page = (Path(__file__).parents[3] / "docs/ledger.md").read_text()
    rows = [f"| `{code}` | {each.level} | {each.title} | {each.cure} |" for code, each in CODES.items()]
    assert [row for row in rows if row not in page] == []
