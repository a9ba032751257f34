"""The embedded engine behind the port `Cluster`: a World, and an asyncio face on it.

All work is synchronous and lives in `world` and `server`; here are only the waiting (watches, real time) and the
paging. In virtual time nothing moves until `advance` is called; in real time `run` keeps the world at the clock.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from bayplan.cluster.embedded import subresources
from bayplan.cluster.embedded.controllers.contract import Controller
from bayplan.cluster.embedded.deletion import DeleteOptions
from bayplan.cluster.embedded.kubelet.logs import logs
from bayplan.cluster.embedded.requests import Answer, WriteOptions
from bayplan.cluster.embedded.selection import Selection
from bayplan.cluster.embedded.store import Change, ChangeType, Log
from bayplan.cluster.embedded.world import World
from bayplan.cluster.kinds import POD, Kind
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Body, Operations, Page, PatchType, Propagation, WatchEvent
from bayplan.model.clock import SECOND, Clock, Instant, VirtualClock, seconds
from bayplan.model.errors import BadRequest, Expired, ServerError

_BATCH = 500
"""Changes that a watch reads at a time."""
_PAGED_LISTS = 64
"""Lists whose later pages are kept at a time; the oldest is given up."""
_BOOKMARK_EVERY = 60 * SECOND
_MOST_DIGITS = 19
"""Of a revision: it has 64 bits."""
_STEP = 200
"""Reconciles between two looks at the event loop, so that clients are served while the world is busy."""


Waits = list[asyncio.Future[Any]]
Events = list[WatchEvent]


def _bytes(body: Body | Operations) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


class EmbeddedCluster:
    """A whole cluster in this process. Implements bayplan.cluster.port.Cluster."""

    def __init__(
        self,
        controllers: Sequence[Controller],
        *,
        clock: Clock | None = None,
        seed: int = 0,
        history: int = 10_000,
        events: bool = True,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.clock: Clock = VirtualClock() if clock is None else clock
        self.world = World(controllers, seed=seed, start=self.clock.now(), history=history, events=events)
        self._server = self.world.server
        self._store = self.world.store
        self._on_warning = on_warning
        self._pages: OrderedDict[str, tuple[Kind, str, tuple[Object, ...]]] = OrderedDict()
        self._lists = 0
        self._waiting: dict[Kind, list[asyncio.Future[None]]] = {}
        self._moved = asyncio.Event()
        self._store.listeners.append(self._wake)

    # --- time

    async def advance(self, span: float) -> None:
        """Virtual time only: let `span` seconds pass, doing all that falls due, then let the watchers see it."""
        clock = self.clock
        if not isinstance(clock, VirtualClock):
            raise TypeError("real time cannot be advanced")
        end = Instant(clock.now() + seconds(span))
        self.world.advance(end)
        clock.advance_to(end)
        await asyncio.sleep(0)

    async def run(self) -> None:
        """Real time only: keep the world at the clock until cancelled."""
        world = self.world
        while True:
            world.catch_up(self.clock.now())
            if world.settle(_STEP) == _STEP:
                await asyncio.sleep(0)
                continue
            self._moved.clear()
            await self._first_of(self._moved.wait(), world.next_timer)

    def tick(self) -> None:
        """Bring the world's time up to the clock's before a client's call."""
        self.world.now = max(self.world.now, self.clock.now())

    def _wake(self, change: Change) -> None:
        self._moved.set()
        waiting = self._waiting.pop(change.new.kind, None)
        if waiting:
            for future in waiting:
                if not future.done():
                    future.set_result(None)

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
        """See the port. With `metadata_only` the objects have no sections; later pages are as the first."""
        if after:
            return self._next_page(kind, after, limit)
        selection = Selection(kind, namespace, labels, fields)
        found = self._select(selection)
        items = tuple([item.bare() for item in found] if metadata_only else found)
        revision = str(self._store.revision)
        if limit <= 0 or len(items) <= limit:
            return Page(items, revision)
        self._lists += 1
        token = f"{revision}.{self._lists}"
        self._pages[token] = (kind, revision, items)
        while len(self._pages) > _PAGED_LISTS:
            self._pages.popitem(last=False)
        return _page(items, revision, token, 0, limit)

    def _next_page(self, kind: Kind, after: str, limit: int) -> Page:
        token, _, offset = after.rpartition("@")
        if not _is_number(offset) or self._pages.get(token, (kind,))[0] is not kind:
            raise BadRequest("continue key is not valid: it is not one that this server gave out for such a list")
        if token not in self._pages:
            raise Expired(
                "The provided continue parameter is too old to display a consistent list result. You must start a new "
                "list without the continue parameter."
            )
        _, revision, items = self._pages[token]
        return _page(items, revision, token, int(offset), limit if limit > 0 else len(items))

    def _select(self, selection: Selection) -> Sequence[Object]:
        node = selection.exact("spec.nodeName") if selection.kind is POD else None
        if node:
            items = sorted(self._store.pods_on(node), key=lambda item: item.key)
        else:
            items = [each.as_kind(selection.kind) for each in self._store.objects(selection.kind, selection.namespace)]
            if selection.everything:
                return items
        return [item for item in items if selection.matches(item)]

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        since: str = "",
        labels: str = "",
        fields: str = "",
        bookmarks: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - a watch's own timeout is part of the protocol
    ) -> AsyncIterator[WatchEvent]:
        """See the port."""
        async for batch in self.watch_batches(
            kind, namespace, since=since, labels=labels, fields=fields, bookmarks=bookmarks, timeout=timeout
        ):
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
        metadata_only: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - a watch's own timeout is part of the protocol
    ) -> AsyncGenerator[Events]:
        """The same events, as many at a time as there are: without `since` the first batch is the present objects.

        With `metadata_only` the objects have no sections.
        """
        selection = Selection(kind, namespace, labels, fields)
        log = self._store.log(kind)
        deadline = None if timeout is None else Instant(self.clock.now() + seconds(timeout))
        if since:
            position = self._position(log, _revision(since))
        else:
            position = log.end
            present = [WatchEvent("ADDED", item.meta.resource_version, item) for item in self._select(selection)]
            yield _cut(present) if metadata_only else present
        told = self.clock.now()
        while True:
            changes = log.read(position, _BATCH)
            position += len(changes)
            events = [event for change in changes if (event := _event(change, selection)) is not None]
            events = _cut(events) if metadata_only else events
            caught_up = position == log.end  # else a bookmark would pass by what is still to be told
            if bookmarks and caught_up and self.clock.now() - told >= _BOOKMARK_EVERY:
                told = self.clock.now()
                events.append(WatchEvent("BOOKMARK", str(self._store.revision)))
            if events:
                yield events
            if changes:
                continue
            if deadline is not None and self.clock.now() >= deadline:
                break
            await self._wait(kind, deadline, Instant(told + _BOOKMARK_EVERY) if bookmarks else None)
        if bookmarks and position == log.end:
            yield [WatchEvent("BOOKMARK", str(self._store.revision))]

    def _position(self, log: Log, since: int) -> int:
        if since > self._store.revision:  # given out before a restart: whoever has it must list anew
            raise Expired(f"Too large resource version: {since}, current: {self._store.revision}")
        return log.after(since)

    async def _wait(self, kind: Kind, *until: Instant | None) -> None:
        """Until something of the kind changes, or the earliest of the given instants."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(self._store.stem(kind), [])
        waiting.append(future)
        try:
            await self._first_of(future, min((instant for instant in until if instant is not None), default=None))
        finally:
            waiting.remove(future)

    async def _first_of(self, awaitable: Awaitable[Any], at: Instant | None) -> None:
        """Until the awaitable is done or the instant has come; neither is left behind."""
        waits: Waits = [asyncio.ensure_future(awaitable)]
        if at is not None:
            waits.append(asyncio.ensure_future(self.clock.sleep_until(at)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object:
        """See the port."""
        return self._server.get(kind, namespace, name)

    # --- writing

    def _told(self, answer: Answer) -> Object:
        if self._on_warning is not None:
            for warning in answer.warnings:
                self._on_warning(warning)
        return answer.object

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
        self.tick()
        options = WriteOptions(dry_run=dry_run, field_manager=manager, validation="Strict" if strict else "Warn")
        return self._told(self._server.create(kind, namespace, body, options))

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
        self.tick()
        options = WriteOptions(dry_run=dry_run, field_manager=manager)
        return self._told(self._server.update(kind, namespace, name, _bytes(body), options, subresource=subresource))

    async def patch(
        self,
        kind: Kind,
        body: Body | Operations,
        name: str,
        namespace: str = "",
        *,
        type: PatchType = PatchType.MERGE,  # noqa: A002 - the word every Kubernetes client has for it
        subresource: str = "",
        dry_run: bool = False,
        manager: str = "",
        force: bool = False,
    ) -> Object:
        """See the port."""
        self.tick()
        options = WriteOptions(dry_run=dry_run, field_manager=manager, force=force or None)
        return self._told(
            self._server.patch(kind, namespace, name, type.value, _bytes(body), options, subresource=subresource)
        )

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
        """See the port."""
        self.tick()
        options = DeleteOptions(grace=grace, uid=uid, version=version, propagation=propagation, dry_run=dry_run)
        return self._server.delete(kind, namespace, name, options)

    async def bind(self, pod: str, node: str, namespace: str, *, uid: str = "") -> None:
        """See the port."""
        self.tick()
        meta: dict[str, Any] = {"name": pod, **({"uid": uid} if uid else {})}
        subresources.bind(self._server, namespace, pod, {"metadata": meta, "target": {"kind": "Node", "name": node}})

    async def evict(
        self, pod: str, namespace: str, *, grace: int | None = None, uid: str = "", dry_run: bool = False
    ) -> None:
        """See the port."""
        self.tick()
        subresources.evict(self._server, namespace, pod, DeleteOptions(grace=grace, uid=uid, dry_run=dry_run))

    async def scale(self, kind: Kind, name: str, namespace: str, replicas: int) -> None:
        """See the port."""
        self.tick()
        body = {"metadata": {"name": name}, "spec": {"replicas": replicas}}
        subresources.scale(self._server, kind, namespace, name, body)

    async def logs(
        self, pod: str, namespace: str, *, container: str = "", previous: bool = False, tail: int | None = None
    ) -> str:
        """See the port."""
        self.tick()
        return logs(self._server.get(POD, namespace, pod), container, previous, tail, self.world.now)


def _page(items: tuple[Object, ...], revision: str, token: str, offset: int, limit: int) -> Page:
    end = offset + limit
    remaining = max(0, len(items) - end)
    return Page(items[offset:end], revision, f"{token}@{end}" if remaining else "", remaining)


def _is_number(text: str) -> bool:
    """Whether it is one that the server may have given out."""
    return text.isascii() and text.isdigit() and len(text) < 20


def _revision(text: str) -> int:
    """A revision that a client names. Raises ServerError, as upstream does, for what is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        fault = "invalid syntax" if not (text.isascii() and text.isdigit()) else "value out of range"
        why = f'strconv.ParseUint: parsing "{text}": {fault}'
        raise ServerError(f'resourceVersion: Invalid value: "{text}": {why}')
    return int(text)


def _cut(events: Events) -> Events:
    """The same with metadata alone."""
    return [WatchEvent(event.type, event.revision, event.object and event.object.bare()) for event in events]


def _event(change: Change, selection: Selection) -> WatchEvent | None:
    """A change as one watcher sees it: an object that comes to match is added, one that ceases to is deleted."""
    new = change.new.as_kind(selection.kind)
    if selection.everything:
        return WatchEvent(change.type.value, new.meta.resource_version, new)
    is_in = change.type is not ChangeType.DELETED and selection.matches(new)
    was_in = change.old is not None and selection.matches(change.old)
    if is_in:
        return WatchEvent("MODIFIED" if was_in else "ADDED", new.meta.resource_version, new)
    if was_in and change.old is not None:
        last = new if change.type is ChangeType.DELETED else change.old  # as it was when it last belonged
        meta = msgspec.structs.replace(last.meta, resource_version=new.meta.resource_version)
        gone = Object(new.kind, meta, last.sections, new.version)
        return WatchEvent("DELETED", new.meta.resource_version, gone)
    return None
