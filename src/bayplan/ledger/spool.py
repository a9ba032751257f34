"""Batches on disk, in their order, while the database is away.

One file of records: length, CRC-32, then the rows as MessagePack by table. A record counts once it is synced to disk;
what a crash leaves half written at the end is cut off when the file is opened again. Replaying a record twice changes
nothing, so how far the replay has come need not be kept: a crash begins again at the first.

The file is one ledger's: whoever opens it holds it, and a database has a file of its own (`spool_path` in settings.py).
It begins with how far the database had been told by then, where that is known (`base`): a database that is behind that
does not hold what the batches follow on.

The file is bounded. When a batch no longer fits, the file is written anew: without what has been replayed, and if that
is not enough, without rows that a later one of the same key replaces (the database would end up with the same) and the
versions between a pod's first and last here. Those versions are the only losses, and they are counted in a Gap. When
even that does not help, the spool is full, and the reader of the cluster must wait.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bayplan.ledger.rows import ROWS, Gap, PodSnapshot, Row, Rows, Sort, StreamPosition, WorkloadSnapshot
from bayplan.ledger.snapshots import squeezed
from bayplan.model.clock import Instant
from bayplan.model.errors import PermanentError, TemporaryError
from bayplan.service.logging import get_logger

log = get_logger(__name__)

_HEAD = struct.Struct("<II")
_CLASSES: dict[str, type[Row]] = {kind.table: kind for kind in ROWS}
_DECODERS: dict[str, msgspec.msgpack.Decoder[list[Any]]] = {
    name: msgspec.msgpack.Decoder(list[kind])  # type: ignore[valid-type]  # a type made of a value
    for name, kind in _CLASSES.items()
}
_TABLES = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_BASE = "base"
"""In the place of a table: not a batch, but how far the database had been told before the first."""
_POSITIONS = msgspec.msgpack.Decoder(list[StreamPosition])
_ENCODE = msgspec.msgpack.Encoder().encode
_VERSIONS: dict[type[Row], str] = {PodSnapshot: "pod_uid", WorkloadSnapshot: "workload_uid"}
_GROWTH = 0.1
"""Of the bound: by so much what waits must have grown before more of it is let go, else the spool is full."""
_PIECE = 1 << 20


class SpoolFullError(TemporaryError):
    """The database is away, and the spool can take no more."""

    code = "BP-D030"


class SpoolUnwritableError(TemporaryError):
    """The spool's file cannot be written: its disk is full, or not writable."""

    code = "BP-D031"


class SpoolTakenError(TemporaryError):
    """Another process has the spool open."""

    code = "BP-D037"


class SpoolForeignError(PermanentError):
    """The spool holds whole records that this program cannot read: another version of it wrote them."""

    code = "BP-D036"


def encode(rows: Rows) -> bytes:
    """Rows as the body of a record."""
    return _ENCODE({kind.table: held for kind, held in rows.by_type.items() if held})


def decode(body: bytes) -> Rows:
    """The rows of a record. Raises KeyError, msgspec.MsgspecError for those of another version."""
    rows = Rows()
    for table, raw in _TABLES.decode(body).items():
        rows.by_type[_CLASSES[table]] = _DECODERS[table].decode(raw)
    return rows


def _record(body: bytes) -> bytes:
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def _based(positions: Mapping[str, StreamPosition]) -> bytes:
    return _record(_ENCODE({_BASE: [*positions.values()]})) if positions else b""


def _base_in(body: bytes) -> dict[str, StreamPosition] | None:
    """What a record says of it; None: it is a batch."""
    try:
        raw = _TABLES.decode(body).get(_BASE)
        return None if raw is None else {each.kind: each for each in _POSITIONS.decode(raw)}
    except msgspec.MsgspecError:
        return None  # whoever reads it as a batch says so


