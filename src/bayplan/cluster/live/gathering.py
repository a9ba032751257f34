"""Pieces of a stream, as many together as have come.

TLS gives records of 16 KB, two pods; whoever handles each record alone pays for waking up once for two pods. A task of
its own reads ahead while the consumer is busy, so pieces are as large as the consumer is slow, and bounded: beyond
that the reader waits, and TCP holds the server back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

_MOST = 1 << 20
"""Bytes that are read ahead."""


class _Ahead:
    """What has been read and not been taken."""

    def __init__(self) -> None:
        self.held: list[bytes] = []
        self.ended = False
        self.news, self.room = asyncio.Event(), asyncio.Event()

    async def read(self, pieces: AsyncIterator[bytes]) -> None:
        """Until the stream ends. Raises what it raises."""
        size = 0
        try:
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

    def take(self) -> bytes:
        """All that is there."""
        whole, self.held = b"".join(self.held), []
        if not self.ended:
            self.news.clear()
        self.room.set()
        return whole


async def gathered(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The same stream in larger pieces. What came before an error is given before it is raised."""
    ahead = _Ahead()
    reading = asyncio.create_task(ahead.read(pieces), name="reading ahead")
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
