"""Connections for httpx2 on asyncio's own transports, read ahead of whoever reads.

httpx2's default goes through anyio, which gives a TLS record (16 KB, two pods) at a time and sets up a time-out for
each. Here TLS decrypts into one buffer for as long as there is something to decrypt, and a read that finds data waits
for nothing: a watch costs a third (designs/0012-ledger-speed.md). What is read ahead is bounded; beyond that TCP holds
the server back.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2

_PIECE = 1 << 16
"""As much as httpx2 asks for at once."""
_AHEAD = 16 * _PIECE
_NEXT_ADDRESS = 0.25
"""Seconds after which another address of the host is tried beside the first."""


class Transport(httpx2.AsyncHTTPTransport):
    """httpx2's own, on these connections."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._pool._network_backend = Network()  # noqa: SLF001 - httpcore2 takes one, but httpx2 passes none on


class Network(httpcore2.AsyncNetworkBackend):
    """Opens connections."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature, here and below
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection without TLS."""
        loop = asyncio.get_running_loop()
        local = (local_address, 0) if local_address else None
        with _as(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            async with asyncio.timeout(timeout):
                transport, received = await loop.create_connection(
                    _Received, host, port, local_addr=local, happy_eyeballs_delay=_delay(host)
                )
        for option in socket_options or ():
            transport.get_extra_info("socket").setsockopt(*option)
        return _Connection(transport, received)

    async def sleep(self, seconds: float) -> None:
        """Between attempts."""
        await asyncio.sleep(seconds)


def _delay(host: str) -> float | None:
    """None for what is one address: asyncio, racing several, loses a connection when it is cancelled as one is made."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _NEXT_ADDRESS
    return None


@contextmanager
def _as(late: type[Exception], broken: type[Exception]) -> Iterator[None]:
    """Failures as httpcore2 calls them."""
    try:
        yield
    except TimeoutError as error:
        raise late(str(error)) from error
    except OSError as error:  # ssl.SSLError is one
        raise broken(str(error)) from error


class _Received(asyncio.BufferedProtocol):
    """What has come and was not read, and whether more can be written."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(_PIECE))
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._fault: Exception | None = None
        self._size = 0
        self.pieces: deque[bytes] = deque()
        self.ended = False
        self.writable = asyncio.Event()
        self.writable.set()

    # --- what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.pieces.append(bytes(self._buffer[:nbytes]))
        self._size += nbytes
        if self._size >= _AHEAD and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self.ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        self._fault = exc
        self.writable.set()
        self._wake()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    # --- what a connection calls

    async def some(self) -> None:
        """Until there is something, or the end. One reader at a time."""
        if not self.pieces and not self.ended:
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None

    def take(self, most: int) -> bytes:
        """What came first; nothing at the end. Raises OSError where that was no end but a fault."""
        if not self.pieces:
            if isinstance(self._fault, OSError):
                raise self._fault
            return b""
        piece = self.pieces.popleft()
        if len(piece) > most:
            self.pieces.appendleft(piece[most:])
            piece = piece[:most]
        if self._size >= _AHEAD > self._size - len(piece) and self._transport is not None and not self.ended:
            self._transport.resume_reading()
        self._size -= len(piece)
        return piece

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class _Connection(httpcore2.AsyncNetworkStream):
    """One connection."""

    def __init__(self, transport: asyncio.Transport, received: _Received) -> None:
        self._transport, self._received = transport, received

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """What has come; nothing at the end."""
        received = self._received
        with _as(httpcore2.ReadTimeout, httpcore2.ReadError):
            if not received.pieces and not received.ended:
                async with asyncio.timeout(timeout):
                    await received.some()
            return received.take(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """All of it, as fast as the other side takes it."""
        if not buffer:
            return
        with _as(httpcore2.WriteTimeout, httpcore2.WriteError):
            if self._transport.is_closing():
                raise BrokenPipeError("the connection is closed")
            self._transport.write(buffer)
            if not self._received.writable.is_set():
                async with asyncio.timeout(timeout):
                    await self._received.writable.wait()

    async def aclose(self) -> None:
        """At once: nothing that was asked for is still on its way."""
        self._transport.abort()
        await asyncio.sleep(0)  # the loop closes the socket with its next step

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        """The same connection, secured. Closed where that fails."""
        received = _Received()
        self._transport.set_protocol(received)
        try:
            with _as(httpcore2.ConnectTimeout, httpcore2.ConnectError):
                async with asyncio.timeout(timeout):
                    secured = await asyncio.get_running_loop().start_tls(
                        self._transport, received, ssl_context, server_hostname=server_hostname
                    )
        except BaseException:
            self._transport.abort()
            raise
        assert secured is not None
        received.connection_made(secured)
        return _Connection(secured, received)

    def get_extra_info(self, info: str) -> Any:
        """What httpcore2 asks of a connection."""
        if info == "is_readable":  # of an idle one: it was closed, or says what nobody asked for
            return bool(self._received.pieces) or self._received.ended
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return self._transport.get_extra_info(names.get(info, info))
