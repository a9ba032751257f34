"""The commands of `bayplan ledger` that ask: what a person reads, what a program reads, what is refused."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import sqlite3
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.ledger import timeline, usage
from bayplan.cli.ledger.idle import time_text
from bayplan.ledger.questions.asking import open_ledger
from bayplan.ledger.questions.idle import idle as ask_idle
from bayplan.ledger.questions.naming import find_workload
from bayplan.ledger.questions.timeline import timeline as ask_timeline
from bayplan.ledger.questions.usage import usage as ask_usage
from bayplan.ledger.questions.windows import Window
from bayplan.ledger.rows import NodeRoomPeriod
from bayplan.model.clock import SystemClock
from tests.cli.ledger.conftest import Ask
from tests.cli.serving import Serving
from tests.ledger.books import HOUR, a_day, elsewhere, hour, stream, workload, written

SILENT = "the ledger's last word is from 2026-01-02T00:00:00Z: that is taken as the present\n"


@pytest.mark.parametrize(
    "line",
    [
        "get pods -A",
        "get po -n vision --at 2026-01-01T05:00:00Z -o wide",
        "get pods -n vision --at 2026-01-01T05:00:00Z -o csv",
        "get workloads -A --at -19h",
        "get workloads -A --at -19h -o wide",
        "get nodes",
        "get nodes --at 2026-01-01T06:30:00Z -o wide",
        "get events -A --for 24h",
        "usage",
        "usage --by user,model --since 24h --step 6h",
        "usage --by workload --since 24h -o csv",
        "usage --by label:team --since 24h -o yaml",
        "idle",
        "idle -o wide --beside cpu=4,memory=48Gi",
        "idle -o csv",
        "idle -o json",
        "idle --since 24h",
        "idle --since 24h --step 12h -o json",
        "idle --since 24h --step 12h -o csv",
        "idle --held --price H100=3.5",
        "idle --held --for 2h --below 50% -o yaml",
        "idle --held --price H100=3.5 --price A100=2 -o csv",
        "idle --held -o json",
        "why-pending trainer-0",
        "why-pending vision/trainer-0 -o json",
        "why-pending trainer",
        "why-pending trainer -o wide",
        "why-gone trainer-0 -o csv",
        "why-gone serve-0",
        "why-gone serve-0 -o wide",
        "why-gone trainer-0 -o yaml",
        "timeline trainer",
        "timeline notebook -o json",
    ],
)
def test_what_is_answered(ask: Ask, line: str, snapshot: SnapshotAssertion) -> None:
    told = ask(*line.split())
    assert told.code == 0
    assert told.out == snapshot
    assert told.err.replace("as of 2026-01-01T05:00:00Z\n", "").replace("as of 2026-01-01T06:30:00Z\n", "") == SILENT


def test_the_hours_of_a_csv_add_up_to_its_total_exactly(ask: Ask) -> None:
    def seconds(*more: str) -> Counter[str]:
        rows = csv.DictReader(io.StringIO(ask("usage", "--by", "namespace", "--since", "23h", *more, "-o", "csv").out))
        found: Counter[str] = Counter()
        for row in rows:
            found[row["NAMESPACE"]] += Decimal(row["GPU-SECONDS"])  # type: ignore[assignment]  # exact, as money is
        return found

    assert seconds("--step", "1h") == seconds("--step", "7m") == seconds()


def test_a_pod_of_the_past_is_a_whole_document(ask: Ask) -> None:
    told = ask("get", "pods", "-n", "vision", "--at", "2026-01-01T02:10:00Z", "-o", "json")
    (pod,) = json.loads(told.out)["items"]
    assert (pod["metadata"]["name"], pod["status"]["phase"], pod["spec"]["nodeName"]) == (
        "trainer-0",
        "Pending",
        "a100-1",
    )
    assert (
        yaml.safe_load(ask("get", "pods", "-n", "lab", "-o", "yaml").out)["items"][0]["metadata"]["name"] == "notebook"
    )


def test_nothing_there_is_said_on_standard_error(ask: Ask) -> None:
    assert ask("get", "pods") == (0, "", f"{SILENT}No resources found in default namespace.\n")
    assert ask("usage", "-n", "nobody").err == f"{SILENT}No GPU was held in that time\n"
    assert ask("idle", "--held", "-n", "nobody").err == f"{SILENT}All GPUs that are held are used\n"


def test_held_says_what_it_cannot_say(ask: Ask) -> None:
    told = ask("idle", "--held", "--price", "H200=4")
    assert told.err == f"{SILENT}--price H200: no GPU of that model is among them; there are A100, H100\n"
    unmeasured = ask("idle", "--held", "--until", "2026-01-01T19:00:00Z", "-o", "csv")
    assert "none of these GPUs is measured: name a Prometheus" in unmeasured.err
    assert unmeasured.out.splitlines()[1].endswith("no data,no data,no data,a100-1,no data")


def test_what_is_stranded_is_not_known_from_before_it_was_kept(
    ask: Ask, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    async def write() -> None:
        rows = [row for row in a_day() if not isinstance(row, NodeRoomPeriod)]
        await (await written(str(tmp_path / "old.db"), rows)).close()

    asyncio.run(write())
    database = ("--database", f"sqlite:///{tmp_path / 'old.db'}")
    flags = ("", "-o csv", "--since 24h", "--since 24h --step 12h")
    assert "\n".join(ask("idle", *each.split(), *database).out for each in flags) == snapshot
    items = json.loads(ask("idle", "-o", "json", *database).out)["items"]
    assert [(each["idle"], each["stranded"], each["why"]) for each in items] == [(12_000, None, ""), (6000, None, "")]


def test_several_clusters_are_told_apart(ask: Ask, tmp_path: Path) -> None:
    async def write() -> None:
        await (await written(str(tmp_path / "two.db"), [*a_day(), *elsewhere(a_day(), "west")])).close()

    asyncio.run(write())
    database = ("--database", f"sqlite:///{tmp_path / 'two.db'}")
    assert [line.split()[0] for line in ask("get", "pods", "-A", *database).out.splitlines()] == [
        "CLUSTER",
        *["east"] * 2,
        *["west"] * 2,
    ]
    one = ask("get", "nodes", "--cluster", "west", *database).out
    assert one.splitlines()[0].split()[0] == "NAME"
    parts = [
        json.loads(ask("usage", "--cluster", name, "-o", "json", *database).out) for name in ("east", "west", "all")
    ]
    east, west, both = (part["gpuNanoseconds"] for part in parts)
    assert east + west == both


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(["get", "secrets"], 2, 'expected pods, workloads, nodes or events; got "secrets"', id="a kind"),
        pytest.param(["get", "pods", "--at", "whenever"], 2, "expected a time such as", id="a time"),
        pytest.param(["usage", "--by", "colour"], 1, "colour: nothing that GPU-hours are counted by", id="a dimension"),
        pytest.param(["usage", "--since", "-5h", "--until", "-6h"], 0, "", id="since counts from until"),
        pytest.param(["usage", "--since", "now"], 1, "ends before it begins", id="a window"),
        pytest.param(["usage", "--step", "0h"], 2, "expected a span", id="a step"),
        pytest.param(["usage", "--cluster", "north"], 1, "north: the ledger has no such cluster", id="a cluster"),
        pytest.param(["idle", "--step", "1h"], 2, "--step goes with --since", id="a step without a window"),
        pytest.param(["idle", "--beside", "4"], 2, "such as cpu=4,memory=16Gi", id="an amount of nothing"),
        pytest.param(["idle", "--beside", "cpu=lots"], 2, "such as cpu=4,memory=16Gi", id="an amount that is none"),
        pytest.param(["idle", "--beside", "cpu=-1"], 2, "such as cpu=4,memory=16Gi", id="an amount below zero"),
        pytest.param(
            ["idle", "--beside", "disk=1Gi"], 2, "such as cpu=4,memory=16Gi", id="an amount of something else"
        ),
        pytest.param(["idle", "--beside", "cpu=1,cpu=2"], 2, "such as cpu=4,memory=16Gi", id="an amount said twice"),
        pytest.param(["idle", "--held", "--below", "1.5"], 2, "expected a share such as 10%", id="a share"),
        pytest.param(["idle", "--held", "--price", "H100"], 2, "expected MODEL=PRICE", id="a price"),
        pytest.param(["idle", "--held", "--price", "H100=NaN"], 2, "expected MODEL=PRICE", id="a price that is none"),
        pytest.param(["why-gone", "nobody"], 1, "the ledger knows no such GPU pod", id="a name"),
        pytest.param(["timeline", "nobody"], 1, "the ledger knows no such workload or GPU pod", id="a workload"),
        pytest.param(["usage", "--database", "nonsense"], 1, "the database's URL cannot be read", id="a URL"),
        pytest.param(["usage", "--database", "oracle://h/d"], 1, "oracle: is no database", id="a database"),
        pytest.param(["usage", "--database", "sqlite:////none/x.db"], 1, "there is no such file", id="a missing file"),
        pytest.param(["usage", "--database", "postgresql://u@127.0.0.1:1/d"], 1, "127.0.0.1:1/d: ", id="a server"),
    ],
)
def test_what_cannot_be_answered_is_one_clear_line(ask: Ask, arguments: list[str], code: int, message: str) -> None:
    told = ask(*arguments)
    assert told.code == code
    assert message in told.err
    assert "Traceback" not in told.err
    assert sum(line.startswith("error: ") for line in told.err.splitlines()) == (code != 0)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        pytest.param(None, "it has no ledger yet", id="not migrated"),
        pytest.param("9999", "newer than this program's", id="newer"),
    ],
)
def test_a_schema_that_is_not_ours_is_one_clear_line_and_nothing_is_written(
    ask: Ask, tmp_path: Path, version: str | None, message: str
) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        if version:
            connection.execute("CREATE TABLE bayplan_ledger_version (version_num VARCHAR(32))")
            connection.execute("INSERT INTO bayplan_ledger_version VALUES (?)", (version,))
    connection.close()
    before = path.read_bytes()
    told = ask("usage", "--database", f"sqlite:///{path}")
    assert (told.code, told.out, message in told.err) == (1, "", True)
    assert path.read_bytes() == before


def test_the_default_is_the_ledger_of_the_state_folder(ask: Ask, away: Path) -> None:
    told = ask("usage", "--database", "auto")
    assert told.code == 1
    assert f"sqlite:///{away}" in told.err
    assert "there is no such file" in told.err


def test_doctor_tells_code_and_cure_and_fails(ask: Ask, tmp_path: Path) -> None:
    async def write() -> None:
        heard = [stream("pods", SystemClock().now()), *(stream(kind, hour(1)) for kind in ("nodes", "events"))]
        await (await written(str(tmp_path / "ledger.db"), [*heard])).close()

    asyncio.run(write())
    database = ("--database", f"sqlite:///{tmp_path / 'ledger.db'}")
    told = ask("doctor", "--offline", *database)
    assert told.code == 1
    assert "LD006  error: A listener is dead" in told.out
    assert "cure: See that `bayplan ledger run` runs" in told.out
    items = json.loads(ask("doctor", "--offline", "-o", "json", *database).out)["items"]
    dead = [("LD006", f"east: {kind}") for kind in ("events", "nodes")]
    assert [(each["code"], each["subject"]) for each in items] == dead


def test_doctor_says_once_that_a_run_has_ended_and_does_not_fail(ask: Ask) -> None:
    told = ask("doctor", "--offline")
    assert (told.code, told.out.count("LD0"), told.out.count("LD015  warning: ")) == (0, 1, 1)
    assert "east: its last word is of 2026-01-02T00:00:00Z" in told.out


def test_doctor_without_a_cluster_says_so(ask: Ask) -> None:
    told = ask("doctor")
    assert "LD014  warning: The cluster cannot be asked" in told.out
    assert "skipped  what the cluster tells" in told.out


# --- pictures, for who looks at a terminal


def test_pictures(day: str, snapshot: SnapshotAssertion) -> None:
    async def drawn() -> list[str]:
        store = await open_ledger(day)
        window = Window(hour(0), hour(24), HOUR)
        shown = [
            usage.rendered(await ask_usage(store, ["namespace"], Window(hour(0), hour(24))), None, width=80),
            usage.rendered(await ask_usage(store, ["namespace"], window), None, width=80),
            time_text(await ask_idle(store, window), None, several=False, width=120),
            timeline.rendered(
                await ask_timeline(store, await find_workload(store, "trainer"), hour(24)), "wide", width=60
            ),
        ]
        await store.close()
        return shown

    assert "\n".join(asyncio.run(drawn())) == snapshot


def test_doctor_asks_the_cluster_too(
    ask: Ask, serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = SystemClock().now()

    async def write() -> None:
        heard = [stream(kind, now) for kind in ("pods", "nodes", "events", "deployments.apps")]
        rows = [*heard, workload("web", kind="Deployment", group_version="apps/v1")]
        await (await written(str(tmp_path / "ledger.db"), rows)).close()

    asyncio.run(write())
    monkeypatch.setenv("KUBECONFIG", str(serving.kubeconfig))
    database = ("--database", f"sqlite:///{tmp_path / 'ledger.db'}")
    told = ask("doctor", *database, "--cluster", "east")
    assert "skipped  agreement: it is not known which cluster" in ask("doctor", *database).out
    assert told == (
        0,
        "checked  database, listeners, owners, gaps, contradictions, rights, finalizers, agreement: no findings\n",
        "",
    )


_PAGES = [Path(__file__).parents[3] / "docs" / name for name in ("ledger.md", "ledger-utilisation.md")]
_SHOWN = [
    shown
    for page in _PAGES
    for shown in re.findall(r"^\$ bayplan ledger (.+?)\n(.*?)(?=^```|^\$ )", page.read_text(), re.M | re.S)
]


@pytest.mark.parametrize(("line", "shown"), _SHOWN, ids=[line for line, _ in _SHOWN])
def test_the_page_shows_what_is_answered(ask: Ask, line: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert ask(*line.split()).out.startswith(shown)
