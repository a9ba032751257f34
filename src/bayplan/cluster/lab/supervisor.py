"""The process that holds a lab in the background: `python -m bayplan.cluster.lab.supervisor NAME`.

Options come in on standard input; what happens goes out on standard output, a line each, until the lab is ready. Then
it waits. SIGTERM ends it and the lab with it; if it is killed, the lab's janitor cleans up.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

import msgspec

from bayplan.cluster.lab.lab import Lab, LabOptions
from bayplan.cluster.lab.running import FAILED, READY, TELLING, Note, claim, release, rewrite
from bayplan.model.errors import BayplanError


def main() -> int:
    """Hold one lab until told to end."""
    name = sys.argv[1]
    signal.signal(signal.SIGTERM, _leave)
    options = msgspec.json.decode(sys.stdin.buffer.read(), type=LabOptions)
    note = Note(name, os.getpid(), options.kubernetes)
    try:
        claim(note)
    except BayplanError as error:
        return _fail(error)
    try:
        return _hold(note, options)
    finally:
        release(name)


def _hold(note: Note, options: LabOptions) -> int:
    try:
        with Lab(options, name=note.name, tell=lambda text: _say(TELLING, text)) as lab:
            rewrite(msgspec.structs.replace(note, kubeconfig=str(lab.kubeconfig)))
            _say(READY, "")
            sys.stdout.flush()
            _close_output()
            while True:
                signal.pause()
    except BayplanError as error:
        return _fail(error)


def _leave(_: int, __: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: leaving takes a moment
    raise SystemExit(0)


def _say(word: str, text: str) -> None:
    sys.stdout.write(f"{word} {' '.join(text.splitlines())}\n")
    sys.stdout.flush()


def _fail(error: BayplanError) -> int:
    told = (error.code, error.message, error.hint)
    _say(FAILED, msgspec.json.encode(told).decode())
    return 1


def _close_output() -> None:
    """Nobody listens any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
