"""The port `Cluster` on a Kubernetes API server: which path, which query, which body for each method.

What a method promises is written on the port; here stands only what the wire needs.
"""

from __future__ import annotations

import math
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import msgspec

from bayplan.cluster import kinds
from bayplan.cluster.kinds import POD, Kind
from bayplan.cluster.live.client import ANSWER, Client, Warn
from bayplan.cluster.live.config import Access, find_access
from bayplan.cluster.live.gathering import gathered
from bayplan.cluster.live.wire import Lines, Odd, read_event, read_object, read_page
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Body, Operations, Page, PatchType, Propagation, WatchEvent
from bayplan.model.clock import SECOND, Clock, Instant, SystemClock
from bayplan.model.errors import ApiError
from bayplan.service.logging import get_logger

log = get_logger(__name__)

ODD = "BP-K005"
"""Of what an API server sent, something could not be read and was left out."""
_MOST_REPORTS = 10_000
Batches = AsyncGenerator[list[WatchEvent]]
_JSON = "application/json"
_METADATA = f"{_JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{_JSON}"
_METADATA_LIST = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{_JSON}"
"""Metadata alone, and whole objects from a server that cannot cut them."""
_RETURNED = frozenset(
    {
        kinds.POD,
        kinds.SERVICE_ACCOUNT,
        kinds.RESOURCE_QUOTA,
        kinds.PERSISTENT_VOLUME,
        kinds.PERSISTENT_VOLUME_CLAIM,
        kinds.STORAGE_CLASS,
        kinds.RESOURCE_CLAIM,
        kinds.RESOURCE_CLAIM_TEMPLATE,
        kinds.RESOURCE_SLICE,
        kinds.DEVICE_CLASS,
    }
)
"""Kinds whose deletion the API server answers with the object (ReturnDeletedObject); for others it is a bare Status."""


