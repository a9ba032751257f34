"""Watches over HTTP: a line of JSON an event, encoded once however many clients read it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator

import msgspec

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import Kind
from bayplan.cluster.port import WatchEvent
from bayplan.cluster.served.exchange import Exchange
from bayplan.cluster.served.presentation import Presentation
from bayplan.cluster.served.routes import Route
from bayplan.model.errors import ApiError

_LINES_KEPT = 4096
Batches = AsyncGenerator[list[WatchEvent]]


class Watching:
    """All watches of one API."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._lines: OrderedDict[tuple[str, str, str, str], bytes] = OrderedDict()

    async def stream(self, exchange: Exchange, route: Route) -> None:
        """Answer a watch until it times out or the client hangs up."""
        presentation = Presentation.of(exchange, self._cluster)
        fields = exchange.query.get("fieldSelector", "")
        if route.name:
            fields = f"metadata.name={route.name}"
        since = exchange.query.get("resourceVersion", "")
        initial = exchange.flag("sendInitialEvents")
        batches = self._cluster.watch_batches(
            route.kind,
            route.namespace,
            since="" if since == "0" or initial else since,
            labels=exchange.query.get("labelSelector", ""),
            fields=fields,
            bookmarks=exchange.flag("allowWatchBookmarks"),
            timeout=exchange.number("timeoutSeconds"),
        )
        sending = asyncio.ensure_future(self._send(exchange, route.kind, presentation, batches, initial=initial))
        gone = asyncio.ensure_future(exchange.gone())
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            sending.cancel()
            await asyncio.wait((sending,))
            await batches.aclose()
        if not sending.cancelled() and (error := sending.exception()) is not None:
            raise error

    async def _send(
        self, exchange: Exchange, kind: Kind, presentation: Presentation, batches: Batches, *, initial: bool
    ) -> None:
        try:
            async for batch in batches:
                if not exchange.started:
                    await exchange.start(200, presentation.media)
                lines = [self._line(kind, presentation, event) for event in batch]
                if initial:
                    initial = False
                    revision = str(self._cluster.world.store.revision)
                    lines.append(presentation.bookmark(kind, revision, initial_end=True))
                await exchange.piece(b"".join(lines))
        except ApiError as error:
            # a watch tells its end in its own stream: the answer has begun with 200, or begins so
            if not exchange.started:
                await exchange.start(200, presentation.media)
            await exchange.piece(msgspec.json.encode({"type": "ERROR", "object": error.to_status()}) + b"\n")
        if not exchange.started:
            await exchange.start(200, presentation.media)
        await exchange.piece(b"", more=False)

    def _line(self, kind: Kind, presentation: Presentation, event: WatchEvent) -> bytes:
        if event.object is None:
            return presentation.bookmark(kind, event.revision)
        if not presentation.shared:
            return presentation.event(event.type, event.object)
        key = (event.type, event.object.uid, event.revision, kind.version)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = presentation.event(event.type, event.object)
            if len(self._lines) > _LINES_KEPT:
                self._lines.popitem(last=False)
        return line
