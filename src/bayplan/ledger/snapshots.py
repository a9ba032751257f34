"""A version of an object, packed small enough to keep every one, and whole again when asked.

An object's specification hardly ever changes, so it is kept once, by its hash; the rest (metadata and status) is
compressed with a dictionary trained on the life of pods (`dictionaries/`). Every version stands alone: there are no
chains of differences, so any of them is there at once and any may be deleted.

Nothing is dropped, managedFields neither: packed they cost about 150 bytes of a version's 480, and they say who
changed what. What comes back is equal as JSON.

The dictionary's id is in every frame. Dictionaries are never changed nor removed, only added: a ledger stays readable.

Compressing is the dearest step of a version, and one that needs no interpreter. So a version is only laid out where it
is understood, and all of a batch are compressed in one call, by a thread, where they are made durable (`squeezed`).
"""

from __future__ import annotations

import functools
import hashlib
import threading
from pathlib import Path

import msgspec
import zstandard
from msgspec.structs import replace

from bayplan.cluster.kinds import Kind
from bayplan.cluster.objects import Object
from bayplan.ledger.rows import PodSnapshot, Row, Rows, SpecBlob, WorkloadSnapshot
from bayplan.model.clock import Instant
from bayplan.model.errors import PermanentError

CURRENT = 1
"""The dictionary that is written with."""
PLAIN = 0
"""In its place: the state is JSON still."""
_MANY = 16
"""From so many on one call for all is quicker: it begins by reading the dictionary."""
_FOLDER = Path(__file__).with_name("dictionaries")
_LEVEL = 3
_HASH_SIZE = 16
_ENCODE = msgspec.json.Encoder().encode
_BEGINNINGS = frozenset(bytes((each,)) for each in b'{["-0123456789tfn')
"""Of JSON: a specification may be anything."""


class SnapshotError(PermanentError):
    """A stored version cannot be read: damaged, or packed with a dictionary that this program does not have."""

    code = "BP-D005"


class Packed(msgspec.Struct, frozen=True):
    """One version: its state, compressed or PLAIN, and its specification by hash (empty: it has none)."""

    spec_hash: bytes
    spec: bytes
    """As JSON, not compressed: `squeezed` does that, where the hash is new."""
    state: bytes
    dictionary: int

    def blob(self, cluster: str, at: Instant) -> SpecBlob:
        """The specification's row; only a version with a specification has one."""
        return SpecBlob(cluster=cluster, hash=self.spec_hash, data=self.spec, first_seen=at)


class _Codec(threading.local):
    """zstd's contexts serve one thread at a time, so every thread has its own."""

    def __init__(self) -> None:
        self._compressor: zstandard.ZstdCompressor | None = None
        self._decompressors: dict[int, zstandard.ZstdDecompressor] = {}

    @property
    def compressor(self) -> zstandard.ZstdCompressor:
        if self._compressor is None:
            self._compressor = zstandard.ZstdCompressor(level=_LEVEL, dict_data=dictionary(CURRENT))
        return self._compressor

    def compress(self, data: bytes) -> bytes:
        return self.compressor.compress(data)

    def compress_all(self, data: list[bytes]) -> list[bytes]:
        if len(data) < _MANY:
            return [self.compress(each) for each in data]
        found = self.compressor.multi_compress_to_buffer([*data], threads=1)
        return [found[i].tobytes() for i in range(len(found))]

    def decompress(self, data: bytes) -> bytes:
        if _is_plain(data):
            return data
        try:
            found = zstandard.get_frame_parameters(data).dict_id
            if found not in self._decompressors:
                self._decompressors[found] = zstandard.ZstdDecompressor(dict_data=dictionary(found))
            return self._decompressors[found].decompress(data)
        except zstandard.ZstdError as error:
            raise SnapshotError(f"a stored version is damaged: {error}") from error


def dictionary(number: int) -> zstandard.ZstdCompressionDict:
    """A shipped dictionary. Raises SnapshotError when there is none of that number."""
    try:
        data = (_FOLDER / f"{number}.zdict").read_bytes()
    except FileNotFoundError as error:
        raise SnapshotError(
            f"a stored version was packed with dictionary {number}, which this program does not have",
            hint="use the bayplan that wrote it, or a later one",
        ) from error
    return zstandard.ZstdCompressionDict(data)


_CODEC = _Codec()


def _is_plain(data: bytes) -> bool:
    """Whether it is JSON still: no frame begins like that."""
    return data[:1] in _BEGINNINGS


def split(obj: Object) -> tuple[bytes, bytes]:
    """An object's specification (empty where it has none) and everything else, both as JSON."""
    parts = [_beginning(obj.kind), _ENCODE(obj.meta)]
    for name, section in obj.sections.items():
        if name != "spec":
            parts += (b",", _ENCODE(name), b":", section.raw)
    parts.append(b"}")
    spec = obj.sections.get("spec")
    return (b"" if spec is None else spec.raw), b"".join(parts)


@functools.lru_cache(maxsize=256)
def _beginning(kind: Kind) -> bytes:
    return f'{{"kind":"{kind.name}","apiVersion":"{kind.api_version}","metadata":'.encode()


def lay_out(obj: Object, spec_hash: bytes = b"") -> Packed:
    """A version as it is told, to be compressed later. `spec_hash` is given where the specification is a known one."""
    spec, state = split(obj)
    if spec and not spec_hash:
        spec_hash = hashlib.blake2b(spec, digest_size=_HASH_SIZE).digest()
    return Packed(spec_hash if spec else b"", spec, state, PLAIN)


def pack(obj: Object) -> Packed:
    """A version, ready to be stored."""
    plain = lay_out(obj)
    return Packed(plain.spec_hash, plain.spec, _CODEC.compress(plain.state), CURRENT)


_COMPRESSED: tuple[tuple[type[Row], str, dict[str, int]], ...] = (
    (PodSnapshot, "state", {"dictionary": CURRENT}),
    (WorkloadSnapshot, "state", {"dictionary": CURRENT}),
    (SpecBlob, "data", {}),
)


def squeezed(rows: Rows) -> Rows:
    """The same rows, what is large compressed. Takes its time, and leaves the interpreter to others meanwhile."""
    made = Rows()
    made.by_type = {**rows.by_type}
    for kind, field, rest in _COMPRESSED:
        held = rows.by_type.get(kind, ())
        plain = [data for row in held if _is_plain(data := getattr(row, field))]
        if plain:
            done = iter(_CODEC.compress_all(plain))
            made.by_type[kind] = [
                replace(row, **{field: next(done)}, **rest) if _is_plain(getattr(row, field)) else row for row in held
            ]
    return made


def unpack(state: bytes, spec: bytes | None) -> bytes:
    """The version as JSON, from its state and its specification's blob (`SpecBlob.data`). Raises SnapshotError."""
    rest = _CODEC.decompress(state)
    if not spec:
        return rest
    return b'{"spec":' + _CODEC.decompress(spec) + b"," + rest[1:]
