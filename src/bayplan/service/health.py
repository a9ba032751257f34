"""The endpoint that a kubelet, a Prometheus and an operator ask: is it alive, is it ready, what does it count.

    GET /livez    is the process able to go on? Only what a restart would cure belongs here.
    GET /readyz   should it get work? Every check, and false from the moment shutdown begins.
    GET /readyz/NAME, ?verbose           one check, or all of them by line, as kube-apiserver answers
    GET /healthz  the old name of /livez
    GET /metrics  Prometheus text or OpenMetrics, from a registry of our own
    GET /version
    GET /loglevel, PUT /loglevel         levels by room; PUT only from this machine (or `kubectl port-forward`)

A check is a callable that raises when it fails; what it raises is the reason. starlette and uvicorn are imported when
the endpoint starts, not before.
"""

from __future__ import annotations

import contextlib
import inspect
import ipaddress
from typing import TYPE_CHECKING

import msgspec

from bayplan.service.http import listen, new_server
from bayplan.service.identity import version_info
from bayplan.service.levels import Levels
from bayplan.service.logging import LOGS, get_logger
from bayplan.service.redaction import scrub

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    import uvicorn
    from prometheus_client import CollectorRegistry
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

log = get_logger(__name__)

_LONGEST_LEVELS = 4096


class Check(msgspec.Struct, frozen=True):
    """A question with a name. `live`: a restart would cure it."""

    name: str
    ask: Callable[[], Awaitable[None] | None]
    live: bool

    async def reason(self) -> str:
        """Why it fails; "" when it does not."""
        try:
            answer = self.ask()
            if inspect.isawaitable(answer):
                await answer
        except Exception as failure:  # whatever a check raises is its answer
            return scrub(str(failure) or type(failure).__name__)
        return ""


class Health:
    """Checks, metrics, and the endpoint that shows them."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._not_ready = "starting"
        self._registry: CollectorRegistry | None = None
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None

    def check(self, name: str, ask: Callable[[], Awaitable[None] | None], *, live: bool = False) -> None:
        """Ask this for readiness, and with `live` for liveness too. `ask` raises when it fails."""
        if name in self._checks or name == "state":
            raise ValueError(f"a check named {name!r} is there already")
        self._checks[name] = Check(name, ask, live)

    def set_ready(self) -> None:
        """Say that work may come, as far as the checks agree."""
        self._not_ready = ""

    def set_not_ready(self, reason: str) -> None:
        """Say that no work should come, whatever the checks find."""
        self._not_ready = reason

    @property
    def registry(self) -> CollectorRegistry:
        """Where metrics of this process are registered."""
        if self._registry is None:
            self._registry = _new_registry()
        return self._registry

    async def results(self, *, live: bool) -> dict[str, str]:
        """Each check of liveness or readiness with the reason of its failure, "" if there is none."""
        found = {"state": "" if live else self._not_ready}
        for check in list(self._checks.values()):
            if check.live or not live:
                found[check.name] = await check.reason()
        return found

    def app(self) -> Starlette:
        """The endpoint as an ASGI application."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        live, ready = self._answer(live=True), self._answer(live=False)
        paths = {"/livez": live, "/healthz": live, "/readyz": ready}
        return Starlette(
            routes=[
                *(Route(path, answer) for path, answer in paths.items()),
                *(Route(f"{path}/{{name}}", answer) for path, answer in paths.items()),
                Route("/metrics", self._metrics),
                Route("/version", _version),
                Route("/loglevel", _loglevel, methods=["GET", "PUT"]),
            ]
        )

    def _answer(self, *, live: bool) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            from starlette.responses import PlainTextResponse

            results = await self.results(live=live)
            only = request.path_params.get("name")
            if only is not None:
                if only not in results:
                    return PlainTextResponse(f"no check named {only}; known are {', '.join(results)}\n", 404)
                results = {only: results[only]}
            failed = any(results.values())
            if not failed and "verbose" not in request.query_params:
                return PlainTextResponse("ok")
            return PlainTextResponse(_by_line(request.url.path[1:].split("/")[0], results), 503 if failed else 200)

        return answer

    async def _metrics(self, request: Request) -> Response:
        import asyncio

        from prometheus_client.exposition import choose_encoder
        from starlette.responses import Response

        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        text = await asyncio.to_thread(encode, self.registry)  # a collector may read hundreds of files
        return Response(text, headers={"content-type": content_type})

    async def serve(self, bind: str, port: int) -> str:
        """Start the endpoint and return its URL. Raises AddressUnavailable."""
        import asyncio

        hint = "set health.bind and health.port; port 0 takes a free one"
        listener = listen(bind, port, what="health endpoint", hint=hint)
        self._server = new_server(self.app())
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]), name="health")
        host, taken = listener.getsockname()[:2]
        url = f"http://[{host}]:{taken}" if ":" in host else f"http://{host}:{taken}"
        log.info("health endpoint listens", url=url)
        return url

    async def close(self) -> None:
        """Stop the endpoint; answers that are under way are finished."""
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving


def _by_line(path: str, results: dict[str, str]) -> str:
    lines = [f"[-]{name} failed: {reason}" if reason else f"[+]{name} ok" for name, reason in results.items()]
    verdict = "failed" if any(results.values()) else "passed"
    return "\n".join([*lines, f"{path} check {verdict}", ""])


async def _version(_: Request) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(version_info())


async def _loglevel(request: Request) -> Response:
    from starlette.responses import PlainTextResponse

    if request.method == "PUT":
        if not _from_this_machine(request):
            return PlainTextResponse("levels are changed from this machine only\n", 403)
        body = await request.body()
        try:
            levels = Levels.parse(body[:_LONGEST_LEVELS].decode().strip())
        except ValueError as fault:
            return PlainTextResponse(f"{fault}\n", 400)
        LOGS.set_levels(levels)
        log.info("log levels changed", levels=str(levels))
    return PlainTextResponse(f"{LOGS.levels}\n")


def _from_this_machine(request: Request) -> bool:
    """Peer and Host are loopback; the latter keeps a web page with a rebound name out."""
    peer = request.client.host if request.client else ""
    return _is_loopback(peer) and (request.url.hostname == "localhost" or _is_loopback(request.url.hostname or ""))


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _new_registry() -> CollectorRegistry:
    from prometheus_client import CollectorRegistry, GCCollector, Info, ProcessCollector

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    Info("bayplan_build", "Which bayplan this is.", registry=registry).info(version_info())
    return registry
