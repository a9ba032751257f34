"""pytest fixtures for projects that test against bayplan; pytest finds them by the entry point `pytest11`.

Every pytest run of an environment with bayplan in it imports this module: so it imports nothing of ours until a test
asks for a fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from bayplan.cluster.embedded.engine import EmbeddedCluster
    from bayplan.model.clock import VirtualClock


@pytest.fixture
def bayplan_clock() -> VirtualClock:
    """A clock that stands at 2026-01-01T00:00:00Z until it is told to move; `bayplan_cluster` goes by it."""
    from bayplan.model.clock import VirtualClock

    return VirtualClock()


@pytest.fixture
def bayplan_cluster(bayplan_clock: VirtualClock) -> EmbeddedCluster:
    """A cluster of its own for the test, without nodes, in virtual time."""
    from bayplan.testing.fake import fake_cluster

    return fake_cluster(clock=bayplan_clock)
