"""The spool: what is appended is there after a crash, in order; what a full one lets go."""

from __future__ import annotations

import fcntl
import struct
import zlib
from pathlib import Path

import pytest

from bayplan.ledger.rows import Gap, GpuPod, GpuPodsEvent, PodSnapshot, Rows, StreamPosition
from bayplan.ledger.spool import Spool, SpoolForeignError, SpoolFullError, SpoolTakenError
from bayplan.model.clock import Instant

LARGE = 1 << 30


def version(number: int, uid: str = "u", weight: int = 0) -> Rows:
    """A batch: one version of a pod, with its state and an event."""
    at = Instant(number)
    rows = Rows()
    rows.add(
        GpuPod(
            cluster="c", uid=uid, resource_version=number, namespace="n", name="p", created_at=Instant(0), updated_at=at
        ),
        PodSnapshot(
            cluster="c",
            pod_uid=uid,
            resource_version=number,
            namespace="n",
            name="p",
            observed_at=at,
            spec_hash=b"h",
            state=b"s" * weight,
        ),
        GpuPodsEvent(cluster="c", pod_uid=uid, resource_version=number, event_type="Phase", at=at, observed_at=at),
    )
    return rows


def drained(spool: Spool) -> list[Rows]:
    found = []
    while (first := spool.first()) is not None:
        found.append(first[0])
        spool.drop(first[1])
    return found


