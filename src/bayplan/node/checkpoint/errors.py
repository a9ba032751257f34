"""Checkpoints that cannot be used. The file is always left as it is."""

from __future__ import annotations

from bayplan.model.errors import PermanentError, TemporaryError

_KEPT = "the file is kept as it is: restore a copy, or drain the node, move the file away and start anew"


class CheckpointError(PermanentError):
    """A file that is no checkpoint, or one of a version that is not known here."""

    code = "BP-N025"

    def __init__(self, source: str, why: str) -> None:
        super().__init__(f"{source}: {why}", hint=_KEPT)


class CorruptCheckpointError(PermanentError):
    """A checkpoint whose content is not what was written."""

    code = "BP-N026"

    def __init__(self, source: str, expected: object, found: object) -> None:
        self.expected, self.found = expected, found
        super().__init__(
            f"{source}: checkpoint is corrupted: it says its checksum is {expected}, that of its content is {found}",
            hint=_KEPT,
        )


class CheckpointWriteError(TemporaryError):
    """A checkpoint could not be written; the one before is still there."""

    code = "BP-N027"