class LiveCluster:
    """A cluster behind an API server. Close it, or use it as an async context manager."""

    def __init__(
        self,
        access: Access,
        *,
        clock: Clock | None = None,
        on_warning: Warn | None = None,
        answer_within: float = ANSWER,
    ) -> None:
        """`answer_within`: seconds for an answer, watches apart."""
        self.access = access
        self._reported: set[tuple[str, str]] = set()
        self._client = Client(access, clock=clock or SystemClock(), on_warning=on_warning, answer_within=answer_within)

    @classmethod
    def find(
        cls,
        kubeconfig: Path | str | None = None,
        context: str = "",
        *,
        env: Mapping[str, str] = os.environ,
        on_warning: Warn | None = None,
    ) -> LiveCluster:
        """The cluster that kubectl would take. Raises ConfigError. Nothing is sent yet."""
        return cls(find_access(kubeconfig, context, env=env), on_warning=on_warning)

    async def __aenter__(self) -> LiveCluster:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def server_time(self) -> Instant | None:
        """The server's clock at its last answer, in whole seconds; None if it has not said."""
        when = parsedate_to_datetime(self._client.date) if self._client.date else None
        return None if when is None else Instant(int(when.timestamp()) * SECOND)

    # --- reading

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        after: str = "",
        metadata_only: bool = False,
    ) -> Page:
        """See the port. With `metadata_only` the server sends nothing else, and the objects have no sections."""
        query = _query(labelSelector=labels, fieldSelector=fields, limit=limit, **{"continue": after})
        accept = _METADATA_LIST if metadata_only else _JSON
        body = await self._client.call("GET", _path(kind, namespace), query=query, accept=accept)
        odd: Odd = []
        page = read_page(kind, body, odd, metadata_only=metadata_only)
        self._report(kind, odd)
        return page

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        since: str = "",
        labels: str = "",
        fields: str = "",
        bookmarks: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - the port's; the server keeps it
    ) -> AsyncIterator[WatchEvent]:
        """See the port."""
        batches = self.watch_batches(
            kind, namespace, since=since, labels=labels, fields=fields, bookmarks=bookmarks, timeout=timeout
        )
        async with aclosing(batches):
            async for batch in batches:
                for event in batch:
                    yield event

    async def watch_batches(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        since: str = "",
        labels: str = "",
        fields: str = "",
        bookmarks: bool = False,
        initial: bool = False,
        metadata_only: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - the port's; the server keeps it
    ) -> Batches:
        """As `watch`, but what came together is given together; `metadata_only` as in `list`.

        An empty one comes first: the server has accepted the watch. With `initial` the present objects follow, then
        InitialEnd, then news. Raises Invalid where the server does not stream lists.
        """
        query = _query(
            watch=True,
            resourceVersion=since,
            labelSelector=labels,
            fieldSelector=fields,
            allowWatchBookmarks=bookmarks or initial,
            timeoutSeconds=None if timeout is None else max(1, math.ceil(timeout)),
            sendInitialEvents=initial,
            resourceVersionMatch="NotOlderThan" if initial else "",
        )
        lines, odd = Lines(), Odd()
        accept = _METADATA if metadata_only else _JSON
        stream = self._client.stream(_path(kind, namespace), query=query, accept=accept)
        async with aclosing(gathered(stream)) as gathering:
            async for pieces in gathering:
                if not pieces[0]:
                    yield []
                batch: list[WatchEvent] = []
                for line in [line for piece in pieces for line in lines.feed(piece)]:
                    try:
                        event = read_event(kind, line, odd, metadata_only=metadata_only)
                    except ApiError:
                        self._report(kind, odd)
                        if batch:  # what came before it counts
                            yield batch
                        raise
                    if event is not None:
                        batch.append(event)
                if odd:
                    self._report(kind, odd)
                if batch:
                    yield batch

    def _report(self, kind: Kind, odd: Odd) -> None:
        """Say each thing once."""
        for what in odd:
            if (kind.qualified, what) not in self._reported and len(self._reported) < _MOST_REPORTS:
                self._reported.add((kind.qualified, what))
                log.warning("odd object", code=ODD, kind=kind.qualified, what=what)
        odd.clear()

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object:
        """See the port."""
        return read_object(kind, await self._client.call("GET", _path(kind, namespace, name)))

    async def logs(
        self, pod: str, namespace: str, *, container: str = "", previous: bool = False, tail: int | None = None
    ) -> str:
        """See the port."""
        query = _query(container=container, previous=previous, tailLines=None if tail is None else str(tail))
        return (await self._client.call("GET", _path(POD, namespace, pod, "log"), query=query)).decode(errors="replace")

    # --- writing

    async def create(
        self,
        kind: Kind,
        body: Body,
        namespace: str = "",
        *,
        dry_run: bool = False,
        manager: str = "",
        strict: bool = False,
    ) -> Object:
        """See the port."""
        query = _write(dry_run=dry_run, fieldManager=manager, fieldValidation="Strict" if strict else "")
        return await self._write(kind, "POST", _path(kind, namespace), query, body)

    async def update(
        self,
        kind: Kind,
        body: Body,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        dry_run: bool = False,
        manager: str = "",
    ) -> Object:
        """See the port."""
        path = _path(kind, namespace, name, subresource)
        return await self._write(kind, "PUT", path, _write(dry_run=dry_run, fieldManager=manager), body)

    async def patch(
        self,
        kind: Kind,
        body: Body | Operations,
        name: str,
        namespace: str = "",
        *,
        type: PatchType = PatchType.MERGE,  # noqa: A002 - the port's
        subresource: str = "",
        dry_run: bool = False,
        manager: str = "",
        force: bool = False,
    ) -> Object:
        """See the port."""
        path = _path(kind, namespace, name, subresource)
        query = _write(dry_run=dry_run, fieldManager=manager, force=force)
        return await self._write(kind, "PATCH", path, query, body, type.value)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        grace: int | None = None,
        uid: str = "",
        version: str = "",
        propagation: Propagation | None = None,
        dry_run: bool = False,
    ) -> Object:
        """See the port. Kinds whose deletion is answered with a bare Status are read first."""
        known = None if kind in _RETURNED else await self.get(kind, name, namespace)
        options = _delete_options(grace, uid, dry_run=dry_run)
        if version:
            options.setdefault("preconditions", {})["resourceVersion"] = version
        if propagation is not None:
            options["propagationPolicy"] = propagation
        answer = await self._client.call(
            "DELETE", _path(kind, namespace, name), body=msgspec.json.encode(options), media=_JSON
        )
        gone = read_object(kind, answer)
        return gone if gone.name or known is None else known  # a Status has no name

    async def bind(self, pod: str, node: str, namespace: str, *, uid: str = "") -> None:
        """See the port."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": namespace, **({"uid": uid} if uid else {})},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._post(_path(POD, namespace, pod, "binding"), binding)

    async def evict(
        self, pod: str, namespace: str, *, grace: int | None = None, uid: str = "", dry_run: bool = False
    ) -> None:
        """See the port."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": _delete_options(grace, uid, dry_run=dry_run),
        }
        await self._post(_path(POD, namespace, pod, "eviction"), eviction, _write(dry_run=dry_run))

    async def scale(self, kind: Kind, name: str, namespace: str, replicas: int) -> None:
        """See the port."""
        body = msgspec.json.encode({"spec": {"replicas": replicas}})
        path = _path(kind, namespace, name, "scale")
        await self._client.call("PATCH", path, body=body, media=PatchType.MERGE.value)

    async def _post(self, path: str, document: dict[str, Any], query: dict[str, str] | None = None) -> None:
        await self._client.call("POST", path, query=query, body=msgspec.json.encode(document), media=_JSON)

    async def _write(
        self, kind: Kind, method: str, path: str, query: dict[str, str], body: Body | Operations, media: str = _JSON
    ) -> Object:
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return read_object(kind, await self._client.call(method, path, query=query, body=content, media=media))


def _path(kind: Kind, namespace: str | None, name: str = "", subresource: str = "") -> str:
    """`/apis/apps/v1/namespaces/default/deployments/web/scale`."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    parts = [root, *(("namespaces", quote(namespace, safe="")) if kind.namespaced and namespace else ()), kind.plural]
    return "/".join([*parts, *(quote(each, safe=":") for each in (name, subresource) if each)])


def _query(**given: str | int | bool | None) -> dict[str, str]:
    """What is asked for; empty, zero, False and None are not asked for."""
    return {name: "true" if value is True else str(value) for name, value in given.items() if value}


def _write(*, dry_run: bool, **given: str | bool) -> dict[str, str]:
    return _query(dryRun="All" if dry_run else "", **given)


def _delete_options(grace: int | None, uid: str, *, dry_run: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if uid:
        options["preconditions"] = {"uid": uid}
    if dry_run:
        options["dryRun"] = ["All"]
    return options