class Spool:
    """A queue of batches in a file. One process at a time; whoever calls waits for the disk."""

    def __init__(self, path: Path, *, most_bytes: int) -> None:
        """Open or make the file, and hold it. Raises SpoolUnwritableError, SpoolTakenError."""
        self.path = path
        self.most_bytes = most_bytes
        self.dropped = 0
        """States let go since the start."""
        self._shrunk_to: int | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = self._opened(path, 0)
        except OSError as error:
            raise self._unwritable(error) from error
        self.base: dict[str, StreamPosition] = {}
        """How far each kind's story had been told before the first batch; empty: nobody knows."""
        self._start = self._begin()
        self._end, self._count = self._scan()
        log.info("spool opened", path=str(path), batches=self._count, bytes=self._end)
        if self._end < os.fstat(self._file).st_size:
            log.warning("spool cut", path=str(path), at=self._end)
            os.ftruncate(self._file, self._end)

    def __len__(self) -> int:
        """How many batches wait."""
        return self._count

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._end

    def append(self, rows: Rows, base: Mapping[str, StreamPosition] | None = None) -> None:
        """Keep a batch, for good once this returns. Raises SpoolFullError, SpoolUnwritableError.

        `base` is taken down by a spool in which nothing waits.
        """
        record = _record(encode(squeezed(rows)))
        if self._end == 0 and base:
            self._write(_based(base))
            self.base, self._start = {**base}, self._end
        if self._end + len(record) > self.most_bytes:
            self._make_room(len(record))
        self._write(record)
        self._count += 1
        log.debug("batch spooled", rows=len(rows), batches=self._count, bytes=self._end)

    def first(self) -> tuple[Rows, int] | None:
        """The oldest batch and what to give to `drop` once it is stored; None: there is none.

        Raises SpoolForeignError.
        """
        return next(self._records(), None)

    def drop(self, upto: int) -> None:
        """Batches up to here are stored."""
        self._start = upto
        self._count -= 1
        if self._start == self._end:
            os.ftruncate(self._file, 0)
            os.fsync(self._file)
            self._start = self._end = 0
            self._shrunk_to, self.base = None, {}

    def close(self) -> None:
        """Close the file; what waits is replayed by the next who opens it."""
        os.close(self._file)

    # --- the file

    def _opened(self, path: Path, flags: int) -> int:
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(file), os.stat(path)):
                    return file
            except BlockingIOError as error:
                os.close(file)
                raise SpoolTakenError(
                    f"{path}: another ledger has it open", hint="end that one, or set ledger.spool to another folder"
                ) from error
            except BaseException:
                os.close(file)
                raise
            os.close(file)  # its holder wrote it anew just then: this is the old one

    def _begin(self) -> int:
        """Where the first batch stands."""
        body = self._read(0)
        base = None if body is None else _base_in(body)
        if body is None or base is None:
            return 0
        self.base = base
        return _HEAD.size + len(body)

    def _scan(self) -> tuple[int, int]:
        at, count = self._start, 0
        while (body := self._read(at)) is not None:
            at += _HEAD.size + len(body)
            count += 1
        return at, count

    def _read(self, at: int) -> bytes | None:
        head = os.pread(self._file, _HEAD.size, at)
        if len(head) < _HEAD.size:
            return None
        length, crc = _HEAD.unpack(head)
        body = os.pread(self._file, length, at + _HEAD.size)
        whole = len(body) == length > 0 and zlib.crc32(body) == crc  # zeros, as a power cut leaves them, are none
        return body if whole else None

    def _records(self) -> Iterator[tuple[Rows, int]]:
        """Each batch that waits, and where it ends."""
        at = self._start
        while at < self._end:
            body = self._read(at)
            assert body is not None, "a record that was synced is damaged"
            at += _HEAD.size + len(body)
            try:
                rows = decode(body)
            except (KeyError, msgspec.MsgspecError) as error:
                raise SpoolForeignError(
                    f"{self.path}: a batch cannot be read: {error}",
                    hint="replay it with the bayplan that wrote it, or move the file away: its batches are lost then",
                ) from error
            yield rows, at

    def _write(self, record: bytes) -> None:
        try:
            _write_all(self._file, record, self._end)
            os.fdatasync(self._file)
        except OSError as error:
            os.ftruncate(self._file, self._end)
            raise self._unwritable(error) from error
        self._end += len(record)

    def _unwritable(self, error: OSError) -> SpoolUnwritableError:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "free its disk, or set ledger.spool to another folder" if full else "set ledger.spool to another folder"
        return SpoolUnwritableError(f"{self.path}: {error.strerror}", hint=hint)

    # --- when it is full

    def _make_room(self, needed: int) -> None:
        """For a record. Raises SpoolFullError, SpoolUnwritableError, SpoolForeignError."""
        if self._end - self._start + needed <= self.most_bytes:
            self._rewrite(self._copy)
            return
        if self._shrunk_to is not None and self._end - self._start - self._shrunk_to < self.most_bytes * _GROWTH:
            raise self._full()
        keep = _Survey()
        for rows, _ in self._records():
            keep.look(rows)
        self._rewrite(lambda target: self._copy_some(target, keep))
        self.dropped += keep.dropped
        log.warning("spool shrunk", path=str(self.path), bytes=self._end, dropped=keep.dropped)
        self._shrunk_to = self._end
        if self._end + needed > self.most_bytes:
            raise self._full()

    def _rewrite(self, copy: Callable[[int], tuple[int, int]]) -> None:
        """Go on in a new file. `copy` fills it, and tells how many bytes and records it holds."""
        fresh = self.path.with_suffix(".new")
        try:
            target = self._opened(fresh, os.O_TRUNC)
            try:
                end, count = copy(target)
                os.fsync(target)
                fresh.replace(self.path)
            except BaseException:
                os.close(target)
                fresh.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise self._unwritable(error) from error
        os.close(self._file)
        start = len(_based(self.base))
        self._file, self._start, self._end, self._count = target, start, end, count

    def _copy(self, target: int) -> tuple[int, int]:
        """All that waits."""
        begin, size = self._copy_base(target), self._end - self._start
        for at in range(0, size, _PIECE):
            _write_all(target, os.pread(self._file, min(_PIECE, size - at), self._start + at), begin + at)
        return begin + size, self._count

    def _copy_base(self, target: int) -> int:
        record = _based(self.base)
        _write_all(target, record, 0)
        return len(record)

    def _copy_some(self, target: int, keep: _Survey) -> tuple[int, int]:
        """What is to be kept."""
        end, count = self._copy_base(target), 0
        last = len(self) - 1
        for number, (rows, _) in enumerate(self._records()):
            kept = keep.kept(rows)
            if number == last:
                kept.add(*keep.gaps())
            if len(kept):
                record = _record(encode(kept))
                _write_all(target, record, end)
                end += len(record)
                count += 1
        return end, count

    def _full(self) -> SpoolFullError:
        return SpoolFullError(
            f"{self.path}: {self._end - self._start} of {self.most_bytes} bytes are taken while the database is away",
            hint="bring the database back, or raise ledger.spool_mib",
        )


