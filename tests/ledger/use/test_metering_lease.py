"""The loop lets old measurements go only while this process leads."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.ledger.outlet import Outlet
from tests.conftest import Logged
from tests.ledger.books import hour
from tests.ledger.shell.scenes import until
from tests.ledger.use.test_metering import MINUTE, Scene, all_of, scene

__all__ = ["scene"]


@pytest.mark.parametrize(
    ("leads", "left"),
    [
        pytest.param(True, [-2, -1, 0], id="who leads lets them go"),
        pytest.param(False, [-5, -4, -3, -2, -1, 0], id="who does not leaves them"),
    ],
)
async def test_old_measurements(scene: Scene, logged: Logged, leads: bool, left: list[int]) -> None:
    await scene.told(hour(13))
    await all_of(scene.loop())
    scene.outlet = Outlet(scene.store, scene.outlet.spool, scene.clock, may_write=lambda: leads)
    scene.outlet.away = True  # so that nothing is asked for
    loop = asyncio.create_task(scene.loop(retention=3 * MINUTE).run())
    await until(lambda: "measurements pruned" in {line["msg"] for line in logged()})
    loop.cancel()
    assert await scene.minutes() == left