def test_what_was_appended_comes_out_in_order_by_whoever_opens_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s", most_bytes=LARGE)
    for number in range(5):
        spool.append(version(number))
    spool.close()  # as the end of a process does, however it ends
    again = Spool(tmp_path / "s", most_bytes=LARGE)
    assert len(again) == 5
    assert [list(rows) for rows in drained(again)] == [list(version(number)) for number in range(5)]
    assert (len(again), again.size) == (0, 0)


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_record_that_was_half_written_is_cut_off(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "s"
    spool = Spool(path, most_bytes=LARGE)
    spool.append(version(1))
    spool.append(version(2))
    spool.close()
    path.write_bytes(path.read_bytes()[:-cut])
    again = Spool(path, most_bytes=LARGE)
    again.append(version(3))
    assert [list(rows) for rows in drained(again)] == [list(version(1)), list(version(3))]


def test_a_damaged_end_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "s"
    spool = Spool(path, most_bytes=LARGE)
    spool.append(version(1))
    spool.append(version(2))
    spool.close()
    content = bytearray(path.read_bytes())
    content[-1] ^= 0xFF
    path.write_bytes(content)
    assert len(Spool(path, most_bytes=LARGE)) == 1


def test_a_full_spool_lets_go_of_versions_between_first_and_last_and_counts_them(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s", most_bytes=50_000)
    for number in range(100):
        spool.append(version(number, f"u{number % 2}", weight=1000))
    whole = Rows()
    for rows in drained(spool):
        whole.extend(rows)
    kept = {(row.pod_uid, row.resource_version) for row in whole if isinstance(row, PodSnapshot)}
    assert {("u0", 0), ("u0", 98), ("u1", 1), ("u1", 99)} <= kept
    gaps = [row for row in whole if isinstance(row, Gap)]
    assert sum(gap.dropped for gap in gaps) == spool.dropped == 100 - len(kept) > 0
    assert len({gap.from_at for gap in gaps}) == len(gaps)  # each has a key of its own
    assert [row.resource_version for row in whole if isinstance(row, GpuPodsEvent)] == list(range(100))
    states = {row.uid: row.resource_version for row in whole if isinstance(row, GpuPod)}
    assert states == {"u0": 98, "u1": 99}


def test_a_spool_of_first_and_last_versions_alone_is_full(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s", most_bytes=20_000)
    for number in range(10):
        spool.append(version(number, f"u{number}", weight=1000))
    with pytest.raises(SpoolFullError):
        spool.append(version(100, "another", weight=8000))
    assert [next(iter(rows)) for rows in drained(spool)] == [next(iter(version(n, f"u{n}"))) for n in range(10)]
    spool.append(version(1))
    assert len(spool) == 1


def test_zeros_after_the_last_record_are_no_records(tmp_path: Path) -> None:
    path = tmp_path / "s"
    spool = Spool(path, most_bytes=LARGE)
    spool.append(version(1))
    spool.close()
    path.write_bytes(path.read_bytes() + bytes(64))
    again = Spool(path, most_bytes=LARGE)
    assert [list(rows) for rows in drained(again)] == [list(version(1))]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x81\xa6future\x90", id="a table that this program does not have"),
        pytest.param(b"\x01", id="something else"),
    ],
)
def test_whole_records_of_another_program_are_refused_and_kept(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "s"
    path.write_bytes(struct.pack("<II", len(body), zlib.crc32(body)) + body)
    spool = Spool(path, most_bytes=LARGE)
    with pytest.raises(SpoolForeignError, match="cannot be read"):
        spool.first()
    spool.close()
    assert len(Spool(path, most_bytes=LARGE)) == 1


def test_what_was_replayed_makes_room_before_anything_is_let_go(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s", most_bytes=20_000)
    for number in range(10):
        spool.append(version(number, weight=1000))
    for _ in range(8):
        first = spool.first()
        assert first is not None
        spool.drop(first[1])
    for number in range(10, 16):
        spool.append(version(number, weight=1000))
    assert (spool.dropped, len(spool)) == (0, 8)
    assert spool.size <= 20_000
    with pytest.raises(SpoolTakenError):  # the new file is held as the old one was
        Spool(tmp_path / "s", most_bytes=LARGE)
    spool.close()
    again = Spool(tmp_path / "s", most_bytes=20_000)
    states = [row.resource_version for rows in drained(again) for row in rows if isinstance(row, GpuPod)]
    assert states == list(range(8, 16))


def position(revision: int) -> StreamPosition:
    return StreamPosition(
        cluster="c", kind="pods", resource_version=revision, revision=str(revision), at=Instant(revision)
    )


def told(revision: int) -> Rows:
    """A batch that says no more than how far the story is told."""
    rows = Rows()
    rows.add(position(revision))
    return rows


def test_what_a_spool_was_begun_on_is_no_batch_and_stays_through_everything(tmp_path: Path) -> None:
    base = {"pods": position(7)}
    spool = Spool(tmp_path / "s", most_bytes=30_000)
    for number in range(12):
        spool.append(version(number, f"u{number % 2}", weight=1000), {"pods": position(7 + number)})
    for _ in range(4):
        first = spool.first()
        assert first is not None
        spool.drop(first[1])
    for number in range(12, 60):
        spool.append(version(number, f"u{number % 2}", weight=1000), {"pods": position(99)})
    assert spool.dropped, "it was written anew without what was replayed, and then with less"
    spool.close()
    again = Spool(tmp_path / "s", most_bytes=30_000)
    assert again.base == base
    assert not [row for rows in drained(again) for row in rows if isinstance(row, StreamPosition)]
    assert (again.base, again.size) == ({}, 0)


def test_a_batch_of_positions_is_a_batch(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s", most_bytes=LARGE)
    spool.append(told(7))
    spool.close()
    again = Spool(tmp_path / "s", most_bytes=LARGE)
    assert again.base == {}
    assert [list(rows) for rows in drained(again)] == [list(told(7))]


def test_an_old_file_that_was_written_anew_is_not_taken_for_the_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "s", tmp_path / "other"
    path.touch()
    Spool(other, most_bytes=LARGE).close()
    lock = fcntl.flock
    calls: list[int] = []

    def late(file: int, how: int) -> None:
        if not calls:  # between opening and locking
            other.replace(path)
        calls.append(file)
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    spool = Spool(path, most_bytes=LARGE)
    assert len(calls) == 2
    spool.append(version(1))
    assert path.stat().st_size == spool.size
