"""Family apiserver/patch: one object, one or several PATCH requests in a row."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

from bayplan.cluster.embedded.patch.fieldsets import decode, path_text, paths
from bayplan.cluster.embedded.requests import Answer, WriteOptions
from bayplan.cluster.kinds import KINDS, Kind
from bayplan.conformance.apiserver import Doc, RecordedServer, comparable, difference, fresh_server, home
from bayplan.conformance.frame import Verdict

_NAMESPACE = "vec-p"
_NAME = "obj"


def run(case: Doc) -> Verdict:
    """Run one case: every step must agree."""
    kind = KINDS[case["kind"]]
    server = fresh_server(_NAMESPACE)
    where = home(kind, _NAMESPACE)
    if case["old"] is not None:
        server.create(kind, where, case["old"], WriteOptions(field_manager="creator"))
    for number, (step, expected) in enumerate(zip(case["steps"], case["expected"], strict=True)):
        ours = _step(server, kind, where, step, case["old"])
        theirs = comparable(expected)
        if "managers" in expected:
            theirs["managers"] = expected["managers"]
        else:
            ours.pop("managers", None)
        if expected["status"] < 300:
            theirs["unchanged"] = expected.get("unchanged", False)
        told = difference(ours, theirs)
        if told:
            return Verdict(case["id"], case["kind"], agrees=False, difference=f"step {number}: {told}")
    return Verdict(case["id"], case["kind"], agrees=True)


def _step(server: RecordedServer, kind: Kind, namespace: str, step: Doc, created: Doc | None) -> Doc:
    before = server.store.get(kind, namespace, _NAME)
    patch = step.get("patch")
    text = step["patchText"] if "patchText" in step else json.dumps(patch)
    version = before.meta.resource_version if before is not None else ""
    body = text.replace("<current>", version).encode()
    entries: list[Doc] = []

    def call() -> Answer:
        options = _options(step)
        answer = server.patch(kind, namespace, _NAME, step["type"], body, options, subresource=step.get("sub") or "")
        entries.extend(answer.object.doc()["metadata"].get("managedFields", []))
        return answer

    named = [document for document in (created, patch) if isinstance(document, dict)]
    ours = server.outcome(call, named, before)
    if ours["status"] < 300:
        ours["managers"] = managers(entries)
    return ours


def _options(step: Doc) -> WriteOptions:
    query = {key: values[-1] for key, values in parse_qs(step.get("query") or "").items()}
    force: bool | None = None
    if "force" in query:
        force = query["force"].lower() not in ("false", "0")  # as upstream reads a boolean parameter
    return WriteOptions(
        dry_run=query.get("dryRun") == "All",
        field_manager=query.get("fieldManager", ""),
        validation=query.get("fieldValidation", "Warn"),
        force=force,
    )


def managers(entries: list[Doc]) -> list[Doc]:
    """managedFields in the recordings' form: sorted, without times, fields as sorted paths."""
    listed: list[dict[str, Any]] = []
    for entry in entries:
        told: Doc = {key: entry[key] for key in ("manager", "operation", "apiVersion", "subresource") if key in entry}
        listed.append({**told, "fields": sorted(path_text(path) for path in paths(decode(entry.get("fieldsV1", {}))))})
    return sorted(listed, key=lambda each: (each["manager"], each["operation"], each.get("subresource", "")))
