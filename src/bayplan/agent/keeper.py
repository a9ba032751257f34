"""The keeper: a small process that writes limits and takes them back in time, whatever becomes of its parent.

    agent ── Keep, Let (a line each) ──▶ keeper ── writes ──▶ control groups
          ◀── Told (a line each) ───────

It has nothing else to do, so it is punctual; it is the only one that writes, so nothing needs a lock. The end of its
input means that the agent ended, by kill -9 too: it then gives every group its own limit back and ends. News wait
until somebody reads them, and it does not wait with them: an agent that is stopped (SIGSTOP) delays no limit. It sits
in a session of its own, so that a signal to the agent's does not reach it. Should it die as well, the journal knows
what it had written, and the next start undoes that.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bayplan.model.clock import SECOND, Instant, monotonic
from bayplan.model.errors import BayplanError
from bayplan.node.burst.holds import Hold, Holds, Release
from bayplan.node.cgroup.detect import find_tree
from bayplan.node.cgroup.journalled import JournalledTree, Undone
from bayplan.node.cgroup.port import Bandwidth

_INPUT, _OUTPUT = 0, 1
_CHUNK = 1 << 16


class Keep(msgspec.Struct, frozen=True, tag="keep"):
    """Give a group a limit, until then on the machine's monotonic clock (microseconds); None: until it is let go."""

    path: str
    given: Bandwidth
    until: int | None = None


class Let(msgspec.Struct, frozen=True, tag="let"):
    """Give a group its own limit back."""

    path: str


class Told(msgspec.Struct, frozen=True):
    """What became of an order. `what`: held, released or refused; of the keeper itself: ready or failed."""

    what: str
    path: str
    late_us: int | None = None
    """How long after its time a hold was released; None where it was let go or had no time."""
    why: str = ""


ORDERS = msgspec.json.Decoder(Keep | Let)
TOLD = msgspec.json.Decoder(Told)


def machine_time() -> Instant:
    """Microseconds on the clock that all processes of the machine share."""
    return Instant(int(monotonic() * SECOND))


class Outbox:
    """News on their way out: what nobody reads yet is kept, and never waited for."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._left = b""

    @property
    def waiting(self) -> list[int]:
        """The descriptor, for `select`, where something is left to write."""
        return [self._descriptor] if self._left else []

    def tell(self, news: Iterable[Told] = ()) -> None:
        """Add news, and write what can be written now."""
        self._left += b"".join(msgspec.json.encode(each) + b"\n" for each in news)
        try:
            while self._left:
                self._left = self._left[os.write(self._descriptor, self._left) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # nobody is left to hear it
            self._left = b""


def keep(holds: Holds, outbox: Outbox) -> None:
    """Serve until the input ends, then give everything back."""
    rest = b""
    while True:
        due = holds.next_due
        patience = None if due is None else max(0.0, (due - machine_time()) / SECOND)
        readable, _, _ = select.select([_INPUT], outbox.waiting, [], patience)
        outbox.tell(_released(holds.release_due(machine_time())))
        if not readable:
            continue
        chunk = os.read(_INPUT, _CHUNK)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            outbox.tell(obey(holds, ORDERS.decode(line)))
    outbox.tell(_released(holds.release_all()))


def obey(holds: Holds, order: Keep | Let) -> list[Told]:
    """Do as told; what became of it."""
    if isinstance(order, Let):
        ended = holds.release(order.path)
        return [] if ended is None else _released([ended])
    until = None if order.until is None else Instant(order.until)
    try:
        left = holds.hold(Hold(order.path, order.given, until))
    except BayplanError as error:
        return [Told("refused", order.path, why=error.message)]
    return [Told("refused" if left else "held", order.path, why=left)]


def _released(releases: Iterable[Release]) -> list[Told]:
    now = machine_time()
    return [
        Told("released", each.path, max(0, now - each.until) if each.until and each.until <= now else None, each.kept)
        for each in releases
    ]


def _hurry() -> None:
    """Come before others: real time where it is allowed, else a better nice value, else as everybody."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, -20)


def recover(root: str, within: str, journal: Path) -> Undone:
    """Undo what a keeper that died had written. Raises BusyJournalError, CorruptJournalError."""
    with JournalledTree.open(find_tree(root, within=within), journal) as tree:
        return tree.recovered


def main(root: str, within: str, journal: str) -> int:
    """The process: a tree's root, the part of it that is meant, and the journal's file."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _hurry()
    outbox = Outbox(_OUTPUT)
    try:
        plain = find_tree(root, within=within)
        with JournalledTree.open(plain, Path(journal)) as tree:
            outbox.tell([Told("ready", "", why=recovered_text(tree.recovered))])
            keep(Holds(tree, plain), outbox)
    except (BayplanError, OSError) as error:  # OSError: the journal's folder is read-only, or not ours
        outbox.tell([Told("failed", "", why=_reason(error))])
        return 1
    return 0


def _reason(error: BayplanError | OSError) -> str:
    return f"{error.filename or 'journal'}: {error.strerror}" if isinstance(error, OSError) else str(error)


def recovered_text(undone: Undone) -> str:
    """What was left by a process that died, in a line; empty where nothing was."""
    parts = [f"gave {len(undone.restored)} limits back that an earlier process had left"] if undone.restored else []
    parts += [f"{each.path} is {each.found} by somebody else and stays" for each in undone.foreign]
    parts += [f"{path} could not be given back: {word}" for path, word in undone.stuck]
    return "; ".join(parts)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
