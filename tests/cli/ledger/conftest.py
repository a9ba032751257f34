"""The ledger of a known day in a file, and the way to ask it as from a shell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from bayplan.cli.main import main
from tests.cli.serving import Told
from tests.ledger.books import a_day, written

Ask = Callable[..., Told]


@pytest.fixture(scope="session")
def day(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of the day's ledger. Its last word is old, so its own midnight is its present."""
    path = tmp_path_factory.mktemp("ledger") / "day.db"

    async def write() -> None:
        await (await written(str(path), a_day())).close()

    asyncio.run(write())
    return f"sqlite:///{path}"


@pytest.fixture
def ask(day: str, away: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """`ask("usage", "--by", "user")`: asks the day's ledger unless --database names another."""
    monkeypatch.setenv("COLUMNS", "100")

    def asked(*arguments: str) -> Told:
        capfd.readouterr()
        where = () if "--database" in arguments else ("--database", day)
        return Told(main(["ledger", *arguments, *where]), *capfd.readouterr())

    return asked
