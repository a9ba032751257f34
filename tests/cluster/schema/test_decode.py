"""Both ways of decoding give the same document; what is refused is refused in Go's words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.embedded.schema.decode import DecodeError, clean_document, decode, decode_tree
from bayplan.cluster.embedded.schema.document import MalformedBodyError, read_json
from bayplan.cluster.embedded.schema.table import TABLE
from tests.cluster.schema.mutations import documents, spoilt

Outcome = tuple[str, list[str]]


def quick(kind: str, body: bytes) -> Outcome:
    """What `decode` makes of a body; exact to the order of keys and the type of numbers."""
    try:
        document, problems = decode(TABLE.kinds[kind], body)
    except (DecodeError, MalformedBodyError) as error:
        return str(error), []
    return json.dumps(document), problems


def careful(kind: str, body: bytes) -> Outcome:
    try:
        document, problems = decode_tree(TABLE.kinds[kind], read_json(body))
    except (DecodeError, MalformedBodyError) as error:
        return str(error), []
    return json.dumps(document), problems


@settings(max_examples=600, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_quick_way_is_the_careful_way(seed: int) -> None:
    kind, body = spoilt(seed)
    assert quick(kind, body) == careful(kind, body)


def test_every_recorded_document_is_read_alike() -> None:
    for kind, text in documents():
        assert quick(kind, text.encode()) == careful(kind, text.encode())


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_clean_document_stays_as_it_is(seed: int) -> None:
    kind, body = spoilt(seed)
    try:
        document, _ = decode(TABLE.kinds[kind], body)
    except (DecodeError, MalformedBodyError):
        return
    again, problems = clean_document(TABLE.kinds[kind], document)
    assert (again, problems) == (document, [])


@pytest.mark.parametrize("repeats", range(1, 12))
def test_no_number_of_repeated_keys_hides_behind_fields_that_are_always_written(repeats: int) -> None:
    flags = ",".join(['"hostPID":true'] * (repeats + 1))
    body = f'{{"metadata":{{"name":"a"}},"spec":{{"containers":[{{"name":"c"}}],{flags}}}}}'
    assert decode(TABLE.kinds["Pod"], body.encode())[1] == ['duplicate field "spec.hostPID"'] * repeats


@pytest.mark.parametrize(
    ("kind", "body", "problems"),
    [
        pytest.param("ConfigMap", '{"Data":{}}', ['unknown field "Data"'], id="names are case-sensitive"),
        pytest.param("ConfigMap", '{"data":{"a":"1","a":"2"}}', ['duplicate field "data.a"'], id="a key of a map"),
        pytest.param(
            "ConfigMap", r'{"data":{"a":"1","\u0061":"2"}}', ['duplicate field "data.a"'], id="in two spellings"
        ),
        pytest.param(
            "Pod",
            '{"spec":{"containers":[{},{"x":1}],"y":{}},"z":1}',
            ['unknown field "spec.containers[1].x"', 'unknown field "spec.y"', 'unknown field "z"'],
            id="all of them in document order with their places",
        ),
        pytest.param("ControllerRevision", '{"data":{"a":1,"a":2}}', [], id="what has no schema has no repeats"),
    ],
)
def test_unknown_and_repeated_fields_are_told(kind: str, body: str, problems: list[str]) -> None:
    assert decode(TABLE.kinds[kind], body.encode())[1] == problems


def test_of_a_repeated_key_the_last_value_counts() -> None:
    document, _ = decode(
        TABLE.kinds["ConfigMap"], b'{"data":{"a":"1"},"data":{"b":"2"},"immutable":true,"immutable":false}'
    )
    assert (document["data"], document["immutable"]) == ({"b": "2"}, False)


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        pytest.param(
            "Deployment", '{"spec":{"replicas":1.0}}', "number 1.0 into Go struct field spec.replicas", id="1.0"
        ),
        pytest.param(
            "Deployment", '{"spec":{"replicas":1e3}}', "number 1e3 into Go struct field spec.replicas", id="1e3"
        ),
        pytest.param("Deployment", '{"spec":{"replicas":2147483648}}', "number 2147483648 into", id="past 32 bits"),
        pytest.param(
            "Deployment", '{"spec":{"replicas":"1"}}', "string into Go struct field spec.replicas", id="a text"
        ),
        pytest.param(
            "Deployment", '{"spec":{"replicas":true}}', "bool into Go struct field spec.replicas", id="a flag"
        ),
        pytest.param("Deployment", '{"spec":[]}', "array into Go struct field spec", id="a list for an object"),
        pytest.param(
            "Pod",
            '{"spec":{"containers":{}}}',
            "object into Go struct field spec.containers",
            id="an object for a list",
        ),
        pytest.param(
            "Pod", '{"spec":{"hostPID":"true"}}', "string into Go struct field spec.hostPID", id="a text for a flag"
        ),
        pytest.param(
            "Pod",
            '{"spec":{"containers":[{"livenessProbe":{"grpc":1}}]}}',
            "number into Go struct field spec.containers.livenessProbe.ProbeHandler.grpc",
            id="embedded structs are named",
        ),
        pytest.param(
            "Pod",
            '{"metadata":{"name":1},"spec":{"hostPID":1}}',
            "into Go struct field metadata.name",
            id="the first is told",
        ),
        pytest.param(
            "Pod",
            '{"metadata":{"name":1},"spec":{"overhead":{"cpu":"x"}}}',
            "quantities must match the regular expression",
            id="a bad quantity wins over an earlier wrong type",
        ),
        pytest.param("Lease", '{"spec":{"renewTime":"now"}}', 'parsing time "now" as', id="a time that is none"),
        pytest.param(
            "Lease", '{"spec":{"renewTime":5}}', "number into Go struct field spec.renewTime", id="a number for a time"
        ),
        pytest.param("Secret", '{"data":{"a":"*"}}', "illegal base64 data at input byte 0", id="no base64"),
        pytest.param(
            "Secret", '{"data":{"a":"YQé="}}', "illegal base64 data at input byte 2", id="a foreign character"
        ),
        pytest.param(
            "Deployment", '{"spec":{"replicas":' + "9" * 300 + "}}", "cannot unmarshal number 999", id="300 digits"
        ),
    ],
)
def test_a_wrong_type_is_refused_with_its_place(kind: str, body: str, told: str) -> None:
    with pytest.raises(DecodeError) as refusal:
        decode(TABLE.kinds[kind], body.encode())
    assert told in str(refusal.value)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param(b"", "unexpected end of JSON input", id="nothing"),
        pytest.param(b'{"a":1', "unexpected end of JSON input", id="a text that breaks off"),
        pytest.param(b'{"a" 1}', "invalid character '1' after object key", id="no colon"),
        pytest.param(b"{a:1}", "invalid character 'a' looking for beginning of object key string", id="a bare key"),
        pytest.param(b"{} {}", "invalid character '{' after top-level value", id="two documents"),
        pytest.param(b"[1 2]", "invalid character '2' after array element", id="no comma"),
        pytest.param(b"[NaN]", "invalid character 'N' looking for beginning of value", id="not a number"),
        pytest.param(b"[" * 10**5, "exceeded max depth", id="too deep"),
        pytest.param(b'{"a":' * 10**5, "exceeded max depth", id="too deep in objects"),
    ],
)
def test_what_is_no_json_is_refused_in_the_words_of_go(body: bytes, told: str) -> None:
    with pytest.raises(MalformedBodyError) as refusal:
        decode(TABLE.kinds["ConfigMap"], body)
    assert str(refusal.value) == told


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param(r"\ud800", "\ufffd", id="the first half of a pair alone"),
        pytest.param(r"\uDC00x", "\ufffdx", id="the second half alone"),
        pytest.param(r"\ud83d\ude00", "\U0001f600", id="a whole pair"),
        pytest.param(r"\ud800\u0041", "\ufffdA", id="a half before another character"),
        pytest.param(r"\\ud800", r"\ud800", id="a backslash that is written out"),
        pytest.param(r"\ud800\ud83d\ude00", "\ufffd\U0001f600", id="a half before a pair"),
    ],
)
def test_half_a_character_becomes_the_replacement_character(written: str, read: str) -> None:
    document, problems = decode(TABLE.kinds["ConfigMap"], f'{{"data":{{"a":"{written}"}}}}'.encode())
    assert (document["data"], problems) == ({"a": read}, [])


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert decode(TABLE.kinds["ConfigMap"], b'{"data":{"a":"\xff"}}')[0]["data"] == {"a": "\ufffd"}


@pytest.mark.parametrize(
    ("kind", "body", "section"),
    [
        pytest.param(
            "Pod", '{"spec":{"containers":null}}', {"containers": None}, id="an empty list that is always written"
        ),
        pytest.param("ConfigMap", '{"data":{"a":null}}', {"a": ""}, id="a null in a map is the zero value"),
        pytest.param("ConfigMap", '{"data":null}', None, id="a null is absent"),
        pytest.param(
            "ResourceQuota", '{"spec":{"hard":{"cpu":1.50}}}', {"hard": {"cpu": "1500m"}}, id="a number is a quantity"
        ),
        pytest.param("ResourceQuota", '{"spec":{"hard":{"cpu":null}}}', {"hard": {"cpu": "0"}}, id="a null quantity"),
        pytest.param("Lease", '{"spec":{"leaseTransitions":0}}', {"leaseTransitions": 0}, id="a pointer to zero stays"),
    ],
)
def test_documents_become_what_go_would_write(kind: str, body: str, section: object) -> None:
    document, _ = decode(TABLE.kinds[kind], body.encode())
    assert document.get("data" if kind == "ConfigMap" else "spec") == section


def test_bytes_that_are_null_are_empty() -> None:
    assert decode(TABLE.kinds["Secret"], b'{"data":{"a":null}}')[0]["data"] == {"a": ""}
