"""Patch bodies: media types, JSON and YAML as kube-apiserver reads them."""

from __future__ import annotations

import pytest

from bayplan.cluster.embedded.patch.body import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, read_patch
from bayplan.model.errors import BadRequest, UnsupportedMediaType


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(UnsupportedMediaType) as caught:
        read_patch("application/foo+json", b"{}")
    assert caught.value.message == "415: Unsupported Media Type"


def test_parameters_of_the_media_type_are_passed_over() -> None:
    assert read_patch(f"{MERGE_PATCH}; charset=utf-8", b'{"a":1}').patch == {"a": 1}


@pytest.mark.parametrize(
    ("type_", "body", "problems"),
    [
        pytest.param(MERGE_PATCH, b'{"a":{"b":1,"b":2}}', ('duplicate field "a.b"',), id="a repeated key"),
        pytest.param(STRATEGIC_PATCH, b'{"a":[{"b":1,"b":2}]}', ('duplicate field "a[0].b"',), id="in a list"),
        pytest.param(
            JSON_PATCH, b'[{"value":1,"value":2}]', ('json patch duplicate field "[0].value"',), id="in a JSON patch"
        ),
        pytest.param(JSON_PATCH, b'[{"q":1}]', ('json patch unknown field "[0].q"',), id="an unknown member"),
        pytest.param(APPLY_PATCH, b"a: 1\na: 2", ('line 2: key "a" already set in map',), id="in YAML"),
        pytest.param(APPLY_PATCH, b"y: 1\nyes: 2", ("line 2: key true already set in map",), id="two words for true"),
    ],
)
def test_what_a_strict_reader_would_say(type_: str, body: bytes, problems: tuple[str, ...]) -> None:
    assert read_patch(type_, body).problems == problems


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("yes", True, id="yes is true"),
        pytest.param("n", False, id="n is false"),
        pytest.param('"yes"', "yes", id="in quotes it is a word"),
        pytest.param("!!str yes", "yes", id="a tag makes it a word"),
        pytest.param("017", 15, id="a leading nought is octal"),
        pytest.param("0o17", 15, id="so is 0o"),
        pytest.param("08", 8, id="unless a digit says otherwise"),
        pytest.param("1_000", 1000, id="digits may be grouped"),
        pytest.param("2.0", 2, id="a whole float is an integer"),
        pytest.param("12:30", "12:30", id="no sexagesimal numbers"),
        pytest.param("2001-01-01", "2001-01-01", id="a date stays text"),
        pytest.param("~", None, id="a tilde is null"),
    ],
)
def test_scalars_of_yaml(text: str, value: object) -> None:
    assert read_patch(APPLY_PATCH, f"a: {text}".encode()).patch == {"a": value}


def test_keys_are_texts_in_the_end() -> None:
    assert read_patch(APPLY_PATCH, b"y: 1\n5: 2\n~: 3").patch == {"true": 1, "5": 2, "null": 3}


def test_merge_keys_give_way_to_keys_of_their_own() -> None:
    assert read_patch(APPLY_PATCH, b"x: &x {a: 1, b: 1}\ny2: {<<: *x, b: 2}").patch["y2"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("type_", "body", "message"),
    [
        pytest.param(MERGE_PATCH, b"", "error decoding patch: unexpected end of JSON input", id="an empty body"),
        pytest.param(
            STRATEGIC_PATCH, b"{x", "invalid character 'x' looking for beginning of object key string", id="no JSON"
        ),
        pytest.param(
            APPLY_PATCH,
            b'"x"',
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
            "json: cannot unmarshal string into Go value",
            id="YAML that is no object",
        ),
        pytest.param(
            APPLY_PATCH,
            b"a: 1\nb: [",
            "error decoding YAML: error converting YAML to JSON: yaml: line 2: did not find expected node content",
            id="no YAML",
        ),
        pytest.param(
            APPLY_PATCH,
            b"a: *x",
            "error decoding YAML: error converting YAML to JSON: yaml: unknown anchor 'x' referenced",
            id="an alias of nothing",
        ),
        pytest.param(
            APPLY_PATCH,
            b"a: {{ .Values }}",
            "error decoding YAML: error converting YAML to JSON: yaml: invalid map key: map[...]",
            id="a template that was not filled in",
        ),
    ],
)
def test_what_cannot_be_read(type_: str, body: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_patch(type_, body)
    assert caught.value.message == message
