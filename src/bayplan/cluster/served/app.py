"""The API itself: from an HTTP request to a verb of the engine, and back.

Nothing is decided here: the engine knows the rules, this module knows the protocol. Errors of the engine have the shape
of a Status already; anything unexpected is answered with 500 and logged, and the server goes on.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Any, Literal, cast

import msgspec

from bayplan.cluster.embedded import subresources
from bayplan.cluster.embedded.deletion import DeleteOptions
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.refusals import options_refused
from bayplan.cluster.embedded.requests import Answer, WriteOptions
from bayplan.cluster.embedded.scaling import scale_of
from bayplan.cluster.embedded.schema.document import MalformedBodyError
from bayplan.cluster.embedded.schema.protobuf import MEDIA as PROTOBUF
from bayplan.cluster.embedded.schema.protobuf import read_protobuf
from bayplan.cluster.embedded.schema.table import TABLE
from bayplan.cluster.objects import Object
from bayplan.cluster.port import PatchType
from bayplan.cluster.served.computed import ACCESS_REVIEW, COMPUTED, Computed, reviewed
from bayplan.cluster.served.discovery import AGGREGATED, Discovery
from bayplan.cluster.served.exchange import ClientGoneError, Exchange, Receive, Scope, Send
from bayplan.cluster.served.following import follow
from bayplan.cluster.served.openapi import document, index
from bayplan.cluster.served.openapi_v2 import MEDIA, encoded
from bayplan.cluster.served.presentation import Presentation
from bayplan.cluster.served.routes import Route, Routes
from bayplan.cluster.served.watching import Watching
from bayplan.model.clock import SECOND
from bayplan.model.errors import ApiError, BadRequest, MethodNotAllowed, NotFound, ServerError, Unauthorized
from bayplan.service.logging import get_logger

log = get_logger(__name__)

Doc = dict[str, Any]
_OPEN_PATHS = frozenset(("/healthz", "/livez", "/readyz", "/version"))
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.4+bayplan", "platform": "linux/amd64"}
_SUCCESS: Doc = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


class Api:
    """An ASGI application that serves one embedded cluster."""

    def __init__(self, cluster: EmbeddedCluster, token: str, address: str = "127.0.0.1") -> None:
        self._cluster = cluster
        self._server = cluster.world.server
        self._token = token
        self._address = address
        self._kinds_known = -1
        self._learn_kinds()
        self._computed = Computed(cluster)
        self._watching = Watching(cluster)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection event of ASGI."""
        if scope["type"] != "http":
            return  # lifespan: nothing to do; the engine is started and stopped by its owner
        # The cluster's time, which may run faster than the machine's: clients count ages from it.
        date = formatdate(self._cluster.clock.now() / SECOND, usegmt=True)
        exchange = Exchange(scope, receive, send, date=date)
        try:
            self._authenticate(exchange)
            await self._handle(exchange)
        except ClientGoneError:
            log.debug("client gone", path=exchange.path)
        except ApiError as error:
            if not exchange.started:
                await exchange.refuse(error)
        except Exception as error:
            log.error("request failed", method=exchange.method, path=exchange.path, exc=error)
            if not exchange.started:
                await exchange.refuse(ServerError(f"Internal error occurred: {type(error).__name__}"))

    def _authenticate(self, exchange: Exchange) -> None:
        if exchange.path in _OPEN_PATHS:
            return
        scheme, _, given = exchange.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
            raise Unauthorized("Unauthorized")

    def _learn_kinds(self) -> None:
        """Custom kinds come and go: what is made of the kinds is made anew when they have changed."""
        registry = self._server.store.registry
        if self._kinds_known != registry.changes:
            self._kinds_known = registry.changes
            self._kinds = registry.kinds()
            self._routes = Routes((*self._kinds, *COMPUTED))
            self._discovery = Discovery((*self._kinds, *COMPUTED))

    async def _handle(self, exchange: Exchange) -> None:
        self._learn_kinds()
        route = self._routes.find(exchange.path)
        if route is None:
            await self._about(exchange)
        elif route.kind in COMPUTED:
            await self._compute(exchange, route)
        elif route.subresource in ("log", "binding", "eviction", "scale"):
            await self._small(exchange, route)
        elif route.name:
            await self._one(exchange, route)
        else:
            await self._collection(exchange, route)

    # --- what the API says of itself

    async def _about(self, exchange: Exchange) -> None:
        if exchange.method not in ("GET", "HEAD"):
            raise NotFound("the server could not find the requested resource")
        if exchange.path in ("/healthz", "/livez", "/readyz"):
            await exchange.answer(200, b"ok", content_type="text/plain; charset=utf-8")
            return
        if exchange.path == "/openapi/v2":
            await exchange.answer(200, encoded(self._schemas(), TABLE.version), content_type=MEDIA)
            return
        aggregated = "as=APIGroupDiscoveryList" in exchange.headers.get("accept", "") and exchange.path in (
            "/api",
            "/apis",
        )
        found = self._discovery.aggregated(core=exchange.path == "/api") if aggregated else self._described(exchange)
        if found is None:
            raise NotFound("the server could not find the requested resource")
        await exchange.answer(
            200, msgspec.json.encode(found), content_type=AGGREGATED if aggregated else "application/json"
        )

    def _schemas(self) -> Doc:
        versions = dict.fromkeys((kind.group, kind.version) for kind in self._kinds)
        documents = [document(*each, self._kinds, self._server.types.schema) for each in versions]
        return {name: schema for each in documents for name, schema in each["components"]["schemas"].items()}

    def _described(self, exchange: Exchange) -> Doc | None:
        parts = exchange.path.strip("/").split("/")
        match parts:
            case ["version"]:
                return {
                    **_VERSION,
                    "gitCommit": "",
                    "gitTreeState": "",
                    "buildDate": "",
                    "goVersion": "",
                    "compiler": "",
                }
            case ["api"]:
                return self._discovery.core_versions(self._address)
            case ["api", version]:
                return self._discovery.resources("", version)
            case ["apis"]:
                return self._discovery.groups()
            case ["apis", group]:
                return self._discovery.group(group)
            case ["apis", group, version]:
                return self._discovery.resources(group, version)
            case ["openapi", "v3"]:
                return index(self._kinds, self._kinds_known)
            case ["openapi", "v3", "api", version]:
                return document("", version, self._kinds, self._server.types.schema)
            case ["openapi", "v3", "apis", group, version]:
                return document(group, version, self._kinds, self._server.types.schema)
        return None

    async def _compute(self, exchange: Exchange, route: Route) -> None:
        if (exchange.method == "POST") != (route.kind is ACCESS_REVIEW):
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        if exchange.method == "POST":
            body = await exchange.body()
            review = {} if exchange.headers.get("content-type", "").startswith(PROTOBUF) else _plain(exchange, body, "")
            await exchange.answer(201, msgspec.json.encode(reviewed(review)))
            return
        found = await self._computed.read(route, exchange.query.get("labelSelector", ""))
        await exchange.answer(200, msgspec.json.encode(found))

    # --- collections

    async def _collection(self, exchange: Exchange, route: Route) -> None:
        match exchange.method:
            case "GET" | "HEAD":
                if exchange.flag("watch"):
                    await self._watching.stream(exchange, route)
                else:
                    await self._list(exchange, route)
            case "POST":
                self._cluster.tick()
                body, options = await exchange.body(), self._options(exchange, "CreateOptions")
                await self._answer(exchange, self._server.create(route.kind, route.home, body, options))
            case "DELETE":
                await self._delete_all(exchange, route)
            case _:
                raise MethodNotAllowed("the server does not allow this method on the requested resource")

    async def _list(self, exchange: Exchange, route: Route) -> None:
        page = await self._cluster.list(
            route.kind,
            route.namespace,
            labels=exchange.query.get("labelSelector", ""),
            fields=exchange.query.get("fieldSelector", ""),
            limit=exchange.number("limit") or 0,
            after=exchange.query.get("continue", ""),
        )
        presentation = Presentation.of(exchange, self._cluster)
        await exchange.answer(200, presentation.page(route.kind, page), content_type=presentation.media)

    async def _delete_all(self, exchange: Exchange, route: Route) -> None:
        options = await self._delete_options(exchange)
        page = await self._cluster.list(
            route.kind,
            route.namespace,
            labels=exchange.query.get("labelSelector", ""),
            fields=exchange.query.get("fieldSelector", ""),
        )
        gone = [self._server.delete(item.kind, item.namespace, item.name, options) for item in page.items]
        listed = msgspec.structs.replace(page, items=tuple(gone))
        await exchange.answer(200, Presentation.of(exchange, self._cluster).page(route.kind, listed))

    # --- single objects

    async def _one(self, exchange: Exchange, route: Route) -> None:
        kind, where, name = route.kind, route.home, route.name
        self._cluster.tick()
        match exchange.method:
            case "GET" | "HEAD":
                if exchange.flag("watch"):
                    await self._watching.stream(exchange, route)
                else:
                    await self._answer(exchange, Answer(self._server.get(kind, where, name)))
            case "PUT":
                body, options = await exchange.body(), self._options(exchange, "UpdateOptions")
                answer = self._server.update(kind, where, name, body, options, subresource=route.subresource)
                await self._answer(exchange, answer)
            case "PATCH":
                body, options = await exchange.body(), self._options(exchange, "PatchOptions")
                media = exchange.headers.get("content-type", "")
                answer = self._server.patch(kind, where, name, media, body, options, subresource=route.subresource)
                await self._answer(exchange, answer)
            case "DELETE" if not route.subresource:
                last = self._server.delete(kind, where, name, await self._delete_options(exchange))
                await self._deleted(exchange, last)
            case _:
                raise MethodNotAllowed("the server does not allow this method on the requested resource")

    async def _deleted(self, exchange: Exchange, last: Object) -> None:
        """The object while it is still there, else a Status that names it."""
        if self._server.store.get(last.kind, last.namespace, last.name) is not None:
            await self._answer(exchange, Answer(last))
            return
        details = {"name": last.name, "group": last.kind.group, "kind": last.kind.plural, "uid": last.uid}
        told = {**_SUCCESS, "details": {key: value for key, value in details.items() if value}}
        await exchange.answer(200, msgspec.json.encode(told))

    async def _answer(self, exchange: Exchange, answer: Answer) -> None:
        presentation = Presentation.of(exchange, self._cluster)
        body = presentation.one(answer.object)
        await exchange.answer(answer.status, body, content_type=presentation.media, warnings=answer.warnings)

    # --- small documents of their own: log, binding, eviction, scale

    async def _small(self, exchange: Exchange, route: Route) -> None:
        self._cluster.tick()
        handlers: dict[tuple[str, str], Callable[[Exchange, Route], Awaitable[None]]] = {
            ("GET", "log"): self._log,
            ("POST", "binding"): self._bind,
            ("POST", "eviction"): self._evict,
            ("GET", "scale"): self._scale,
            ("PUT", "scale"): self._scale,
            ("PATCH", "scale"): self._scale,
        }
        handler = handlers.get((exchange.method, route.subresource))
        if handler is None:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        await handler(exchange, route)

    async def _log(self, exchange: Exchange, route: Route) -> None:
        if exchange.flag("follow") and not exchange.flag("previous"):
            await follow(exchange, self._cluster, route)
            return
        text = await self._cluster.logs(
            route.name,
            route.home,
            container=exchange.query.get("container", ""),
            previous=exchange.flag("previous"),
            tail=exchange.number("tailLines"),
        )
        await exchange.answer(200, text.encode(), content_type="text/plain")

    async def _bind(self, exchange: Exchange, route: Route) -> None:
        options = self._options(exchange, "CreateOptions")
        subresources.bind(
            self._server, route.home, route.name, _plain(exchange, await exchange.body(), "core.v1.Binding"), options
        )
        await exchange.answer(201, msgspec.json.encode(_SUCCESS))

    async def _evict(self, exchange: Exchange, route: Route) -> None:
        body = _plain(exchange, await exchange.body(), "policy.v1.Eviction")
        asked = body.get("deleteOptions") or {}
        subresources.evict(self._server, route.home, route.name, _delete_options(asked, exchange))
        await exchange.answer(201, msgspec.json.encode(_SUCCESS))

    async def _scale(self, exchange: Exchange, route: Route) -> None:
        item = self._server.get(route.kind, route.home, route.name)
        scale = scale_of(item, self._server.store.registry.scale_paths(route.kind))
        if exchange.method != "GET":
            body = _plain(exchange, await exchange.body(), "autoscaling.v1.Scale")
            if exchange.method == "PATCH":
                body = _patched_scale(scale, body, exchange.headers.get("content-type", ""))
            options = self._options(exchange, "UpdateOptions")
            scale, _ = subresources.scale(self._server, route.kind, route.home, route.name, body, options)
        await exchange.answer(200, msgspec.json.encode(scale))

    # --- options

    def _options(self, exchange: Exchange, kind: str) -> WriteOptions:
        query = exchange.query
        dry_run = query.get("dryRun", "")
        if dry_run not in ("", "All"):
            raise options_refused(kind, "dryRun", [dry_run], ("All",))
        return WriteOptions(
            dry_run=dry_run == "All",
            field_manager=query.get("fieldManager", "") or _agent(exchange),
            validation=query.get("fieldValidation", "") or "Warn",
            content_type=exchange.headers.get("content-type", ""),
            force=exchange.flag("force") if "force" in query else None,
        )

    async def _delete_options(self, exchange: Exchange) -> DeleteOptions:
        body = await exchange.body()
        return _delete_options(_plain(exchange, body, "meta.v1.DeleteOptions") if body.strip() else {}, exchange)