def _write_all(file: int, record: bytes, at: int) -> None:
    """Write all of it there: a disk that is nearly full takes a part."""
    done = 0
    while done < len(record):
        done += os.pwrite(file, record[done:], at + done)


class _Survey:
    """What of all records must stay: the last of each state and period, the first and last version of each object."""

    def __init__(self) -> None:
        self._last: dict[tuple[Any, ...], int] = {}
        """By table and key: the number of the row, counted over all records, that stays."""
        self._ends: dict[tuple[str, str, str], tuple[int, int]] = {}
        """By table, cluster and uid: the first and last version."""
        self._seen = self._passed = 0
        self.dropped = 0
        self._between: dict[str, tuple[str, Instant, Instant, int]] = {}

    def look(self, rows: Rows) -> None:
        """Note what a record holds."""
        for row in rows:
            self._seen += 1
            kind = type(row)
            owner = _VERSIONS.get(kind)
            if owner is not None:
                at = (kind.table, row.cluster, getattr(row, owner))
                version = row.resource_version  # type: ignore[attr-defined]  # both sorts of snapshots have it
                low, high = self._ends.get(at, (version, version))
                self._ends[at] = (min(low, version), max(high, version))
            elif kind.sort is not Sort.FACT:
                self._last[_key(row)] = self._seen

    def kept(self, rows: Rows) -> Rows:
        """What stays of a record; records must come in the same order as to `look`."""
        kept = Rows()
        for row in rows:
            self._passed += 1
            kind = type(row)
            if isinstance(row, PodSnapshot | WorkloadSnapshot):
                uid = row.pod_uid if isinstance(row, PodSnapshot) else row.workload_uid
                if row.resource_version not in self._ends[(kind.table, row.cluster, uid)]:
                    self._drop(row)
                    continue
            elif kind.sort is not Sort.FACT and self._last[_key(row)] != self._passed:
                continue
            kept.add(row)
        return kept

    def _drop(self, row: PodSnapshot | WorkloadSnapshot) -> None:
        self.dropped += 1
        stream = "pods" if isinstance(row, PodSnapshot) else "workloads"
        _, low, high, count = self._between.get(stream, (row.cluster, row.observed_at, row.observed_at, 0))
        self._between[stream] = (row.cluster, min(low, row.observed_at), max(high, row.observed_at), count + 1)

    def gaps(self) -> list[Gap]:
        """What was let go."""
        return [
            Gap(cluster=cluster, kind=kind, from_at=low, to_at=high, dropped=count, why="the spool was full")
            for kind, (cluster, low, high, count) in self._between.items()
        ]


def _key(row: Row) -> tuple[Any, ...]:
    return (row.table, *(getattr(row, name) for name in row.key))
