"""The file of a recording: gzip'd JSON, a line an entry, valid up to wherever the writing ended.

    {"recording": "bayplan.dev/v1", "source": "https://...", "began": "2026-01-02T03:04:05.000000Z"}
    {"at": "...", "type": "ADDED", "object": {...}}       ADDED, MODIFIED, DELETED: as a watch tells them
    {"at": "...", "type": "SYNCED", "lacking": [...]}     all that was there at the beginning has been told
    {"at": "...", "type": "END"}

A file with nothing after SYNCED is a snapshot: a twin's. Every batch is flushed, so what a crash leaves can be read to
the last whole line. It holds whole pods, so it is its owner's alone.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from bayplan.cluster.kinds import KINDS, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant, parse_rfc3339, rfc3339_micro
from bayplan.model.errors import PermanentError
from bayplan.model.meta import ObjectMeta
from bayplan.simulate.private import open_private

FORMAT = "bayplan.dev/v1"
_CHUNK = 1 << 20
_STORAGE = "storage.k8s.io"
FURTHER: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(_STORAGE, "v1", "CSINode", "csinodes", namespaced=False),
        Kind(_STORAGE, "v1", "CSIDriver", "csidrivers", namespaced=False),
        Kind(_STORAGE, "v1", "CSIStorageCapacity", "csistoragecapacities", namespaced=True),
        Kind(_STORAGE, "v1", "VolumeAttachment", "volumeattachments", namespaced=False),
    )
}
"""Kinds that decisions go by and that the embedded engine does not have."""
_KINDS = {**KINDS, **FURTHER}
_NOBODY = ObjectMeta().managed_fields  # the default itself, which alone is left out when written
_LOUD = "kubectl.kubernetes.io/last-applied-configuration"


class RecordingError(PermanentError):
    """A file is no recording, or is damaged."""

    code = "BP-X050"


class Header(msgspec.Struct, frozen=True):
    """The first line."""

    recording: str
    source: str = ""
    """Where it was recorded."""
    began: str = ""
    notes: tuple[str, ...] = ()
    """What whoever asks must know of it."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """Any other line, as it is written."""

    at: str
    type: Literal["ADDED", "MODIFIED", "DELETED", "SYNCED", "END"]
    object: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    lacking: tuple[str, ...] = ()
    """Resources that could not be read."""
    late: bool = False
    """It happened before `at`, while nobody listened."""


class Entry(msgspec.Struct, frozen=True):
    """What happened, and when."""

    at: Instant
    type: Literal["ADDED", "MODIFIED", "DELETED", "SYNCED", "END"]
    object: Object | None = None
    lacking: tuple[str, ...] = ()
    late: bool = False


def slim(item: Object) -> Object:
    """An object without what is for its writers alone: half of a pod's bytes."""
    meta = item.meta
    kept = {key: text for key, text in meta.annotations.items() if key != _LOUD}
    bare = msgspec.structs.replace(meta, managed_fields=_NOBODY, annotations=kept)
    return Object(item.kind, bare, item.sections, item.version)


class Writer:
    """Writes a recording, from `with` to its end. An existing file is replaced."""

    def __init__(self, path: Path, source: str, began: Instant, notes: Iterable[str] = ()) -> None:
        self._path = path
        self._header = Header(FORMAT, source, rfc3339_micro(began), tuple(notes))
        self.entries = 0

    def __enter__(self) -> Self:
        self._raw = open_private(self._path)
        self._file = gzip.GzipFile(filename="", fileobj=self._raw, mode="wb", compresslevel=6, mtime=0)
        self._write(self._header)
        self.flush()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._raw.close()

    def add(self, entry: Entry) -> None:
        """One entry; on disk after the next `flush`."""
        item = entry.object
        raw = msgspec.UNSET if item is None else msgspec.Raw(slim(item).raw())
        self._write(Line(rfc3339_micro(entry.at), entry.type, raw, entry.lacking, entry.late))
        self.entries += 1

    def flush(self) -> None:
        """What was added can be read, whatever happens next."""
        self._file.flush()
        self._raw.flush()

    def _write(self, value: Any) -> None:
        self._file.write(msgspec.json.encode(value) + b"\n")


class Recording:
    """A recording that is read: its header, and its entries one after the other."""

    def __init__(self, path: Path) -> None:
        """Raises RecordingError for what is no recording, OSError."""
        self._path = path
        self.cut = False
        """Whether the file ends before its time; known once all entries are read."""
        first = next(self._lines(), None)
        try:
            self.header = msgspec.json.decode(first or b"", type=Header)
        except msgspec.MsgspecError as error:
            raise self._fault("it does not begin as one") from error
        if self.header.recording != FORMAT:
            raise self._fault(f"it has the format {self.header.recording}, expected {FORMAT}")

    @property
    def began(self) -> Instant:
        """When it began."""
        return parse_rfc3339(self.header.began)

    def entries(self) -> Iterator[Entry]:
        """All entries, in order. Raises RecordingError where the file is damaged."""
        lines = self._lines()
        next(lines)
        for number, line in enumerate(lines, 2):
            try:
                read = msgspec.json.decode(line, type=Line)
                item = None if read.object is msgspec.UNSET else _object(read.object)
                yield Entry(parse_rfc3339(read.at), read.type, item, read.lacking, read.late)
            except (msgspec.MsgspecError, ValueError, KeyError) as error:
                raise self._fault(f"line {number} cannot be read: {error}") from error

    def _lines(self) -> Iterator[bytes]:
        """The whole lines; a last one that was cut off is left out."""
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        left = b""
        with self._path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                try:
                    *whole, left = (left + unpacker.decompress(chunk)).split(b"\n")
                except zlib.error as error:
                    raise self._fault(f"it is no gzip file, or damaged: {error}") from error
                yield from whole
        self.cut = not unpacker.eof

    def _fault(self, why: str) -> RecordingError:
        hint = "make one with `bayplan simulate record` or `bayplan twin from`"
        return RecordingError(f"{self._path} is no recording: {why}", hint=hint)


class _Head(msgspec.Struct):
    kind: str


def _object(raw: msgspec.Raw) -> Object:
    return Object.from_raw(_KINDS[msgspec.json.decode(raw, type=_Head).kind], bytes(raw))
