"""The agent's part that lets groups burst: the loop with its keeper, and what an earlier process left, undone."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bayplan.agent.burst import BurstAgent
from bayplan.agent.keeping import Keeper
from bayplan.model.clock import Clock, Instant


class Bursting:
    """An `Enforcer`."""

    name = "burst"

    def __init__(
        self,
        agent: BurstAgent,
        clock: Clock,
        journal: Path,
        *,
        cgroup_root: str = "/sys/fs/cgroup",
        lasts: int | None = None,
    ) -> None:
        """`lasts`: microseconds from when it can burst; None: for ever."""
        self._agent, self._clock, self._journal = agent, clock, journal
        self._root, self._lasts = cgroup_root, lasts

    async def run(self, *, write: bool) -> None:
        """Let groups burst for so long or until cancelled; every limit is back when this returns.

        Raises KeeperLostError, also where the journal is in use or cannot be read.
        """
        if not write:
            await self._agent.run(self._until())
            return
        async with Keeper(self._journal, self._clock, self._agent.hear, root=self._root) as keeper:
            self._agent.keeping = keeper
            going = asyncio.create_task(self._agent.run(self._until()))
            lost = asyncio.create_task(keeper.lost())
            try:
                done, _ = await asyncio.wait([going, lost], return_when=asyncio.FIRST_COMPLETED)
            finally:
                going.cancel()
                lost.cancel()
                await asyncio.wait([going, lost])
            for each in done:
                each.result()

    def _until(self) -> Instant | None:
        return None if self._lasts is None else Instant(self._clock.now() + self._lasts)
