"""Every write to control groups is written down first, and undone on stop or, after a sudden death, at the next start.

The journal is a file of JSON lines: a head with the machine's boot id, then one line for each write with what stood
there before. It is on the disk before the kernel sees the write. Undoing puts back what stood there at first, unless
someone else has written since: that is left alone and reported. Groups do not survive a boot, so a journal of
another boot is void; on a tmpfs (/run/bayplan) each line costs microseconds and nothing is lost that matters.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bayplan.model.errors import PermanentError, TemporaryError

MOST_LINES = 10_000
"""After so many new lines the journal is written anew, with one line for each file."""


class CorruptJournalError(PermanentError):
    """A journal with a line that cannot be read. It is kept as it is."""

    code = "BP-N035"


class BusyJournalError(TemporaryError):
    """Another process writes this journal."""

    code = "BP-N036"


class FullJournalError(TemporaryError):
    """The journal cannot be written: so the group was not written either."""

    code = "BP-N037"


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line."""

    boot: str
    format: int = 1


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="write"):
    """A value written to a file. `last` is what stood there before the latest write, `old` before the first."""

    path: str
    old: str
    last: str
    new: str


class Made(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="make"):
    """A group made."""

    path: str


class Enabled(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="enable"):
    """Controllers of version 2 that a group passes on since."""

    path: str
    controllers: tuple[str, ...]


class Removed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="remove"):
    """A group removed: what was written to it is void."""

    path: str


class Moved(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="move"):
    """A process moved from one group's directory to another's."""

    pid: int
    old: str
    new: str


Entry = Change | Made | Removed | Enabled | Moved

_HEAD = msgspec.json.Decoder(Head)
_ENTRY: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


def read_boot_id() -> str:
    """The id of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Journal:
    """An open journal: append before you write. Held by one process at a time."""

    def __init__(self, path: Path, *, boot: str | None = None) -> None:
        """Open a journal and read what is in it. Raises BusyJournalError, CorruptJournalError."""
        self.path = path
        self.boot = read_boot_id() if boot is None else boot
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise BusyJournalError(
                f"journal {path} is in use", hint="another bayplan writes groups here: stop it"
            ) from error
        try:
            self.entries = read(path, self.boot)
            self._descriptor = -1
            self._rewrite()
        except BaseException:
            os.close(self._lock)
            raise

    def append(self, entry: Entry) -> None:
        """Write an entry down; on return it is on the disk. Raises FullJournalError."""
        line = msgspec.json.encode(entry) + b"\n"
        size = os.fstat(self._descriptor).st_size
        try:
            _write_all(self._descriptor, line)
            os.fdatasync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, size)
            raise self._full(error) from error
        self.entries.append(entry)
        if len(self.entries) >= self._rewrite_at:
            self._rewrite()

    def keep_only(self, entries: Iterable[Entry]) -> None:
        """Forget all but these."""
        self.entries = list(entries)
        self._rewrite()

    def _rewrite(self) -> None:
        self.entries = compact(self.entries)
        self._rewrite_at = len(self.entries) + MOST_LINES
        fresh = self.path.with_name(self.path.name + ".new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        lines = [msgspec.json.encode(each) + b"\n" for each in (Head(self.boot), *self.entries)]
        try:
            _write_all(descriptor, b"".join(lines))
            os.fsync(descriptor)
        except OSError as error:  # the old one is whole, and goes on
            os.close(descriptor)
            fresh.unlink()
            raise self._full(error) from error
        os.replace(fresh, self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = descriptor

    def _full(self, error: OSError) -> FullJournalError:
        return FullJournalError(f"journal {self.path}: {error.strerror}", hint="nothing was written; free space")

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._descriptor)
        os.close(self._lock)


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all of it; what a full disk takes in part is an error, too."""
    if os.write(descriptor, data) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read(path: Path, boot: str) -> list[Entry]:
    """The entries of a journal: none where it is of another boot. A last line that was cut short never came to be.

    Raises CorruptJournalError with file and line for any other line that cannot be read.
    """
    try:
        *lines, _torn = path.read_bytes().split(b"\n")  # what follows the last line end was cut short, or is empty
    except FileNotFoundError:
        return []
    if not lines:
        return []
    entries: list[Entry] = []
    for number, line in enumerate(lines, 1):
        try:
            if number == 1:
                if _HEAD.decode(line).boot != boot:
                    return []
            else:
                entries.append(_ENTRY.decode(line))
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise CorruptJournalError(
                f"journal {path}, line {number}: {error}",
                hint="nothing was undone: repair the line, or remove the file to give up the rest",
            ) from error
    return entries


def compact(entries: Iterable[Entry]) -> list[Entry]:
    """One entry for each file, group and process, in the order of the latest."""
    latest: dict[object, Entry] = {}
    for entry in entries:
        match entry:
            case Removed(path):
                latest = {key: each for key, each in latest.items() if not _is_within(each, path)}
            case Moved(pid, old, new):
                before = latest.pop((pid, old), None)
                latest[pid, new] = Moved(pid, before.old, new) if isinstance(before, Moved) else entry
            case Change(path, _, last, new):
                before = latest.pop(path, None)
                # what neither stood there nor was written by us is somebody else's: that is to come back then
                if isinstance(before, Change) and last in (before.old, before.last, before.new):
                    entry = Change(path, before.old, last, new)
                latest[path] = entry
            case Enabled(path, controllers):
                before = latest.pop((Enabled, path), None)
                earlier = before.controllers if isinstance(before, Enabled) else ()
                latest[Enabled, path] = Enabled(path, tuple(dict.fromkeys((*earlier, *controllers))))
            case Made(path):
                latest[Made, path] = entry
    return list(latest.values())


def _is_within(entry: Entry, group: str) -> bool:
    place = entry.new if isinstance(entry, Moved) else entry.path
    return place == group or place.startswith(f"{group}/")
