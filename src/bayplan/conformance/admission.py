"""Family apiserver/admission: one create, PUT or subresource call against a cluster in a given state."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

import msgspec

from bayplan.cluster.embedded import subresources
from bayplan.cluster.embedded.deletion import DeleteOptions
from bayplan.cluster.embedded.refusals import options_refused
from bayplan.cluster.embedded.requests import WriteOptions
from bayplan.cluster.embedded.scaling import scale_of
from bayplan.cluster.kinds import KINDS, POD_DISRUPTION_BUDGET, Kind
from bayplan.cluster.objects import Object
from bayplan.conformance.apiserver import (
    Doc,
    RecordedServer,
    comparable,
    difference,
    fresh_server,
    home,
    put_state,
)
from bayplan.conformance.frame import Verdict
from bayplan.model.errors import ApiError


def run(case: Doc) -> Verdict:
    """Run one case."""
    kind = KINDS[case["kind"]]
    namespace = case.get("namespace") or ("vec-q" if case["kind"] in ("LimitRange", "ResourceQuota") else "vec")
    server = fresh_server(namespace)
    put_state(server, namespace, case.get("state") or [])
    ours = {"create": _create, "update": _update, "subresource": _subresource}[case["op"]](
        server, kind, namespace, case
    )
    theirs = comparable(case["expected"])
    for extra in ("unchanged", "gone", "after", "pdbsAfter"):
        if extra in case["expected"]:
            theirs[extra] = case["expected"][extra]
        else:
            ours.pop(extra, None)
    told = difference(ours, theirs)
    return Verdict(case["id"], case["kind"], not told, told)


def _options(case: Doc) -> WriteOptions:
    query = {key: values[-1] for key, values in parse_qs(case.get("query") or "").items()}
    return WriteOptions(
        dry_run=case.get("dryRun", False) or ("dryRun" in query and _dry_run(query["dryRun"])),
        validation=query.get("fieldValidation", "Warn"),
        content_type=case.get("contentType") or "application/json",
    )


def _dry_run(value: str) -> bool:
    if value != "All":
        raise options_refused("CreateOptions", "dryRun", [value], ("All",))
    return True


def _body(case: Doc) -> bytes:
    """The request's bytes; objects were sent as Python's json writes them, which some messages quote."""
    if case.get("bodyText") is not None:
        return str(case["bodyText"]).encode()
    return b"" if case.get("object") is None else json.dumps(case["object"]).encode()


def _create(server: RecordedServer, kind: Kind, namespace: str, case: Doc) -> Doc:
    where = home(kind, namespace)
    return server.outcome(lambda: server.create(kind, where, _body(case), _options(case)), [case.get("object") or {}])


def _update(server: RecordedServer, kind: Kind, namespace: str, case: Doc) -> Doc:
    where = home(kind, namespace)
    body = case["object"]
    name = case.get("urlName") or body["metadata"]["name"]
    first = current = None
    if case.get("old") is not None:
        first = server.create(kind, where, case["old"]).object
        name = case.get("urlName") or first.name
        _prelude(server, kind, where, first.name, case)
        current = server.store.get(kind, where, first.name)
    sent = _filled(body, first, current)
    raw = json.dumps(sent).encode()
    ours = server.outcome(
        lambda: server.update(kind, where, name, raw, _options(case), subresource=case.get("sub") or ""),
        (),
        current,
    )
    ours["gone"] = server.store.get(kind, where, name) is None
    return ours


def _filled(value: Any, first: Object | None, current: Object | None) -> Any:
    """The request with its placeholders replaced."""
    texts = {
        "<uid>": first.uid if first else "",
        "<first>": first.meta.resource_version if first else "",
        "<current>": current.meta.resource_version if current else "",
    }
    text = msgspec.json.encode(value).decode()
    for placeholder, real in texts.items():
        text = text.replace(placeholder, real)
    return msgspec.json.decode(text)


def _prelude(server: RecordedServer, kind: Kind, namespace: str, name: str, case: Doc) -> None:
    for step in case.get("pre") or []:
        if step["op"] == "delete":
            query = {key: values[-1] for key, values in parse_qs(step.get("query") or "").items()}
            grace = query.get("gracePeriodSeconds")
            propagation: Any = query.get("propagationPolicy")
            options = DeleteOptions(grace=int(grace) if grace else None, propagation=propagation)
            server.delete(kind, namespace, name, options)
        else:
            server.patch(kind, namespace, name, "application/merge-patch+json", msgspec.json.encode(step["patch"]))


def _subresource(server: RecordedServer, kind: Kind, namespace: str, case: Doc) -> Doc:
    name = case["name"]
    if case.get("pre"):
        _prelude(server, kind, namespace, name, case)
    before = server.store.get(kind, namespace, name)
    try:
        ours = _act(server, kind, namespace, case)
    except ApiError as error:
        ours = server.refusal(error)
    after = server.store.get(kind, namespace, name)
    ours["after"] = None if after is None else server.masked(after.doc())
    ours["pdbsAfter"] = [
        {"name": budget.name, "status": server.masked(budget.sections["status"].plain())}
        for budget in server.store.objects(POD_DISRUPTION_BUDGET, namespace)
    ]
    ours["unchanged"] = before is not None and after is not None and before.version == after.version
    return ours


_SUCCESS: Doc = {"kind": "Status", "apiVersion": "v1", "status": "Success"}


def _act(server: RecordedServer, kind: Kind, namespace: str, case: Doc) -> Doc:
    name, sub, body = case["name"], case["sub"], case.get("object") or {}
    if sub == "binding":
        subresources.bind(server, namespace, name, body)
        return {"status": 201, "object": _SUCCESS}
    if sub == "eviction":
        asked = body.get("deleteOptions") or {}
        options = DeleteOptions(
            grace=asked.get("gracePeriodSeconds"),
            uid=(asked.get("preconditions") or {}).get("uid", ""),
            dry_run=bool(asked.get("dryRun")),
        )
        subresources.evict(server, namespace, name, options)
        return {"status": 201, "object": _SUCCESS}
    if case["method"] == "GET":
        return {"status": 200, "object": server.masked(scale_of(server.get(kind, namespace, name)))}
    scale, _ = subresources.scale(server, kind, namespace, name, body)
    return {"status": 200, "object": server.masked(scale)}
