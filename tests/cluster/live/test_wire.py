"""Lists and watches over the wire: split at the right places, kept as bytes, and errors told as what they are."""

from __future__ import annotations

import json
import sys
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.kinds import CONFIG_MAP, POD, Kind
from bayplan.cluster.live import wire
from bayplan.cluster.live.wire import InitialEnd, Lines, Odd, read_event, read_object, read_page
from bayplan.model.errors import Expired, ServerError


def test_a_page_has_its_objects_and_the_way_to_the_next() -> None:
    body = b'{"metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":3},"items":[' + b",".join(
        b'{"metadata":{"name":"%d","resourceVersion":"5"},"data":{"k" : "v"}}' % number for number in range(2)
    )
    page = read_page(CONFIG_MAP, body + b"]}", [])
    assert (page.revision, page.next, page.remaining) == ("7", "t", 3)
    assert [(item.name, item.version, item.sections["data"].raw) for item in page.items] == [
        ("0", 5, b'{"k" : "v"}'),
        ("1", 5, b'{"k" : "v"}'),
    ]


@pytest.mark.parametrize("items", [b"null", b"[]"])
def test_a_page_may_be_empty(items: bytes) -> None:
    assert read_page(POD, b'{"metadata":{"resourceVersion":"7"},"items":%s}' % items, []).items == ()


def test_one_object_does_not_keep_its_whole_page() -> None:
    fields = b'{"metadata":{"name":"a","managedFields":[{"manager":"m"}]},"spec":{}}'
    body = b'{"items":[%s,{"metadata":{"name":"b"},"x":"%s"}]}' % (fields, b"x" * 10_000)
    holders = sys.getrefcount(body)
    kept = read_page(POD, body, []).items[0]
    assert sys.getrefcount(body) == holders
    assert bytes(kept.meta.managed_fields) == b'[{"manager":"m"}]'


def test_an_event_is_its_object_and_revision() -> None:
    line = b'{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"9"},"spec":{}}}'
    event = read_event(POD, line, [])
    assert event is not None
    assert event.object is not None
    assert (event.type, event.revision, event.object.name) == ("MODIFIED", "9", "a")


@pytest.mark.parametrize(
    ("annotations", "ends"),
    [({}, False), ({"k8s.io/initial-events-end": "true"}, True), ({"k8s.io/initial-events-end": "no"}, False)],
    ids=["a plain bookmark", "the end of the present", "another word"],
)
def test_a_bookmark_says_whether_the_present_has_ended(annotations: dict[str, str], ends: bool) -> None:
    mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9", "annotations": annotations}}}
    event = read_event(POD, msgspec.json.encode(mark), [])
    assert event is not None
    assert (event.type, event.revision, event.object) == ("BOOKMARK", "9", None)
    assert isinstance(event, InitialEnd) == ends


def test_an_error_event_is_raised() -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 (9)"}
    with pytest.raises(Expired, match="too old resource version"):
        read_event(POD, msgspec.json.encode({"type": "ERROR", "object": status}), [])


@pytest.mark.parametrize("status", [b"{}", b'{"kind":"Status","code":"x"}', b'{"message":"\\ud800"}'])
def test_an_error_that_does_not_say_what_it_is_may_pass(status: bytes) -> None:
    with pytest.raises(ServerError):
        read_event(POD, b'{"type":"ERROR","object":%s}' % status, [])


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"\xff",
        b"<html>",
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":7}',
        b"[" * 10_000,
        b'{"type":7}',
    ],
)
def test_a_line_that_is_no_event_is_passed_over_and_said(line: bytes) -> None:
    odd: Odd = []
    assert read_event(POD, line, odd) is None
    assert [each.split(":")[0] for each in odd] == ["a line that is no event"]


def test_an_event_of_an_unknown_type_is_passed_over_and_said() -> None:
    odd: Odd = []
    assert read_event(POD, b'{"type":"RENAMED","object":{}}', odd) is None
    assert odd == ["an event of type RENAMED"]


GOOD = {"namespace": "x", "name": "a", "uid": "u", "resourceVersion": "9"}


