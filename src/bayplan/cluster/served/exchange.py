"""One HTTP exchange over ASGI: what was asked, and the few ways to answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from bayplan.model.errors import ApiError, BadRequest, PermanentError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BODY = 3 * 1024 * 1024
"""As kube-apiserver: a larger request is refused."""


class RequestTooLarge(ApiError, PermanentError):
    """The body is larger than the server reads."""

    code = "BP-C413"
    status = 413
    reason = "RequestEntityTooLarge"


class ClientGoneError(Exception):
    """The client hung up while it was being answered."""


class Exchange:
    """A request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, *, date: str = "") -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: dict[str, str] = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._receive = receive
        self._send = send
        self._date = date
        self.started = False

    async def body(self) -> bytes:
        """The whole body. Raises RequestTooLarge, ClientGoneError."""
        announced = self.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > MOST_BODY:
            raise RequestTooLarge(f"Request entity too large: limit is {MOST_BODY}")
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > MOST_BODY:
                raise RequestTooLarge(f"Request entity too large: limit is {MOST_BODY}")
            if not message.get("more_body"):
                return b"".join(chunks)

    async def gone(self) -> None:
        """Return once the client hangs up."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def answer(
        self, status: int, body: bytes, *, content_type: str = "application/json", warnings: tuple[str, ...] = ()
    ) -> None:
        """Answer with a whole body."""
        await self.start(status, content_type, length=len(body), warnings=warnings)
        await self._send({"type": "http.response.body", "body": body})

    async def start(
        self, status: int, content_type: str, *, length: int | None = None, warnings: tuple[str, ...] = ()
    ) -> None:
        """Begin an answer; without a length its body follows in pieces."""
        headers = [(b"content-type", content_type.encode()), (b"cache-control", b"no-cache, private")]
        if self._date:
            headers.append((b"date", self._date.encode()))
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
        for warning in warnings:
            text = warning.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
            headers.append((b"warning", f'299 - "{text}"'.encode()))
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def piece(self, body: bytes, *, more: bool = True) -> None:
        """A piece of a body that was begun."""
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def refuse(self, error: ApiError) -> None:
        """Answer with a Status."""
        await self.answer(error.status, msgspec.json.encode(error.to_status()))

    # --- query parameters

    def flag(self, name: str) -> bool:
        """A boolean parameter, as Kubernetes reads one: given and neither 0 nor false."""
        return name in self.query and self.query[name].lower() not in ("0", "false")

    def number(self, name: str) -> int | None:
        """A whole number, if given. Raises BadRequest."""
        text = self.query.get(name, "")
        if not text:
            return None
        if not text.lstrip("-").isdigit():
            raise BadRequest(f'{name}: Invalid value: "{text}": strconv.ParseInt: parsing "{text}": invalid syntax')
        return int(text)
