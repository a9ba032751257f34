"""Checkpoints' files. Ours is replaced whole or not at all, and never before what is there was read and found good.

The kubelet's are only ever read.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bayplan.node.checkpoint import kubelet_cpu, kubelet_memory
from bayplan.node.checkpoint.errors import CheckpointError, CheckpointWriteError
from bayplan.node.checkpoint.kubelet_cpu import KubeletCpus
from bayplan.node.checkpoint.kubelet_memory import KubeletMemory
from bayplan.node.checkpoint.own import Checkpoint, decode, encode

T = TypeVar("T")

_MODE = 0o600


class CheckpointStore:
    """The checkpoint of one node, at a path whose folder exists."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known_good = False

    def load(self) -> Checkpoint | None:
        """What was saved last; None where nothing ever was. Raises CheckpointError, CorruptCheckpointError."""
        found = _read(self._path, decode)
        self._known_good = True
        return found

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the file; on return it is on the disk.

        Raises CheckpointWriteError, the file before being untouched, and what `load` raises where the file that is
        there cannot be read: it is not replaced.
        """
        if not self._known_good:
            self.load()
        try:
            self._replace(encode(checkpoint))
        except OSError as error:
            raise CheckpointWriteError(
                f"{self._path}: cannot be written: {error.strerror}", hint="what it held before is still there"
            ) from error

    def _replace(self, blob: bytes) -> None:
        folder = self._path.parent
        handle, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(file.fileno(), _MODE)
                file.write(blob)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self._path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                Path(name).unlink()
            raise
        _sync(folder)


def kubelet_cpu_state(root: Path) -> KubeletCpus | None:
    """What a kubelet with this root folder remembers of CPUs; None without a file. Raises as `load` does."""
    return _read(root / kubelet_cpu.FILE, kubelet_cpu.read_cpu_state)


def kubelet_memory_state(root: Path) -> KubeletMemory | None:
    """The same of memory."""
    return _read(root / kubelet_memory.FILE, kubelet_memory.read_memory_state)


def _read(path: Path, understand: Callable[[bytes, str], T]) -> T | None:
    try:
        blob = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(str(path), f"cannot be read: {error.strerror}") from error
    return understand(blob, str(path))


def _sync(folder: Path) -> None:
    """Until the folder is on the disk, the new name may not be."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
