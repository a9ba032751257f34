"""Worlds as fixtures: each contract test runs in all of them, each kernel test in the machine's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .worlds import FakeWorld, RealWorld, World, open_real, real_version


@pytest.fixture(params=["fake-1", "fake-2", "real-1", "real-2"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """One of the four worlds."""
    kind, _, version = str(request.param).partition("-")
    if kind == "fake":
        yield FakeWorld(int(version))
    else:
        yield from open_real(int(version))


@pytest.fixture(params=["real"])
def machine() -> Iterator[RealWorld]:
    """This machine's own control groups."""
    yield from open_real(real_version() or 2)
