"""The way into the store: who is cancelled leaves no thread behind at the spool's file."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from bayplan.ledger.outlet import Outlet
from bayplan.ledger.rows import Rows, StreamPosition
from bayplan.ledger.spool import Spool, SpoolFullError
from bayplan.model.clock import VirtualClock
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.test_spool import version


class SlowSpool(Spool):
    """One whose disk takes its time."""

    def __init__(self, path: Path, *, full: bool = False) -> None:
        super().__init__(path, most_bytes=1 << 20)
        self.begun, self.may_end = threading.Event(), threading.Event()
        self._full_by_then = full

    def append(self, rows: Rows, base: Mapping[str, StreamPosition] | None = None) -> None:
        self.begun.set()
        assert self.may_end.wait(30)
        if self._full_by_then:
            raise SpoolFullError("full")
        super().append(rows, base)


@pytest.mark.parametrize("full", [pytest.param(False, id="it is kept"), pytest.param(True, id="there is no room")])
async def test_who_is_cancelled_while_the_disk_works_waits_for_it(tmp_path: Path, full: bool) -> None:
    store, spool = MemoryStore(), SlowSpool(tmp_path / "s", full=full)
    store.down = True
    putting = asyncio.create_task(Outlet(store, spool, VirtualClock()).put(version(1)))
    assert await asyncio.to_thread(spool.begun.wait, 30)
    for _ in range(2):  # who is in a hurry may cancel again
        putting.cancel()
        await asyncio.sleep(0.01)
    assert not putting.done()
    spool.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await putting
    spool.close()
    assert len(Spool(tmp_path / "s", most_bytes=1 << 20)) == (0 if full else 1)
