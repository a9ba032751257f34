"""Files that hold whole pods: these name images, arguments and environments, so such a file is its owner's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

_MODE = 0o600


def open_private(path: Path) -> BinaryIO:
    """A file that is written anew and that nobody else may read, even where it was there and others might.

    Raises OSError; what was in the file is then still there.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, _MODE)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):  # a pipe or /dev/null stays as it is
            os.fchmod(descriptor, _MODE)
            os.ftruncate(descriptor, 0)
    except OSError as error:
        os.close(descriptor)
        raise OSError(error.errno, f"cannot be made its owner's alone: {error.strerror}", str(path)) from error
    return os.fdopen(descriptor, "wb")
