"""Connections on asyncio's transports, beside real sockets: what is sent arrives, is bounded, and ends cleanly."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpcore2
import pytest

from bayplan.cluster.live.network import _AHEAD, Network

_PIECES = 200

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def talking(talk: Talk) -> AsyncIterator[httpcore2.AsyncNetworkStream]:
    """A connection to a server that talks like this."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except ConnectionError:
            pass  # the test has gone
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        stream = await Network().connect_tcp("127.0.0.1", server.sockets[0].getsockname()[1], timeout=5)
        try:
            yield stream
        finally:
            await stream.aclose()


async def test_what_is_written_is_read_whatever_the_sizes() -> None:
    sent = bytes(range(256)) * 4_000

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(7_777):
            writer.write(piece)
            await writer.drain()

    async with talking(echo) as stream:
        writing = asyncio.create_task(stream.write(sent, timeout=10))
        got = b""
        while len(got) < len(sent):
            piece = await stream.read(1_000 + len(got) % 70_000, timeout=10)
            assert piece
            got += piece
        await writing

    assert got == sent


async def test_a_reader_that_is_slow_holds_the_sender_back() -> None:
    taken: list[int] = []

    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(high=0)
        for number in range(_PIECES):
            writer.write(b"x" * _AHEAD)
            await writer.drain()
            taken.append(number)

    async with talking(flood) as stream:
        before = -1
        while before < len(taken):  # until it stands still
            before = len(taken)
            await asyncio.sleep(0.2)
        assert before < _PIECES // 2, "the sockets' buffers hold some"
        got = 0
        while piece := await stream.read(1 << 16, timeout=10):
            got += len(piece)

    assert got == _PIECES * _AHEAD


async def test_silence_ends_a_read_with_a_limit() -> None:
    async def nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with talking(nothing) as stream:
        with pytest.raises(httpcore2.ReadTimeout):
            await stream.read(100, timeout=0.01)


async def test_a_reset_is_no_end() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"last")
        await reader.read(1)
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    async with talking(reset) as stream:
        assert await stream.read(100, timeout=5) == b"last"
        await stream.write(b"!")
        with pytest.raises(httpcore2.ReadError):
            await stream.read(100, timeout=5)


async def test_an_idle_connection_that_was_closed_says_so_and_cannot_be_written_to() -> None:
    async def end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with talking(end) as stream:
        assert await stream.read(100, timeout=5) == b""
        assert stream.get_extra_info("is_readable")
        await stream.aclose()
        with pytest.raises(httpcore2.WriteError):
            await stream.write(b"more")


async def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(httpcore2.ConnectError):
        await Network().connect_tcp("127.0.0.1", port, timeout=5)


@pytest.mark.parametrize(
    ("patience", "error"),
    [
        pytest.param(None, asyncio.CancelledError, id="cancelled"),
        pytest.param(0.01, httpcore2.ConnectTimeout, id="given up"),
    ],
)
async def test_a_handshake_that_is_not_answered_leaves_no_connection(
    patience: float | None, error: type[BaseException]
) -> None:
    gone = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        while await reader.read(1_000):
            pass
        gone.set()

    async with talking(silent) as stream:
        handshake = asyncio.create_task(stream.start_tls(ssl.create_default_context(), "localhost", patience))
        if patience is None:
            await asyncio.sleep(0.05)  # it is under way
            handshake.cancel()
        with pytest.raises(error):
            await handshake
        await asyncio.wait_for(gone.wait(), 5)
