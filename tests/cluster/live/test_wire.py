"""Lists and watches over the wire: split at the right places, kept as bytes, and errors told as what they are."""

from __future__ import annotations

import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.kinds import CONFIG_MAP, POD
from bayplan.cluster.live.wire import InitialEnd, Lines, read_event, read_object, read_page
from bayplan.model.errors import Expired, ServerError


def test_a_page_has_its_objects_and_the_way_to_the_next() -> None:
    body = b'{"metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":3},"items":[' + b",".join(
        b'{"metadata":{"name":"%d","resourceVersion":"5"},"data":{"k" : "v"}}' % number for number in range(2)
    )
    page = read_page(CONFIG_MAP, body + b"]}")
    assert (page.revision, page.next, page.remaining) == ("7", "t", 3)
    assert [(item.name, item.version, item.sections["data"].raw) for item in page.items] == [
        ("0", 5, b'{"k" : "v"}'),
        ("1", 5, b'{"k" : "v"}'),
    ]


@pytest.mark.parametrize("items", [b"null", b"[]"])
def test_a_page_may_be_empty(items: bytes) -> None:
    assert read_page(POD, b'{"metadata":{"resourceVersion":"7"},"items":%s}' % items).items == ()


def test_one_object_does_not_keep_its_whole_page() -> None:
    fields = b'{"metadata":{"name":"a","managedFields":[{"manager":"m"}]},"spec":{}}'
    body = b'{"items":[%s,{"metadata":{"name":"b"},"x":"%s"}]}' % (fields, b"x" * 10_000)
    holders = sys.getrefcount(body)
    kept = read_page(POD, body).items[0]
    assert sys.getrefcount(body) == holders
    assert bytes(kept.meta.managed_fields) == b'[{"manager":"m"}]'


def test_an_event_is_its_object_and_revision() -> None:
    event = read_event(POD, b'{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"9"},"spec":{}}}')
    assert event.object is not None
    assert (event.type, event.revision, event.object.name) == ("MODIFIED", "9", "a")


@pytest.mark.parametrize(
    ("annotations", "ends"),
    [({}, False), ({"k8s.io/initial-events-end": "true"}, True), ({"k8s.io/initial-events-end": "no"}, False)],
    ids=["a plain bookmark", "the end of the present", "another word"],
)
def test_a_bookmark_says_whether_the_present_has_ended(annotations: dict[str, str], ends: bool) -> None:
    mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9", "annotations": annotations}}}
    event = read_event(POD, msgspec.json.encode(mark))
    assert (event.type, event.revision, event.object) == ("BOOKMARK", "9", None)
    assert isinstance(event, InitialEnd) == ends


def test_an_error_event_is_raised() -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 (9)"}
    with pytest.raises(Expired, match="too old resource version"):
        read_event(POD, msgspec.json.encode({"type": "ERROR", "object": status}))


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b'{"type":"ADDED"}', b'{"type":"ADDED","object":{"metadata":7}}', b'{"type":"ADDED","object":7}'],
)
def test_garbage_is_the_servers_fault(line: bytes) -> None:
    with pytest.raises(ServerError, match="cannot be read"):
        read_event(POD, line)


@pytest.mark.parametrize("body", [b"<html>", b"7", b'{"metadata":7}', b'{"items":[7]}', b'{"items":[{"metadata":7}]}'])
def test_what_is_no_answer_is_the_servers_fault_too(body: bytes) -> None:
    with pytest.raises(ServerError, match="cannot be read"):
        read_page(POD, body)
    with pytest.raises(ServerError, match="cannot be read"):
        read_object(POD, body.removeprefix(b'{"items":[').removesuffix(b"]}"))


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line)), st.integers(1, 7))
def test_lines_come_out_whole_however_they_are_cut(lines: list[bytes], size: int) -> None:
    text, feed = b"".join(line + b"\n" for line in lines), Lines()
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert [line for piece in pieces for line in feed.feed(piece)] == lines
