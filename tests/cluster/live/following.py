"""A consumer of a reflector that keeps the story and what it makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from bayplan.cluster.live.reflector import Batch

_PATIENCE = 60  # seconds, so that a lost event fails a test instead of hanging it


class Follower:
    """What has been told so far: the story, and who is alive by name. Each change must fit the ones before it."""

    def __init__(self, batches: AsyncIterator[Batch]) -> None:
        self._batches = batches
        self.story: list[tuple[str, str]] = []
        self.inferred: list[str] = []
        self.alive: dict[str, str] = {}
        self.data: dict[str, object] = {}
        self.syncs = 0
        self.revision = ""

    async def until(self, condition: Callable[[], bool]) -> None:
        """Read on until it holds."""
        async with asyncio.timeout(_PATIENCE):
            while not condition():
                self._take(await anext(self._batches))

    def _take(self, batch: Batch) -> None:
        self.syncs += batch.synced
        self.revision = batch.revision
        for change in batch.changes:
            item, name = change.object, change.object.name
            assert (self.alive.get(name) == item.uid) == (change.type != "ADDED"), (change.type, item)
            self.story.append((change.type, name))
            if change.type == "DELETED":
                del self.alive[name]
                self.inferred += [name] if change.synthetic else []
            else:
                self.alive[name] = item.uid
                self.data[name] = item.doc().get("data")
