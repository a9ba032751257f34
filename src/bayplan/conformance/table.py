"""Family apiserver/table: one object, stored with its status, read back as the row that kubectl prints."""

from __future__ import annotations

import re

import msgspec

from bayplan.cluster.kinds import KINDS
from bayplan.cluster.tables.table import table
from bayplan.conformance.apiserver import Doc, difference, fresh_server, home, put_state
from bayplan.conformance.frame import Verdict
from bayplan.model.clock import SECOND, Instant, rfc3339, rfc3339_micro

_QUOTA_KINDS = ("ResourceQuota", "LimitRange")
_AGO = re.compile("<now(micro)?-([0-9]+)s>")
_COLUMN_FIELDS = ("name", "type", "format", "priority")


def run(case: Doc) -> Verdict:
    """Run one case: columns, cells and conditions of the row must agree."""
    kind = KINDS[case["kind"]]
    namespace = "vec-q" if kind.name in _QUOTA_KINDS else "vec-t"
    server = fresh_server(namespace)
    document = {"kind": kind.name, **_dated(case["object"], server.now())}
    put_state(server, namespace, [{**document, "$deleted": case.get("deleted")}])
    stored = server.get(kind, home(kind, namespace), document["metadata"]["name"]).doc()
    ours = server.masked(_answer(table(kind, [stored], server.now())))
    told = difference({"status": 200, **ours}, {"status": 200, **case["expected"]})
    return Verdict(case["id"], case["kind"], agrees=not told, difference=told)


def _dated(document: Doc, now: Instant) -> Doc:
    """The object with its times, which the recordings tell by how long ago they are."""

    def time(match: re.Match[str]) -> str:
        at = Instant(now - int(match[2]) * SECOND)
        return rfc3339_micro(at) if match[1] else rfc3339(at)

    dated: Doc = msgspec.json.decode(_AGO.sub(time, msgspec.json.encode(document).decode()))
    return dated


def _answer(found: Doc) -> Doc:
    """The Table in the recordings' form. Age is that of an object made in this instant."""
    columns = [{field: each[field] for field in _COLUMN_FIELDS} for each in found["columnDefinitions"]]
    (row,) = found["rows"]
    ages = {index for index, column in enumerate(columns) if column["name"] == "Age" and row["cells"][index] == "0s"}
    answer: Doc = {
        "columns": columns,
        "cells": ["<age>" if index in ages else cell for index, cell in enumerate(row["cells"])],
    }
    if "conditions" in row:
        answer["conditions"] = row["conditions"]
    return answer
