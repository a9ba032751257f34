"""What the API server families share: a cluster as the recordings found it, and answers made comparable.

tests/vectors/apiserver/FORMAT.md says what was masked in the recordings: everything that depends on the run. The
same is masked here in our answers. Time stands still during a case, at an instant no case mentions, so a time
of ours is known.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bayplan.cluster.embedded.bootstrap import bootstrap
from bayplan.cluster.embedded.requests import Answer
from bayplan.cluster.embedded.server import Server
from bayplan.cluster.embedded.store import Store
from bayplan.cluster.kinds import KINDS, NAMESPACE, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant, parse_rfc3339
from bayplan.model.errors import ApiError

_NOW = parse_rfc3339("2001-02-03T04:05:06Z")
_OUR_DAY = "2001-02-03T"
_RUN_DEPENDENT = ("uid", "resourceVersion", "creationTimestamp", "managedFields")

Doc = dict[str, Any]


class RecordedServer(Server):
    """A server that remembers what it made up, so that it can be masked wherever it shows."""

    def __init__(self) -> None:
        super().__init__(Store(), lambda: Instant(_NOW), random.Random(0))
        self.masks: dict[str, str] = {}

    def uid(self) -> str:
        uid = super().uid()
        self.masks[uid] = "<uid>"
        return uid

    def suffix(self) -> str:
        suffix = super().suffix()
        self.masks[suffix] = "<rand>"
        return suffix

    def outcome(self, call: Callable[[], Answer], requests: Sequence[Doc], before: Object | None = None) -> Doc:
        """What a call led to, in the recordings' form. `before` is the object before the call, if there was one."""
        try:
            answer = call()
        except ApiError as error:
            return self.refusal(error)
        result: Doc = {"status": answer.status, "object": self.masked(answer.object.doc(), requests)}
        if answer.warnings:
            result["warnings"] = sorted(answer.warnings)
        was = None if before is None else before.meta.resource_version
        result["unchanged"] = was == answer.object.meta.resource_version
        return result

    def refusal(self, error: ApiError) -> Doc:
        """An error in the recordings' form."""
        result: Doc = {"status": error.status, "reason": error.reason, "message": error.message}
        if error.causes:
            result["causes"] = causes([msgspec.structs.asdict(cause) for cause in error.causes])
        masked: Doc = _masked(result, self.masks)
        return masked

    def masked(self, document: Doc, requests: Sequence[Doc] = ()) -> Doc:
        """A document of ours with everything that depends on the run taken out or replaced.

        What one of the requests named (an address, a port) does not depend on the run.
        """
        result: Doc = _masked(document, self.masks)
        for name in _RUN_DEPENDENT:
            result.get("metadata", {}).pop(name, None)
        if document.get("kind") == "Service":
            _mask_service(result.get("spec", {}), [request.get("spec") or {} for request in requests])
        return result


def fresh_server(namespace: str) -> RecordedServer:
    """A cluster with the recordings' namespaces and nothing else in it."""
    server = RecordedServer()
    bootstrap(server)
    for name in {"vec", "vec-q", "vec-p", "vec-t", namespace} - {"missing", ""}:
        if server.store.get(NAMESPACE, "", name) is None:
            server.create(NAMESPACE, "", {"metadata": {"name": name}})
    return server


def kind_of(document: Doc) -> Kind:
    """The kind that a document names."""
    return KINDS[document["kind"]]


def home(kind: Kind, namespace: str) -> str:
    """The namespace of an object of this kind: none for cluster-scoped ones."""
    return namespace if kind.namespaced else ""


def put_state(server: Server, namespace: str, documents: list[Doc]) -> None:
    """Create the objects that exist before a case, status included."""
    for document in documents:
        kind = kind_of(document)
        plain = {key: value for key, value in document.items() if key not in ("status", "$deleted")}
        where = home(kind, document.get("metadata", {}).get("namespace", namespace))
        name = plain["metadata"]["name"]
        if kind is NAMESPACE and server.store.get(kind, "", name) is not None:
            server.store.remove(kind, "", name)
        created = server.create(kind, where, plain).object
        if "status" in document:
            body = {**created.doc(), "status": document["status"]}
            server.update(kind, where, name, body, subresource="status")
        if document.get("$deleted"):
            server.delete(kind, where, name)


def causes(listed: list[Doc]) -> list[tuple[str, str, str]]:
    """Distinct causes in one order."""
    return sorted({(c.get("field", ""), c.get("reason", ""), c.get("message", "")) for c in listed})


def comparable(expected: Doc) -> Doc:
    """A recorded answer, reduced to what counts."""
    if expected["status"] >= 300:
        result = {"status": expected["status"], "reason": expected.get("reason"), "message": expected["message"]}
        if expected.get("causes"):
            result["causes"] = causes(expected["causes"])
        return result
    result = {"status": expected["status"], "object": expected["object"]}
    if expected.get("warnings"):
        result["warnings"] = sorted(expected["warnings"])
    return result


def difference(ours: Doc, theirs: Doc) -> str:
    """The first thing that differs, shortly; empty when all agrees. With causes the message is derived from them."""
    ours, theirs = dict(ours), dict(theirs)
    if ours.get("causes") and theirs.get("causes"):
        ours.pop("message", None)
        theirs.pop("message", None)
    for key in sorted({*ours, *theirs}, key=lambda each: (each != "status", each)):
        if ours.get(key) != theirs.get(key):
            if key == "status" and ours["status"] >= 300:
                return f"status {ours['status']} ({ours['message'][:200]}), expected {theirs['status']}"
            return _first_difference(key, ours.get(key), theirs.get(key))
    return ""


def _first_difference(path: str, ours: Any, theirs: Any) -> str:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            if ours.get(key) != theirs.get(key):
                return _first_difference(f"{path}.{key}", ours.get(key), theirs.get(key))
    if isinstance(ours, list) and isinstance(theirs, list):
        extra = [each for each in ours if each not in theirs]
        missing = [each for each in theirs if each not in ours]
        if len(ours) == len(theirs) and len(extra) == len(missing) == 1 and not path.startswith("causes"):
            return _first_difference(f"{path}[{ours.index(extra[0])}]", extra[0], missing[0])
        return f"{path}: not expected {extra}, missing {missing}"[:600]
    return f"{path}: {ours!r}, expected {theirs!r}"[:600]


def _masked(value: Any, texts: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _masked(item, texts) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_masked(item, texts) for item in value)
    if isinstance(value, str):
        if value.startswith(_OUR_DAY):
            return "<time>"
        for text, mask in texts.items():
            value = value.replace(text, mask)
    return value


def _mask_service(spec: Doc, asked: Sequence[Doc]) -> None:
    addresses = {ip for each in asked for ip in (each.get("clusterIP"), *(each.get("clusterIPs") or ()))}
    for ip in (spec.get("clusterIP"), *spec.get("clusterIPs", ())):
        if ip and ip != "None" and ip not in addresses:
            spec["clusterIP"] = "<ip>"
            spec["clusterIPs"] = ["<ip>" if each == ip else each for each in spec["clusterIPs"]]
    ports = {port.get("nodePort") for each in asked for port in each.get("ports") or ()}
    ports |= {each.get("healthCheckNodePort") for each in asked}
    for port in spec.get("ports", ()):
        if port.get("nodePort") and port["nodePort"] not in ports:
            port["nodePort"] = "<port>"
    if spec.get("healthCheckNodePort") and spec["healthCheckNodePort"] not in ports:
        spec["healthCheckNodePort"] = "<port>"
