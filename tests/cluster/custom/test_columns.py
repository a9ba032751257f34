"""The columns of a custom kind are found by JSONPath."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.custom.columns import JsonPathError, columns_from, results
from bayplan.model.clock import SECOND, parse_rfc3339

NOW = parse_rfc3339("2026-01-01T01:00:00Z")
DOCUMENT: dict[str, Any] = {
    "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a.b/c": "x"}},
    "spec": {"size": 3, "on": True, "list": [{"n": "one"}, {"n": "two"}], "free": {"k": [1, 2]}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Done", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(".spec.size", [3], id="a field"),
        pytest.param(".metadata.labels.a\\.b/c", ["x"], id="a field with a dot"),
        pytest.param(".metadata.labels['a.b/c']", ["x"], id="a quoted field"),
        pytest.param(".spec.list[0].n", ["one"], id="an item"),
        pytest.param(".spec.list[-1].n", ["two"], id="the last item"),
        pytest.param(".spec.list[*].n", ["one", "two"], id="all items"),
        pytest.param('.status.conditions[?(@.type=="Ready")].status', ["True"], id="the item of a type"),
        pytest.param(".status.conditions[?(@.type!='Ready')].status", ["False"], id="the others"),
        pytest.param(".spec.nothing.more", [], id="nowhere"),
        pytest.param(".spec.list[7]", [], id="beyond the end"),
    ],
)
def test_paths(path: str, expected: list[Any]) -> None:
    assert results(DOCUMENT, path) == expected


def test_a_path_that_cannot_be_read() -> None:
    with pytest.raises(JsonPathError, match="unrecognized path"):
        results(DOCUMENT, ".a[?(")


@pytest.mark.parametrize(
    ("type_", "path", "expected"),
    [
        pytest.param("integer", ".spec.size", 3, id="a number"),
        pytest.param("integer", ".metadata.name", None, id="a text where a number should be"),
        pytest.param("boolean", ".spec.on", True, id="a flag"),
        pytest.param("string", ".metadata.name", "a", id="a text"),
        pytest.param("string", ".spec.free", '{"k":[1,2]}', id="an object as text"),
        pytest.param("date", ".metadata.creationTimestamp", "60m", id="an age"),
        pytest.param("date", ".metadata.name", "<invalid>", id="an age that is none"),
        pytest.param("string", ".spec.nothing", None, id="nothing"),
    ],
)
def test_cells(type_: str, path: str, expected: object) -> None:
    name, column = columns_from([{"name": "X", "type": type_, "jsonPath": path}])
    assert name.cell(DOCUMENT, NOW) == "a"
    assert column.cell(DOCUMENT, NOW) == expected


def test_without_columns_there_is_the_age() -> None:
    assert [column.name for column in columns_from(())] == ["Name", "Age"]
    assert columns_from(())[1].cell(DOCUMENT, type(NOW)(NOW + 60 * SECOND)) == "61m"
