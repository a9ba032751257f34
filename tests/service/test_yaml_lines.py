"""A value read from YAML can be traced to its line."""

from __future__ import annotations

import pytest

from bayplan.service.yaml_lines import FileError, read_yaml

_TEXT = """\
nodes:
  - name: a
    capacity: {cpu: 1, nvidia.com/gpu: 8}
  - name: b
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        pytest.param("nodes", 1, id="a key"),
        pytest.param("nodes[0].name", 2, id="a key of a list's item"),
        pytest.param("nodes[1]", 4, id="an item"),
        pytest.param("nodes[0].capacity.nvidia.com/gpu", 3, id="a key with dots in it"),
        pytest.param("nodes[0].capacity[...]", 3, id="some value of a mapping: the mapping"),
        pytest.param("nodes[1].count", 4, id="what is missing: the thing it is missing from"),
        pytest.param("", 1, id="the whole"),
    ],
)
def test_a_path_has_a_line(path: str, line: int) -> None:
    assert read_yaml("x.yaml", _TEXT).line(path) == line


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("a: [1,\nb: 2", "x.yaml:3: not YAML: did not find expected ',' or ']'", id="a list without end"),
        pytest.param("a: 1\nb: 2\na: 3", "x.yaml:3: a: expected once; it stands on line 1 already", id="a key twice"),
        pytest.param("a: !!python/none x", "x.yaml:1: not YAML: could not determine a constructor", id="a foreign tag"),
        pytest.param(b"\xff\xfe\xfd", "x.yaml: not YAML: ", id="no text"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(text: str | bytes, fault: str) -> None:
    with pytest.raises(FileError) as refused:
        read_yaml("x.yaml", text)
    assert refused.value.message.startswith(fault)


def test_an_empty_file_is_nothing() -> None:
    assert read_yaml("x.yaml", "").value is None
