"""Bodies in YAML: the same object as its JSON, repeats told with their lines, and no text that breaks the reader."""

from __future__ import annotations

import json

import pytest

from bayplan.cluster.embedded.admission.body import JSON, YAML, read_object
from bayplan.cluster.embedded.schema.document import MalformedBodyError
from bayplan.cluster.embedded.schema.yaml_body import read_yaml
from bayplan.cluster.kinds import CONFIG_MAP, DEPLOYMENT, KINDS
from bayplan.model.errors import BadRequest
from tests.cluster.schema.mutations import documents


def outcome(kind: str, text: str, content_type: str) -> object:
    try:
        return read_object(KINDS[kind], text.encode(), content_type=content_type)
    except BadRequest as refusal:
        return refusal.message


def test_json_is_yaml() -> None:
    for kind, text in documents()[::7]:
        assert outcome(kind, text, YAML) == outcome(kind, text, JSON)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: yes", {"a": True}, id="yes is true"),
        pytest.param("a: 'yes'", {"a": "yes"}, id="quoted it is a text"),
        pytest.param("y: 1", {"true": 1}, id="even as a key"),
        pytest.param("1: x", {"1": "x"}, id="a key is a text in the end"),
        pytest.param("a: 0x10", {"a": 16}, id="hexadecimal"),
        pytest.param("a: 010", {"a": 8}, id="octal"),
        pytest.param("a: 1_000", {"a": 1000}, id="digits may be grouped"),
        pytest.param("a: 2.0", {"a": 2}, id="a whole float is an integer"),
        pytest.param("a: 1.5", {"a": 1.5}, id="another is not"),
        pytest.param("a: ~\nb:", {"a": None, "b": None}, id="nothing in two spellings"),
        pytest.param("a: 2026-01-02", {"a": "2026-01-02"}, id="a date stays text"),
        pytest.param("a: 12:30", {"a": "12:30"}, id="no number to the base of sixty"),
        pytest.param("a: &x {k: 1}\nb: *x", {"a": {"k": 1}, "b": {"k": 1}}, id="an anchor"),
        pytest.param(
            "a: &x {k: 1, j: 2}\nb: {<<: *x, k: 3}", {"a": {"k": 1, "j": 2}, "b": {"k": 3, "j": 2}}, id="a merge"
        ),
        pytest.param("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}, id="a block"),
        pytest.param("", None, id="nothing at all"),
    ],
)
def test_scalars_are_read_as_goyaml_does(text: str, value: object) -> None:
    found, repeated = read_yaml(text.encode())
    assert json.dumps(found) == json.dumps(value)
    assert repeated == []


def test_repeated_keys_are_told_with_their_lines() -> None:
    body = b"metadata:\n  name: a\n  name: b\ndata:\n  k: '1'\n  k: '2'\n"
    document, warnings = read_object(CONFIG_MAP, body, content_type=YAML)
    assert (document["metadata"]["name"], document["data"]) == ("b", {"k": "2"})
    assert warnings == [
        'yaml: unmarshal errors:\n  line 3: key "name" already set in map\n  line 6: key "k" already set in map'
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [", id="a list that is not closed"),
        pytest.param("a: b: c", id="two colons"),
        pytest.param("a: *ghost", id="an unknown anchor"),
        pytest.param("? [1]\n: 2", id="a list as a key"),
        pytest.param("\ta: 1", id="a tab"),
        pytest.param("a: &x [*x]", id="an anchor that holds itself"),
        pytest.param("<<: 3", id="a merge of what is no map"),
        pytest.param("[" * 5000, id="too deep"),
    ],
)
def test_what_is_no_yaml_is_refused(text: str) -> None:
    with pytest.raises(MalformedBodyError):
        read_yaml(text.encode())


def test_a_wrong_type_has_its_place_as_in_json() -> None:
    with pytest.raises(BadRequest, match=r"cannot unmarshal string into Go struct field spec\.replicas"):
        read_object(DEPLOYMENT, b"spec:\n  replicas: 'three'\n", content_type=YAML)
