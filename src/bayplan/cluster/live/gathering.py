"""Pieces of a stream, as many together as have come.

A piece is some pods; whoever handles each alone pays for waking up that often. A task of its own reads ahead while the
consumer is busy, so what is handed over together is as much as the consumer is slow, and bounded: beyond that the
reader waits, and TCP holds the server back. Pieces stay as they are: joining megabytes costs more than it saves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

_MOST = 1 << 20
"""Bytes that are read ahead."""


class _Ahead:
    """What has been read and not been taken."""

    def __init__(self) -> None:
        self.held: list[bytes] = []
        self.ended = False
        self.news, self.room = asyncio.Event(), asyncio.Event()

    async def read(self, stream: AsyncGenerator[bytes]) -> None:
        """Until the stream ends. Raises what it raises."""
        size = 0
        try:
            async with aclosing(stream) as pieces:
                async for piece in pieces:
                    size = size + len(piece) if self.held else len(piece)
                    self.held.append(piece)
                    self.news.set()
                    if size >= _MOST:
                        self.room.clear()
                        await self.room.wait()
        finally:
            self.ended = True
            self.news.set()

    def take(self) -> list[bytes]:
        """All that is there."""
        taken, self.held = self.held, []
        if not self.ended:
            self.news.clear()
        self.room.set()
        return taken


async def gathered(stream: AsyncGenerator[bytes]) -> AsyncGenerator[list[bytes]]:
    """The same stream, what came together given together. What came before an error is given before it is raised."""
    ahead = _Ahead()
    reading = asyncio.create_task(ahead.read(stream), name="reading ahead")
    try:
        while True:
            await ahead.news.wait()
            if not ahead.held:
                break
            yield ahead.take()
        await reading
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
