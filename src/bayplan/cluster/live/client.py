"""HTTP to one API server: one request, one answer or one stream, and errors in bayplan's words.

HTTP/1.1, so that each watch has a connection of its own and cannot hold up another. Nothing is taken from the
environment: proxies are the kubeconfig's. Compression is asked for except on loopback, where it only costs.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec

import bayplan
from bayplan.cluster.live.config import Access, ConfigError
from bayplan.cluster.live.credentials import credentials_of
from bayplan.cluster.live.faults import broken, error_of
from bayplan.cluster.live.network import Transport
from bayplan.cluster.live.trust import expiry, tls_context
from bayplan.model.clock import Clock
from bayplan.model.errors import ApiError, Unauthorized

_CONNECT = 2.0
"""Seconds for TCP and again for TLS: whoever waits for an unreachable server hears of it in under five."""
ANSWER = 65.0
"""Seconds for an answer: the API server itself gives up after sixty."""
_KEEP_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
]
"""So that a peer that vanished ends a silent watch after a minute."""
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')

_JSON = "application/json"

Query = Mapping[str, str]
Warn = Callable[[str], None]


class _Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    query: Query | None
    body: bytes | None = None
    media: str = ""
    within: float | None = None
    """Seconds for each piece of the answer; None waits for ever."""
    accept: str = _JSON


class Client:
    """The way to one API server as one user."""

    def __init__(
        self, access: Access, *, clock: Clock, on_warning: Warn | None = None, answer_within: float = ANSWER
    ) -> None:
        self._access = access
        self._clock = clock
        self._answer_within = answer_within
        self.date = ""
        """The Date of the last answer: the server's clock."""
        self._on_warning = on_warning
        context = tls_context(access)
        self._credentials = credentials_of(access, context, clock)
        try:
            transport = Transport(
                verify=context,
                trust_env=False,
                proxy=access.cluster.proxy_url or None,
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=16),
                socket_options=_KEEP_ALIVE,
            )
        except (ValueError, ImportError) as error:
            hint = "check proxy-url: http://, https:// and socks5:// are known"
            raise ConfigError(f"{access.origin}: proxy {access.cluster.proxy_url}: {error}", hint=hint) from error
        headers = [
            ("User-Agent", f"bayplan/{bayplan.__version__}"),
            ("Accept-Encoding", "identity" if _is_loopback(access.server) else "gzip"),
        ]
        if access.user.impersonate:
            headers.append(("Impersonate-User", access.user.impersonate))
        headers += [("Impersonate-Group", group) for group in access.user.impersonate_groups]
        self._http = httpx2.AsyncClient(transport=transport, trust_env=False, headers=headers)
        name = access.cluster.tls_server_name
        self._extensions: dict[str, Any] = {"sni_hostname": name} if name else {}

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: bytes | None = None,
        media: str = "",
        accept: str = _JSON,
    ) -> bytes:
        """One request and the body of its answer. Raises the error that the answer stands for."""
        async with self._exchange(_Request(method, path, query, body, media, self._answer_within, accept)) as response:
            return await self._read(response)

    async def stream(self, path: str, *, query: Query, accept: str = _JSON) -> AsyncGenerator[bytes]:
        """The answer to a GET, piece by piece as it comes, with no limit of time. Raises as `call` does.

        The first piece is empty, and comes as soon as the answer has begun.
        """
        async with (
            self._exchange(_Request("GET", path, query, accept=accept)) as response,
            aclosing(response.aiter_bytes()) as pieces,
        ):
            yield b""
            try:
                async for piece in pieces:
                    yield piece
            except httpx2.HTTPError as error:
                raise broken(error, self._access.server) from error

    @asynccontextmanager
    async def _exchange(self, request: _Request) -> AsyncIterator[httpx2.Response]:
        """An answer that is not a refusal, its body still to be read."""
        response = await self._send(request)
        if response.status_code == Unauthorized.status:
            header = response.request.headers.get("Authorization", "")
            if self._credentials.refused(header):
                await response.aclose()
                response = await self._send(request)
        self.date = response.headers.get("Date", "")
        try:
            self._pass_warnings(response)
            if response.status_code >= 300:
                raise await self._refusal(response)
            yield response
        finally:
            await response.aclose()

    async def _send(self, request: _Request) -> httpx2.Response:
        headers = {"Accept": request.accept} | ({"Content-Type": request.media} if request.media else {})
        if authorization := await self._credentials.header():
            headers["Authorization"] = authorization
        try:
            prepared = self._http.build_request(
                request.method,
                self._access.server + request.path,
                params=request.query or None,
                content=request.body,
                headers=headers,
                timeout=httpx2.Timeout(request.within, connect=_CONNECT),
                extensions=dict(self._extensions),
            )
            return await self._http.send(prepared, stream=True)
        except httpx2.HTTPError as error:
            raise broken(error, self._access.server) from error

    async def _read(self, response: httpx2.Response) -> bytes:
        try:
            return await response.aread()
        except httpx2.HTTPError as error:
            raise broken(error, self._access.server) from error

    async def _refusal(self, response: httpx2.Response) -> ApiError:
        body = await self._read(response)
        if response.status_code != Unauthorized.status:
            return error_of(response.status_code, body, retry_after=response.headers.get("Retry-After", ""))
        access = self._access
        expired = expiry(access, self._clock.now())
        return Unauthorized(
            f'{access.server}: the server does not accept the credentials of context "{access.context}" (401)',
            hint=f"the client certificate expired on {expired}: get a new one"
            if expired
            else f"log in anew, or mend the user of this context in {access.origin}",
        )

    def _pass_warnings(self, response: httpx2.Response) -> None:
        if self._on_warning is None:
            return
        for header in response.headers.get_list("Warning"):
            for text in _WARNING.findall(header):
                self._on_warning(re.sub(r"\\(.)", r"\1", text))


def _is_loopback(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
