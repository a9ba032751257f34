"""One real control plane for all tests of a session that need one, and small ways to break it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.lab.toolchain import LabUnavailableError


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A running lab. Who stops a part of it starts it again. Tests that use it are `slow`."""
    try:
        running = Lab(name="tests")
    except LabUnavailableError as error:
        pytest.skip(f"no lab here: {error.message}")
    with running:
        yield running
