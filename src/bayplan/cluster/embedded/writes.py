"""Applying what controllers ask for, and recording their Events."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import msgspec

from bayplan.cluster.embedded import subresources
from bayplan.cluster.embedded.controllers.contract import Bind, Create, Delete, Emit, Patch, SetStatus, Write
from bayplan.cluster.embedded.deletion import DeleteOptions
from bayplan.cluster.embedded.server import Server
from bayplan.cluster.kinds import EVENT
from bayplan.cluster.objects import Object
from bayplan.model.clock import rfc3339
from bayplan.model.errors import ApiError, NotFound


class Writer:
    """The hands of the controllers."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def apply(self, write: Write) -> None:
        """Do one write. Raises ApiError when it is refused."""
        _apply(write, self, self._server)

    def emit(self, event: Emit, **words: str) -> None:
        """Record an Event, or count a repeat of one."""
        message = event.message.format(**words) if words else event.message
        record_event(self._server, event, message)


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
        raise
    if write.then is not None:
        writer.emit(write.then, name=created.name)


@_apply.register
def _(write: Delete, writer: Writer, server: Server) -> None:
    item = write.item
    options = DeleteOptions(grace=write.grace, uid=item.uid, propagation=write.propagation)
    try:
        server.delete(item.kind, item.namespace, item.name, options)
    except NotFound:
        return
    if write.then is not None:
        writer.emit(write.then, name=item.name)


@_apply.register
def _(write: SetStatus, _writer: Writer, server: Server) -> None:
    server.write_status(write.item, write.status)


@_apply.register
def _(write: Patch, _writer: Writer, server: Server) -> None:
    item = write.item
    body = msgspec.json.encode(write.patch)
    server.patch(item.kind, item.namespace, item.name, "application/merge-patch+json", body)


@_apply.register
def _(write: Bind, writer: Writer, server: Server) -> None:
    item = write.item
    binding = {"metadata": {"name": item.name, "uid": item.uid}, "target": {"kind": "Node", "name": write.node}}
    subresources.bind(server, item.namespace, item.name, binding)
    if write.then is not None:
        writer.emit(write.then, name=item.name)


@_apply.register
def _(write: Emit, writer: Writer, _server: Server) -> None:
    writer.emit(write)


def record_event(server: Server, event: Emit, message: str) -> None:
    """Store an Event; the same again within its life only raises its count, as client-go's correlator does."""
    about = event.about
    now = rfc3339(server.now())
    namespace = about.namespace or "default"
    digest = _fingerprint(about, event, message)
    name = f"{about.name}.{digest}"
    known = server.store.get(EVENT, namespace, name)
    if known is not None:
        count = known.sections["count"].plain() + 1
        changed: dict[str, Any] = {"count": count, "lastTimestamp": now}
        server.replace_sections(known, changed)
        return
    reference = {
        "kind": about.kind.name,
        "namespace": about.namespace,
        "name": about.name,
        "uid": about.uid,
        "apiVersion": about.kind.api_version,
        "resourceVersion": about.meta.resource_version,
    }
    server.insert(
        EVENT,
        {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {key: value for key, value in reference.items() if value},
            "reason": event.reason,
            "message": message,
            "source": {"component": event.component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": event.type,
            "eventTime": None,
            "reportingComponent": event.component,
            "reportingInstance": "",
        },
    )


def _fingerprint(about: Object, event: Emit, message: str) -> str:
    """Sixteen hexadecimal digits, as upstream's event names end; ours say what is counted together."""
    text = "\0".join((about.uid, event.type, event.reason, message, event.component))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
