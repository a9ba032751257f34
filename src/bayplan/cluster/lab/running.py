"""Labs that run in the background: who they are, and how they are started, found and ended.

A lab is held by a supervisor, a process of its own. Its note in the state folder says where to find it; the note is
made before the lab and removed after it, so that no two labs have one name and none is forgotten.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bayplan.cluster.lab.lab import LabOptions
from bayplan.model.clock import monotonic
from bayplan.model.errors import NotFound, PermanentError, TemporaryError
from bayplan.service.state import state_folder

SUPERVISOR = "bayplan.cluster.lab.supervisor"
READY, FAILED, TELLING = "ready", "failed", "tell"
"""How a line of the supervisor begins."""


class LabTaken(PermanentError):
    """A lab of that name runs already."""

    code = "BP-L003"


class LabFailed(TemporaryError):
    """The lab could not be started, or not be ended."""

    code = "BP-L004"


class Note(msgspec.Struct, frozen=True):
    """What the state folder says of a lab."""

    name: str
    pid: int
    version: str
    kubeconfig: str = ""
    """Empty until the lab is ready."""


def notes_folder() -> Path:
    """Where the notes are."""
    return state_folder() / "labs"


def _path(name: str) -> Path:
    return notes_folder() / f"{name}.json"


def read_notes() -> list[Note]:
    """The labs that run, by name. The note of one that was killed is removed."""
    found = []
    for path in sorted(notes_folder().glob("*.json")):
        note = _read(path)
        if note is None or not _alive(note.pid):
            path.unlink(missing_ok=True)
        else:
            found.append(note)
    _remove_folder_if_empty()
    return found


def _read(path: Path) -> Note | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Note)
    except (OSError, msgspec.DecodeError):  # just ended, or half written when its writer was killed
        return None


def _alive(pid: int) -> bool:
    """Whether a supervisor has this id; another program may have got it since."""
    try:
        return SUPERVISOR.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def find(name: str) -> Note:
    """A lab that runs. Raises NotFound."""
    running = read_notes()
    for note in running:
        if note.name == name:
            return note
    known = ", ".join(note.name for note in running)
    raise NotFound(f'no lab "{name}" runs', hint=f"running are {known}" if known else "start one: bayplan lab up")


def claim(note: Note) -> None:
    """Write the first note of a name. Raises LabTaken."""
    read_notes()  # those that are dead make room
    notes_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with _path(note.name).open("xb") as file:
            file.write(msgspec.json.encode(note))
    except FileExistsError:
        hint = f"bayplan lab down --name {note.name}, or another --name"
        raise LabTaken(f'a lab "{note.name}" runs already', hint=hint) from None


def rewrite(note: Note) -> None:
    """Replace a note, in one step."""
    draft = _path(note.name).with_suffix(".new")
    draft.write_bytes(msgspec.json.encode(note))
    draft.rename(_path(note.name))


def release(name: str) -> None:
    """Remove a note."""
    _path(name).unlink(missing_ok=True)
    _remove_folder_if_empty()


def _remove_folder_if_empty() -> None:
    folder = notes_folder()
    if folder.exists() and not any(folder.iterdir()):
        folder.rmdir()


def start(name: str, options: LabOptions, tell: Callable[[str], None]) -> Note:
    """Start a lab in the background; returns when it is ready. Raises LabTaken, LabFailed.

    Whatever ends the wait, Ctrl-C too, ends the lab that is not ready yet.
    """
    supervisor = subprocess.Popen(
        [sys.executable, "-m", SUPERVISOR, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it outlives this terminal
        text=True,
    )
    assert supervisor.stdin is not None
    assert supervisor.stdout is not None
    ready = False
    try:
        supervisor.stdin.write(msgspec.json.encode(options).decode())
        supervisor.stdin.close()
        for line in supervisor.stdout:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == READY:
                ready = True
                break
            if word == FAILED:
                raise _failure(rest)
            tell(rest)
        if not ready:
            raise LabFailed("the lab ended before it was ready", hint="try again; bayplan lab doctor")
    finally:
        if not ready:
            supervisor.terminate()
            supervisor.wait()
        supervisor.stdout.close()
    return find(name)


def _failure(text: str) -> LabFailed | LabTaken:
    code, message, hint = msgspec.json.decode(text, type=tuple[str, str, str])
    kind = LabTaken if code == LabTaken.code else LabFailed
    return kind(message, hint=hint)


def stop(note: Note, *, within: float = 60.0) -> None:
    """End a lab; returns when it is gone. Raises LabFailed."""
    os.kill(note.pid, signal.SIGTERM)
    end = monotonic() + within
    while _alive(note.pid):
        if monotonic() > end:
            raise LabFailed(f'lab "{note.name}" does not end (process {note.pid})', hint=f"kill -9 {note.pid}")
        time.sleep(0.05)
    release(note.name)
