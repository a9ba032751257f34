"""`logs --follow` over HTTP: what a container has written, then what it writes, until it or the client ends."""

from __future__ import annotations

import asyncio
from typing import Any

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import POD
from bayplan.cluster.served.exchange import Exchange
from bayplan.cluster.served.routes import Route
from bayplan.model.errors import ApiError

_PAUSE = 0.5
_LOOKED_AT = 200
"""Lines that are looked through for new ones; a container that writes more in a pause loses the oldest."""


async def follow(exchange: Exchange, cluster: EmbeddedCluster, route: Route) -> None:
    """Answer with a log that goes on. Raises NotFound, BadRequest before anything is sent."""
    container, tail = exchange.query.get("container", ""), exchange.number("tailLines")
    first = await cluster.logs(route.name, route.home, container=container, tail=tail)
    await exchange.start(200, "text/plain")
    await exchange.piece(first.encode())
    sending = asyncio.ensure_future(_send(exchange, cluster, route, first))
    gone = asyncio.ensure_future(exchange.gone())
    try:
        await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        sending.cancel()
        await asyncio.wait((sending, gone))
    if not sending.cancelled() and (error := sending.exception()) is not None:
        raise error


async def _send(exchange: Exchange, cluster: EmbeddedCluster, route: Route, sent: str) -> None:
    container = exchange.query.get("container", "")
    try:
        while True:
            running = _runs((await cluster.get(POD, route.name, route.home)).doc(), container)
            text = await cluster.logs(route.name, route.home, container=container, tail=_LOOKED_AT)
            if new := news(text, sent):
                await exchange.piece(new.encode())
                sent = new
            if not running:
                break
            await asyncio.sleep(_PAUSE)
    except ApiError:  # the pod is gone: so is its log
        pass
    await exchange.piece(b"", more=False)


def news(text: str, sent: str) -> str:
    """The lines that come after the last one that was sent; all of them when it is not there."""
    lines = text.splitlines(keepends=True)
    last = sent.splitlines(keepends=True)[-1:]
    for index in range(len(lines) - 1, -1, -1):
        if lines[index : index + 1] == last:
            return "".join(lines[index + 1 :])
    return text


def _runs(pod: dict[str, Any], container: str) -> bool:
    status = pod.get("status") or {}
    known = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    return any("running" in (each.get("state") or {}) for each in known if not container or each["name"] == container)
