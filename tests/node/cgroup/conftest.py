"""Worlds as fixtures: each contract test runs in both fakes and on this machine, each kernel test on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .worlds import FakeWorld, RealWorld, World, open_real, real_version

REAL = f"real-{real_version()}"


@pytest.fixture(params=["fake-1", "fake-2", REAL])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """One of the worlds."""
    if request.param == REAL:
        yield from open_real()
    else:
        yield FakeWorld(int(request.param[-1]))


@pytest.fixture(params=[REAL])
def machine() -> Iterator[RealWorld]:
    """This machine's own control groups."""
    yield from open_real()
