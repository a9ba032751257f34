"""Reading ahead: nothing is lost or out of order, and memory stays bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import pytest

from bayplan.cluster.live import gathering
from bayplan.cluster.live.gathering import gathered


async def source(*pieces: bytes, error: Exception | None = None) -> AsyncGenerator[bytes]:
    """Pieces, each after the loop has had its turn."""
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)
    if error is not None:
        raise error


async def slowly(pieces: AsyncIterator[list[bytes]], found: list[list[bytes]]) -> None:
    """Take pieces, with a pause after each."""
    async for piece in pieces:
        found.append(piece)
        await asyncio.sleep(0.01)


async def test_what_came_while_the_consumer_was_busy_comes_together() -> None:
    found: list[list[bytes]] = []
    await slowly(gathered(source(b"a", b"b", b"c", b"d")), found)
    assert found == [[b"a"], [b"b", b"c", b"d"]]


async def test_what_came_before_an_error_is_given_before_it() -> None:
    found: list[list[bytes]] = []
    with pytest.raises(OSError, match="cut"):
        await slowly(gathered(source(b"a", b"b", error=OSError("cut"))), found)
    assert [piece for pieces in found for piece in pieces] == [b"a", b"b"]


async def test_no_more_is_read_ahead_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_MOST", 4)
    given: list[int] = []

    async def endless() -> AsyncGenerator[bytes]:
        while True:
            given.append(1)
            yield b"xx"
            await asyncio.sleep(0)

    async with aclosing(gathered(endless())) as pieces:
        await anext(pieces)
        await asyncio.sleep(0.01)
        assert len(given) <= 4
        assert len(await anext(pieces)) <= 3


async def test_a_stream_that_is_left_is_read_no_further() -> None:
    ended = asyncio.Event()

    async def waiting() -> AsyncGenerator[bytes]:
        try:
            yield b"a"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with aclosing(gathered(waiting())) as pieces:
        assert await anext(pieces) == [b"a"]
    assert ended.is_set()