def _agent(exchange: Exchange) -> str:
    """Who writes when the request does not say: the program's name, as upstream takes it from the User-Agent."""
    if exchange.headers.get("content-type", "").startswith(PatchType.APPLY.value):
        return ""  # who applies has to say so
    agent: str = exchange.headers.get("user-agent", "")
    return agent.partition("/")[0][:128]


def _plain(exchange: Exchange, body: bytes, type_name: str) -> Doc:
    """A small document, JSON or protobuf, as plain values."""
    try:
        if exchange.headers.get("content-type", "").startswith(PROTOBUF):
            return read_protobuf(type_name, body)
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, MalformedBodyError) as error:
        raise BadRequest(f"couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(value, dict):
        raise BadRequest("expected an object")
    return cast("Doc", value)


def _delete_options(asked: Doc, exchange: Exchange) -> DeleteOptions:
    preconditions = asked.get("preconditions") or {}
    propagation = asked.get("propagationPolicy") or exchange.query.get("propagationPolicy")
    if propagation not in (None, "Orphan", "Background", "Foreground"):
        allowed = ("Background", "Foreground", "Orphan")
        raise options_refused("DeleteOptions", "propagationPolicy", propagation, allowed)
    if asked.get("orphanDependents") and propagation is None:
        propagation = "Orphan"
    grace = asked.get("gracePeriodSeconds")
    return DeleteOptions(
        grace=exchange.number("gracePeriodSeconds") if grace is None else grace,
        uid=preconditions.get("uid", ""),
        version=preconditions.get("resourceVersion", ""),
        propagation=cast("Literal['Orphan', 'Background', 'Foreground'] | None", propagation),
        dry_run=bool(asked.get("dryRun")) or exchange.query.get("dryRun") == "All",
    )


def _patched_scale(scale: Doc, patch: Doc, media: str) -> Doc:
    if media.partition(";")[0] == "application/json-patch+json":
        raise BadRequest("a Scale is patched by a merge patch")
    spec = {**scale.get("spec", {}), **(patch.get("spec") or {})}
    meta = {**scale["metadata"], **(patch.get("metadata") or {})}
    if "resourceVersion" not in (patch.get("metadata") or {}):
        meta.pop("resourceVersion", None)
    return {**scale, "metadata": meta, "spec": spec}
