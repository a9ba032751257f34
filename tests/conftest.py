"""What holds for every test: property tests are judged by what they find, never by how long they take, and a test that
starts a service in this process leaves the logs as they were."""

from __future__ import annotations

import io
import signal
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import settings

from bayplan.model.clock import SystemClock, VirtualClock
from bayplan.service.levels import Levels
from bayplan.service.logging import LOGS
from bayplan.service.settings import LogSettings

settings.register_profile("bayplan", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=25)
settings.load_profile("bayplan")

Logged = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True, scope="session")
def signals_as_a_terminal_gives_them() -> None:
    """In the background, or under nohup, some are ignored, and processes that a test starts would ignore them too."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def logs_as_at_the_start() -> Iterator[None]:
    """Levels, format, clock and stream belong to the process, so one test could silence another."""
    yield
    LOGS.configure(LogSettings(), SystemClock())


@pytest.fixture
def logged() -> Logged:
    """All lines that were logged since, at debug."""
    stream = io.StringIO()
    LOGS.configure(LogSettings(format="json", levels=Levels.parse("debug,asyncio=error")), VirtualClock(), stream)
    return lambda: [msgspec.json.decode(line) for line in stream.getvalue().splitlines()]
