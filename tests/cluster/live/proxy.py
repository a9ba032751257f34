"""A TCP proxy that breaks on command: it cuts connections, goes silent, or is not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Proxy:
    """Forwards to a port on loopback. `frozen` holds everything back without closing anything."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.connections = 0

    async def open(self) -> None:
        """Listen; after the first time, on the same port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and cut everything: connections are refused."""
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()
        await asyncio.gather(*self._tasks)

    def cut(self) -> None:
        """Reset all connections."""
        for writer in self._writers:
            writer.transport.abort()

    def freeze(self) -> None:
        """Forward nothing from now on, on any connection there is; new ones are accepted and flow."""
        self._flowing.clear()
        self._flowing = asyncio.Event()
        self._flowing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        flowing = self._flowing
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        tasks = [
            asyncio.ensure_future(self._pump(flowing, reader, far_writer)),
            asyncio.ensure_future(self._pump(flowing, far_reader, writer)),
        ]
        self._tasks.update(tasks)
        await asyncio.wait(tasks)
        self._tasks.difference_update(tasks)
        self._writers -= {writer, far_writer}

    async def _pump(self, flowing: asyncio.Event, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if not flowing.is_set():
                    await self._forever(writer)
                writer.write(data)
                await writer.drain()
        with suppress(OSError):
            writer.close()

    async def _forever(self, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await writer.wait_closed()


@asynccontextmanager
async def proxied(target: int) -> AsyncIterator[Proxy]:
    """A running proxy to a port."""
    proxy = Proxy(target)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()
