"""What holds for every test: property tests are judged by what they find, never by how long they take, and a test that
starts a service in this process leaves the logs as they were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from bayplan.model.clock import SystemClock
from bayplan.service.logging import LOGS
from bayplan.service.settings import LogSettings

settings.register_profile("bayplan", deadline=None)
settings.load_profile("bayplan")


@pytest.fixture(autouse=True)
def logs_as_at_the_start() -> Iterator[None]:
    """Levels, format, clock and stream belong to the process, so one test could silence another."""
    yield
    LOGS.configure(LogSettings(), SystemClock())
