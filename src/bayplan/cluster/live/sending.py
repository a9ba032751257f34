"""Sending a request so that nothing is left open when it is cancelled.

httpx2 closes a connection whose TLS handshake fails, but leaves one whose handshake is cancelled to the collector. It
tells of each connection that it opens (its extension `trace`), so whoever sends can close it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2


async def send(http: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """The answer, its body still to be read. Raises as `http.send` does."""
    opened: list[Any] = []

    async def note(event: str, told: dict[str, Any]) -> None:
        if event.endswith(".connect_tcp.complete"):
            opened.append(told["return_value"])

    request.extensions = {**request.extensions, "trace": note}
    try:
        return await http.send(request, stream=True)
    except asyncio.CancelledError:
        for connection in opened:
            await connection.aclose()
        raise
