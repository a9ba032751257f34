"""Fixtures of the tests of VMs."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.live.faults import Unreachable
from bayplan.testing import fake_cluster
from tests.cluster.lab_fixture import lab

__all__ = ["lab"]


class Flaky(EmbeddedCluster):
    """A cluster whose API can be taken away."""

    gone = False

    def _reach(self) -> None:
        if self.gone:
            raise Unreachable("https://cluster: connection refused")

    async def list(self, *given: Any, **more: Any) -> Any:
        self._reach()
        return await super().list(*given, **more)

    async def create(self, *given: Any, **more: Any) -> Any:
        self._reach()
        return await super().create(*given, **more)

    async def evict(self, *given: Any, **more: Any) -> None:
        self._reach()
        await super().evict(*given, **more)


@pytest.fixture
def flaky() -> Flaky:
    """A cluster that is there, as yet."""
    found = fake_cluster()
    found.__class__ = Flaky
    assert isinstance(found, Flaky)
    return found
