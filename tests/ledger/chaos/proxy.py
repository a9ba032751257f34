"""A TCP proxy that can stall, cut, hang up and let connections die: what lies between the ledger and the API server."""

from __future__ import annotations

import asyncio
from contextlib import suppress

_MOST = 65536


class Proxy:
    """Forwards a port of loopback to another."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._dead: set[asyncio.StreamWriter] = set()
        """Those to which nothing is written any more."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Listen; the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """End."""
        assert self._server is not None
        self._server.close()
        self._flowing.set()
        self.cut()  # the pumps see their connections end; asyncio would complain of tasks that are cancelled
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stall(self) -> None:
        """Let nothing through, and say nothing: connections stay open."""
        self._flowing.clear()

    def flow(self) -> None:
        """Let everything through again, also what waited."""
        self._flowing.set()

    def deaden(self) -> None:
        """Whatever is connected now stays so and never hears anything again; new connections are sound."""
        self._dead |= self._writers

    def cut(self) -> None:
        """Break all connections, with what was under way."""
        for writer in self._writers:
            writer.transport.abort()

    def hang_up(self) -> None:
        """Close all connections once what was under way is written, as a server does."""
        for writer in self._writers:
            writer.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            there, out = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:  # the API server is down
            writer.transport.abort()
            self._tasks.discard(task)
            return
        self._writers |= {writer, out}
        try:
            await asyncio.gather(self._pump(reader, out), self._pump(there, writer))
        finally:
            for each in (writer, out):
                self._writers.discard(each)
                self._dead.discard(each)
                each.transport.abort()
            self._tasks.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_MOST):
                await self._flowing.wait()
                if writer not in self._dead:
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()  # half-closed connections are of no use to HTTP
