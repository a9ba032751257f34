"""Settings that a process of its own shows best: those of the API server's client, and of the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.process.running import Process, ledger, listens, served
from tests.ledger.settings.effects import sees, silence

pytestmark = pytest.mark.slow

_SILENT = """\
apiVersion: v1
kind: Config
current-context: silent
clusters: [{name: silent, cluster: {server: "http://127.0.0.1:PORT"}}]
users: [{name: nobody, user: {}}]
contexts: [{name: silent, context: {cluster: silent, user: nobody}}]
"""


@sees("ledger.request_timeout")
async def test_an_api_server_that_says_nothing_is_told_as_away_after_so_long(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    words = ("ledger", "run", "--database", f"sqlite:///{tmp_path}/ledger.db", "--kubeconfig", kubeconfig)
    with silence() as port:
        kubeconfig.write_text(_SILENT.replace("PORT", str(port)))
        async with Process(tmp_path, *words, request_timeout="500ms") as process:
            told = await process.tells("waiting for the cluster")  # by default later than this test waits
            assert told["why"].startswith("http://127.0.0.1")


@sees("ledger.watch_stall")
async def test_a_watch_without_a_word_is_taken_up_anew_after_so_long(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as world,
        ledger(tmp_path, world, f"sqlite:///{tmp_path}/ledger.db", watch_stall="500ms") as process,
    ):
        assert (await process.tells("watch taken up anew"))["why"] == "stalled"


@sees("log.levels")
@pytest.mark.parametrize(
    ("levels", "told"),
    [
        pytest.param("error", set(), id="error alone says nothing of a good day"),
        pytest.param("ledger.process=info,error", {"recording started"}, id="a room of its own"),
        pytest.param("ledger=debug,error", {"recording started", "change taken"}, id="debug says each decision"),
    ],
)
async def test_levels(tmp_path: Path, levels: str, told: set[str]) -> None:
    async with served(tmp_path) as world:
        words = ("ledger", "run", "--database", f"sqlite:///{tmp_path}/ledger.db", "--kubeconfig", world.kubeconfig)
        async with Process(tmp_path, "--set", f"log.levels={levels}", *words, election="off") as process:
            await listens(f"sqlite:///{tmp_path}/ledger.db")
            assert await process.end() == 0
            assert {line["msg"] for line in process.lines()} & {"recording started", "change taken"} == told
