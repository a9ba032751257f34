"""Recording files: what is written is read, and what a crash leaves is read as far as it goes."""

from __future__ import annotations

import gzip
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant
from bayplan.simulate.recording.file import Entry, Recording, RecordingError, Writer
from bayplan.testing import node, pod
from bayplan.testing.builder import Manifest

START = Instant(1_767_225_600 * SECOND)


def _object(made: Manifest[Any]) -> Object:
    return Object.from_raw(made.kind, msgspec.json.encode(made.document()))


ENTRIES = [
    Entry(START, "ADDED", _object(node("a").offers(cpu=4))),
    Entry(START, "SYNCED", lacking=("secrets",)),
    Entry(Instant(START + 1), "ADDED", _object(pod("web").having("metadata.managedFields", [{"manager": "me"}]))),
    Entry(Instant(START + SECOND), "DELETED", _object(pod("web")), late=True),
    Entry(Instant(START + 2 * SECOND), "END"),
]


def _write(path: Path, *, flushed: bool = True) -> None:
    with Writer(path, "https://prod", START) as file:
        for entry in ENTRIES:
            file.add(entry)
            if flushed:
                file.flush()


def _told(entry: Entry) -> tuple[object, ...]:
    item = entry.object
    return entry.at, entry.type, entry.lacking, entry.late, item and (item.kind, item.key)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "day.rec"
    _write(path)
    recording = Recording(path)
    assert recording.header.source == "https://prod"
    assert recording.began == START
    assert [_told(each) for each in recording.entries()] == [_told(each) for each in ENTRIES]
    assert not recording.cut


def test_a_recording_is_its_owners_alone_and_without_managed_fields(tmp_path: Path) -> None:
    path = tmp_path / "day.rec"
    _write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"managedFields" not in gzip.decompress(path.read_bytes())


def test_a_file_that_others_could_read_is_its_owners_alone_once_it_is_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "day.rec"
    path.write_bytes(b"for everybody, and longer than what comes: " * 100)
    path.chmod(0o644)
    _write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not Recording(path).cut


@given(st.floats(0, 1))
def test_a_file_that_was_cut_anywhere_tells_the_beginning(
    tmp_path_factory: pytest.TempPathFactory, part: float
) -> None:
    path = tmp_path_factory.mktemp("cut") / "day.rec"
    _write(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * part)])
    try:
        recording = Recording(path)
    except RecordingError:
        return  # not even the first line is there
    found = [_told(each) for each in recording.entries()]
    assert found == [_told(each) for each in ENTRIES][: len(found)]
    assert recording.cut or part == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"hello", "no gzip file", id="what is not packed is refused"),
        pytest.param(gzip.compress(b"hello\n"), "does not begin as one", id="another text is refused"),
        pytest.param(gzip.compress(b'{"recording":"v9"}\n'), "it has the format v9", id="another format is refused"),
        pytest.param(b"", "does not begin as one", id="an empty file is refused"),
    ],
)
def test_what_is_no_recording(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "day.rec"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=words) as caught:
        Recording(path)
    assert str(path) in caught.value.message


def test_a_line_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "day.rec"
    head = b'{"recording":"bayplan.dev/v1","began":"2026-01-01T00:00:00Z"}\n'
    path.write_bytes(gzip.compress(head + b'{"at":"yesterday","type":"END"}\n'))
    with pytest.raises(RecordingError, match="line 2"):
        list(Recording(path).entries())


def test_kinds_stay_what_they_were(tmp_path: Path) -> None:
    path = tmp_path / "day.rec"
    _write(path)
    assert [each.object.kind for each in Recording(path).entries() if each.object] == [NODE, POD, POD]
