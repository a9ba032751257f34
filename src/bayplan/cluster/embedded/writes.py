"""Applying what controllers ask for."""

from __future__ import annotations

import functools

import msgspec

from bayplan.cluster.embedded import subresources
from bayplan.cluster.embedded.controllers.contract import Bind, Create, Delete, Emit, Patch, SetStatus, Write
from bayplan.cluster.embedded.deletion import DeleteOptions
from bayplan.cluster.embedded.events import Recorder
from bayplan.cluster.embedded.server import Server
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
        _apply(write, self, self._server)

    def emit(self, event: Emit, **words: str) -> None:
        """Record an Event, or count a repeat of one."""
        if self._recorder is not None:
            message = event.message.format(**words) if words else event.message
            self._recorder.record(event, message)


@functools.singledispatch
def _apply(write: Write, _writer: Writer, _server: Server) -> None:
    raise TypeError(f"no way to do {write!r}")


@_apply.register
def _(write: Create, writer: Writer, server: Server) -> None:
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


@_apply.register
def _(write: Delete, writer: Writer, server: Server) -> None:
    item = write.item
    options = DeleteOptions(grace=write.grace, uid=item.uid, propagation=write.propagation)
    try:
        server.delete(item.kind, item.namespace, item.name, options)
    except (NotFound, Conflict):  # gone, or another has its name by now
        return
    if write.then is not None:
        writer.emit(write.then, name=item.name)


@_apply.register
def _(write: SetStatus, _writer: Writer, server: Server) -> None:
    server.write_status(write.item, write.status)


@_apply.register
def _(write: Patch, _writer: Writer, server: Server) -> None:
    item = write.item
    if write.patch.keys() == {"metadata"} and write.patch["metadata"].keys() <= _PLAIN_METADATA:
        server.write_metadata(item, write.patch["metadata"])
        return
    body = msgspec.json.encode(write.patch)
    type_ = "application/merge-patch+json"
    server.patch(item.kind, item.namespace, item.name, type_, body, subresource=write.subresource)


@_apply.register
def _(write: Bind, writer: Writer, server: Server) -> None:
    item = write.item
    meta = {"name": item.name, "uid": item.uid, "annotations": write.annotations}
    binding = {"metadata": meta, "target": {"kind": "Node", "name": write.node}}
    subresources.bind(server, item.namespace, item.name, binding)
    if write.then is not None:
        writer.emit(write.then, name=item.name)


@_apply.register
def _(write: Emit, writer: Writer, _server: Server) -> None:
    writer.emit(write)
