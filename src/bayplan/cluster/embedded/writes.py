"""Applying what controllers ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.cluster.embedded import subresources
from bayplan.cluster.embedded.controllers.contract import Bind, Create, Delete, Emit, Patch, SetStatus, Write
from bayplan.cluster.embedded.deletion import DeleteOptions
from bayplan.cluster.embedded.events import Recorder
from bayplan.cluster.embedded.server import Server
from bayplan.cluster.kinds import NODE, Kind
from bayplan.model.errors import ApiError, Conflict, NotFound

_PLAIN_METADATA = {"labels", "annotations", "finalizers", "ownerReferences"}
"""What a controller may change of an object's metadata without asking admission."""


class Writer:
    """The hands of the controllers."""

    def __init__(self, server: Server, *, events: bool = True) -> None:
        """Without `events` nobody reads them, and none are recorded."""
        self._server = server
        self._recorder = Recorder(server) if events else None

    def apply(self, write: Write) -> None:
        """Do one write. Raises ApiError when it is refused."""
        _WAYS[type(write)](write, self, self._server)

    def emit(self, event: Emit, **words: str) -> None:
        """Record an Event, or count a repeat of one."""
        if self._recorder is not None:
            message = event.message.format(**words) if words else event.message
            self._recorder.record(event, message)


def _create(write: Create, writer: Writer, server: Server) -> None:
    try:
        created = server.stamp(write.kind, write.meta, write.sections)
    except ApiError as error:
        if write.refused is not None:
            writer.emit(write.refused, error=error.message, name=write.meta.name)
        for other in write.instead(error.message) if write.instead is not None else ():
            writer.apply(other)
        raise
    if write.then is not None:
        writer.emit(write.then, name=created.name)
    for other in write.follow(created) if write.follow is not None else ():
        writer.apply(other)


def _delete(write: Delete, writer: Writer, server: Server) -> None:
    item = write.item
    options = DeleteOptions(grace=write.grace, uid=item.uid, propagation=write.propagation)
    try:
        server.delete(item.kind, item.namespace, item.name, options)
    except (NotFound, Conflict):  # gone, or another has its name by now
        return
    if write.then is not None:
        writer.emit(write.then, name=item.name)


def _set_status(write: SetStatus, _writer: Writer, server: Server) -> None:
    server.write_status(write.item, write.status)


def _patch(write: Patch, _writer: Writer, server: Server) -> None:
    item = write.item
    if all(_is_plain(item.kind, name, part) for name, part in write.patch.items()):
        server.merge(item, write.patch)
        return
    body = msgspec.json.encode(write.patch)
    type_ = "application/merge-patch+json"
    server.patch(item.kind, item.namespace, item.name, type_, body, subresource=write.subresource)


def _is_plain(kind: Kind, name: str, part: dict[str, Any]) -> bool:
    """Whether a patch's part is one that nobody has a say in."""
    if name == "metadata":
        return part.keys() <= _PLAIN_METADATA
    return kind is NODE and name == "spec" and part.keys() == {"taints"}


def _bind(write: Bind, writer: Writer, server: Server) -> None:
    subresources.assign(server, write.item, write.node, write.annotations)
    if write.then is not None:
        writer.emit(write.then, name=write.item.name)


def _emit(write: Emit, writer: Writer, _server: Server) -> None:
    writer.emit(write)


_WAYS: dict[type[Write], Callable[[Any, Writer, Server], None]] = {
    Create: _create,
    Delete: _delete,
    SetStatus: _set_status,
    Patch: _patch,
    Bind: _bind,
    Emit: _emit,
}
"""How each is done."""
