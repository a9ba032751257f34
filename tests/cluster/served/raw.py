"""HTTP by hand: what a broken or hostile client sends, and what comes back."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any


class Raw:
    """Connections to one API."""

    def __init__(self, port: int, token: str, context: ssl.SSLContext) -> None:
        self.port = port
        self.token = token
        self._context = context

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection."""
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self._context)

    def head(self, method: str, path: str, headers: dict[str, str] | None = None) -> bytes:
        """The beginning of a request, token included."""
        given = {"Host": "x", "Authorization": f"Bearer {self.token}", **(headers or {})}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """The status and the decoded body of an answer."""
        reader, writer = await self.connect()
        length = {"Content-Length": str(len(body))} if body or method in ("POST", "PUT", "PATCH") else {}
        writer.write(self.head(method, path, {"Connection": "close", **length, **(headers or {})}) + body)
        try:
            answer = await asyncio.wait_for(reader.read(), 20)
        finally:
            writer.close()
        first, _, text = answer.partition(b"\r\n\r\n")
        status = int(first.split()[1])
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode(errors="replace")
