"""YAML that stands for more than it shows: aliases, merges and nesting."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.service.yaml_lines import DEEPEST, FileError, read_yaml

_BOMB = "a: &a [x, x]\n" + "".join(
    f"{key}: &{key} [{', '.join([f'*{before}'] * 9)}]\n" for before, key in zip("abcdefg", "bcdefgh", strict=True)
)
_MERGES = "a: &a {x: 1}\n" + "".join(
    f"{key}: &{key} {{<<: [{', '.join([f'*{before}'] * 9)}]}}\n"
    for before, key in zip("abcdefg", "bcdefgh", strict=True)
)
_DEEP = "[" * DEEPEST + "]" * DEEPEST


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(_BOMB, "x.yaml:7: more than 1000000 values", id="aliases of aliases of aliases"),
        pytest.param(_MERGES, "x.yaml:7: more than 1000000 values", id="merges of merges of merges"),
        pytest.param("a: 1\nb: &b [*b]", "x.yaml:2: an alias in it refers to the whole", id="a list that holds itself"),
        pytest.param("a: &a\n  b: {c: *a}", "x.yaml:1: an alias in it refers", id="a mapping that holds itself"),
        pytest.param("a: &a\n  <<: *a", "x.yaml:1: an alias in it refers", id="a mapping merged into itself"),
        pytest.param(f"a:\n {_DEEP}", "x.yaml:2: values in values, more than 100 deep", id="too many brackets"),
        pytest.param("- " * 1_000_000, "x.yaml:1: values in values, more than 100 deep", id="a million dashes"),
        pytest.param(f"- &a {_DEEP[1:-1]}\n- [[*a]]", "x.yaml:2: values in values", id="deep by its aliases alone"),
        pytest.param("a: {b: 1,\n b: 2}", "x.yaml:2: a.b: expected once; it stands on line 1", id="a key twice"),
        pytest.param("a: {b: 1, b: 2}", "x.yaml:1: a.b: expected once", id="a key twice on a line"),
        pytest.param(
            "a: &a {x: 1}\nb: &b {x: 2}\nc:\n  <<: *a\n  <<: *b", "x.yaml:5: c.<<: expected once", id="two merges"
        ),
        pytest.param("- &a {x: 1, x: 2}\n- {<<: *a}\n- *a", "x.yaml:1: [0].x: expected once", id="twice, and merged"),
        pytest.param("? [a]\n: 1", "x.yaml:1: not YAML: found unhashable key", id="a key that is a list"),
        pytest.param("a: 2026-13-45", "x.yaml: not YAML: month must be in 1..12", id="a day that no month has"),
    ],
)  # fmt: skip
def test_what_is_beyond_measure_is_refused_with_its_line(text: str, fault: str) -> None:
    with pytest.raises(FileError) as refused:
        read_yaml("x.yaml", text)
    assert refused.value.message.startswith(fault)
    assert len(refused.value.message.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("- &n {x: 1, y: 1}\n- {<<: *n, x: 2}", [{"x": 1, "y": 1}, {"x": 2, "y": 1}], id="a merge first"),
        pytest.param("- &n {x: 1, y: 1}\n- {x: 2, <<: *n}", [{"x": 1, "y": 1}, {"x": 2, "y": 1}], id="a merge last"),
        pytest.param(
            "- &a {x: 1}\n- &b {x: 2, y: 2}\n- {<<: [*a, *b]}",
            [{"x": 1}, {"x": 2, "y": 2}, {"x": 1, "y": 2}],
            id="of two that are merged the first wins",
        ),
        pytest.param('- {"<<": 1}', [{"<<": 1}], id="a key that only looks like a merge"),
        pytest.param("a.b: 1\na: {b: 2}", {"a.b": 1, "a": {"b": 2}}, id="a key with a dot is another than a path"),
        pytest.param("a: &a [1]\nb: *a\nc: *a", {"a": [1], "b": [1], "c": [1]}, id="an alias twice"),
    ],
)  # fmt: skip
def test_merges_and_aliases_are_written_out(text: str, value: Any) -> None:
    assert read_yaml("x.yaml", text).value == value


def test_as_deep_as_may_be_is_read() -> None:
    assert read_yaml("x.yaml", _DEEP).value
    assert read_yaml("x.yaml", f"- &a {_DEEP[2:-2]}\n- [*a]").value


@pytest.mark.parametrize(
    ("path", "line"),
    [
        pytest.param("nodes[1].name", 6, id="a key of its own"),
        pytest.param("nodes[1].count", 3, id="a merged key: where it was written"),
        pytest.param("nodes[1].capacity.cpu", 7, id="below a key of its own"),
        pytest.param("nodes[1].capacity.memory", 7, id="what only the hidden value has: the value that hides it"),
    ],
)
def test_merged_keys_have_lines(path: str, line: int) -> None:
    text = """\
nodes:
  - &n
    count: 1
    capacity: {cpu: 1, memory: 1Gi}
  - <<: *n
    name: b
    capacity: {cpu: 2}
"""
    assert read_yaml("x.yaml", text).line(path) == line