@pytest.mark.parametrize(
    ("wrong", "expected", "odd"),
    [
        pytest.param(b'"labels":null,"ownerReferences":null,"finalizers":null', {}, [], id="null is not given"),
        pytest.param(
            b'"labels":{"a":"b","n":7,"o":{}}',
            {"labels": {"a": "b"}},
            ["metadata.labels.n cannot be 7", "metadata.labels.o cannot be {}"],
            id="labels that are no texts",
        ),
        pytest.param(
            b'"annotations":["a"],"labels":{"a":"b"}',
            {"labels": {"a": "b"}},
            ['metadata.annotations cannot be ["a"]'],
            id="annotations that are a list",
        ),
        pytest.param(
            b'"ownerReferences":[7,{"name":"o","uid":"u","controller":"yes"}]',
            {"ownerReferences": [{"name": "o", "uid": "u"}]},
            ["metadata.ownerReferences[0] cannot be 7", 'metadata.ownerReferences[1].controller cannot be "yes"'],
            id="an owner of which something is wrong",
        ),
        pytest.param(
            b'"generation":99999999999999999999999999',
            {"generation": 10**26 - 1},
            [],
            id="a number beyond 64 bits",
        ),
        pytest.param(
            b'"generation":' + b"9" * 5000,
            {},
            ["metadata.generation cannot be Infinity"],
            id="a number beyond all bounds",
        ),
        pytest.param(b'"labels":{"a":"\xff"}', {"labels": {"a": "\ufffd"}}, [], id="bytes that are no UTF-8"),
        pytest.param(
            b'"labels":{"a":"\\ud800"}', {"labels": {"a": "\ufffd"}}, ["text that is no Unicode"], id="half a character"
        ),
    ],
)
def test_an_object_is_read_as_far_as_it_can_be(wrong: bytes, expected: dict[str, object], odd: list[str]) -> None:
    meta = b'{"namespace":"x","name":"a","uid":"u","resourceVersion":"9",%s}' % wrong
    found: Odd = []
    event = read_event(POD, b'{"type":"ADDED","object":{"metadata":%s,"spec":{"a":1}}}' % meta, found)
    assert event is not None
    assert event.object is not None
    document = event.object.doc()
    assert (document["metadata"], document["spec"]) == (GOOD | expected, {"a": 1})
    assert found == [f"x/a: {each}" for each in odd]
    assert event.revision == "9"


@pytest.mark.parametrize("revision", ['"²"', '"x"', "7", "null", '"' + "9" * 30 + '"', '""'])
def test_a_revision_that_is_none_is_not_one_to_resume_from(revision: str) -> None:
    line = f'{{"type":"ADDED","object":{{"metadata":{{"name":"a","resourceVersion":{revision}}}}}}}'
    event = read_event(POD, line.encode(), [])
    assert event is not None
    assert event.object is not None
    assert (event.revision, event.object.version, event.object.name) == ("", 0, "a")


@pytest.mark.parametrize("metadata", ["7", "[]", '["a"]', '"x"', "null"])
def test_an_object_without_metadata_still_has_its_sections(metadata: str) -> None:
    found: Odd = []
    event = read_event(POD, f'{{"type":"ADDED","object":{{"metadata":{metadata},"spec":{{"a":1}}}}}}'.encode(), found)
    assert event is not None
    assert event.object is not None
    assert (event.object.name, event.object.doc()["spec"]) == ("", {"a": 1})
    assert len(found) == (metadata != "null")


def test_a_large_annotation_is_kept() -> None:
    large = "x" * 1_000_000
    line = {"type": "ADDED", "object": {"metadata": GOOD | {"annotations": {"a": large, "b": 7}}}}
    event = read_event(POD, msgspec.json.encode(line), [])
    assert event is not None
    assert event.object is not None
    assert event.object.meta.annotations == {"a": large}


@pytest.mark.parametrize("body", [b"<html>", b"7", b'{"metadata":7}', b'{"items":7}', b"\xff"])
def test_what_is_no_list_is_the_servers_fault(body: bytes) -> None:
    with pytest.raises(ServerError, match="cannot be read"):
        read_page(POD, body, [])


@pytest.mark.parametrize("body", [b"<html>", b"7", b"[]", b"\xff"])
def test_what_is_no_object_is_the_servers_fault(body: bytes) -> None:
    with pytest.raises(ServerError, match="cannot be read"):
        read_object(POD, body)


def test_a_bad_item_does_not_hide_the_others() -> None:
    items = b'{"metadata":{"name":"a"}},7,{"metadata":7},{"metadata":{"name":"b\\ud800"}},{"metadata":{"name":"c"}}'
    odd: Odd = []
    page = read_page(POD, b'{"metadata":{"resourceVersion":"5"},"items":[%s]}' % items, odd)
    assert [item.name for item in page.items] == ["a", "", "b\ufffd", "c"]
    assert page.revision == "5"
    assert odd == ["an item that is 7", "/b\ufffd: text that is no Unicode", "/: metadata cannot be 7"]


KEYS = st.sampled_from(["metadata", "spec", "name", "uid", "labels", "ownerReferences", "resourceVersion"]) | st.text()
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def _line(value: object) -> bytes:
    return json.dumps({"type": "MODIFIED", "object": value}).encode()


@given(ANYTHING | st.fixed_dictionaries({"metadata": st.dictionaries(KEYS, ANYTHING, max_size=4)}))
def test_whatever_stands_in_the_midst_of_a_stream_the_others_come_out(value: object) -> None:
    good = [_line({"metadata": GOOD | {"name": name}}) for name in "ab"]
    odd: Odd = []
    events = [read_event(POD, line, odd) for line in Lines().feed(b"\n".join([good[0], _line(value), good[1], b""]))]
    names = [event.object.name for event in events if event is not None and event.object is not None]
    assert (names[0], names[-1]) == ("a", "b")
    assert odd or events[1] is not None
    page = read_page(POD, b'{"items":[%s]}' % b",".join(json.dumps(each).encode() for each in ({}, value, {})), [])
    assert len(page.items) == 2 + isinstance(value, dict)
    for item in page.items:
        assert isinstance(item.doc(), dict)


SECTIONS = st.dictionaries(st.sampled_from(["spec", "status", "kind", "apiVersion", "data"]), ANYTHING, max_size=4)


@given(st.sampled_from(["ADDED", "DELETED", "BOOKMARK", "ODD"]), st.dictionaries(KEYS, ANYTHING, max_size=4), SECTIONS)
def test_the_short_way_through_a_line_ends_where_the_long_one_does(
    kind: str, meta: dict[str, object], sections: dict[str, object]
) -> None:
    line = json.dumps({"type": kind, "object": {**sections, "metadata": GOOD | meta}}).encode()
    told: list[object] = []
    for kinds in (wire._PLAIN_KINDS, frozenset[Kind]()):
        with mock.patch.object(wire, "_PLAIN_KINDS", kinds):
            odd: Odd = []
            event = read_event(POD, line, odd)
        found = event.object if event is not None else None
        told.append(
            (
                odd,
                event and (event.type, event.revision),
                found and (found.version, json.dumps(found.doc(), sort_keys=True)),
            )
        )
    assert told[0] == told[1]


def test_one_object_does_not_keep_its_line() -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[{"manager":"m"}]},"spec":{}}}'
    holders = sys.getrefcount(line)
    kept = read_event(POD, line, [])
    assert sys.getrefcount(line) == holders
    assert kept is not None


@given(st.binary(max_size=40).filter(lambda line: b"\n" not in line))
def test_any_bytes_may_stand_there_too(line: bytes) -> None:
    assert read_event(POD, line, []) is None


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line)), st.integers(1, 7))
def test_lines_come_out_whole_however_they_are_cut(lines: list[bytes], size: int) -> None:
    text, feed = b"".join(line + b"\n" for line in lines), Lines()
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert [line for piece in pieces for line in feed.feed(piece)] == lines
