"""How long a live migration takes: pre-copy by a closed form, and links that running migrations share.

While memory is sent at `bandwidth`, the VM changes it at `dirty` and that much has to be sent again, so what is left
shrinks at the difference. Once the rest can be sent within the pause that is allowed (QEMU: 300 ms), the VM stops for
just that long and goes on elsewhere:

    seconds = (memory - bandwidth * pause) / (bandwidth - dirty) + pause        if memory > bandwidth * pause
              memory / bandwidth                                                 else

With `dirty >= bandwidth` what is left does not shrink: such a migration never converges, and is said not to.

Bandwidth is shared fairly: a migration gets the smallest of its shares in its source's outgoing link, its target's
incoming link and the network as a whole. So at no time is more sent over any of them than it has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import msgspec

MEGABIT = 125_000
"""Bytes."""
PAUSE = 0.3
"""Seconds: QEMU's default downtime-limit."""
TIMEOUT = 300.0
"""Seconds after which a migration is given up."""
_NEVER = math.inf


class Network(msgspec.Struct, frozen=True):
    """What migrations may use, in megabits a second."""

    link_mbps: float = 10_000
    """Of each node, in each direction."""
    total_mbps: float = _NEVER
    """Of all migrations together."""


NETWORK = Network()


class Copy(msgspec.Struct, frozen=True):
    """What a migration would take."""

    seconds: float
    """Infinite where it does not converge."""
    pause: float
    """Of those, seconds in which the VM stands still."""

    @property
    def converges(self) -> bool:
        """Whether it ever ends."""
        return self.seconds < _NEVER


class Transfer(msgspec.Struct, frozen=True):
    """A migration that is to run."""

    id: str
    source: str
    target: str
    memory: float
    """Bytes."""
    dirty_mbps: float = 0.0
    start: float = 0.0
    """Seconds."""


class Done(msgspec.Struct, frozen=True):
    """How a transfer ended: given up at `end` where it did not converge in time."""

    end: float
    converged: bool


def precopy(memory: float, bandwidth_mbps: float, dirty_mbps: float, pause: float = PAUSE) -> Copy:
    """What the migration of so many bytes takes at a constant bandwidth."""
    if memory <= 0:
        return Copy(0.0, 0.0)
    if bandwidth_mbps <= 0:
        return Copy(_NEVER, _NEVER)
    bandwidth, dirty = bandwidth_mbps * MEGABIT, dirty_mbps * MEGABIT
    if memory <= bandwidth * pause:
        return Copy(memory / bandwidth, memory / bandwidth)
    if dirty >= bandwidth:
        return Copy(_NEVER, _NEVER)
    return Copy((memory - bandwidth * pause) / (bandwidth - dirty) + pause, pause)


def shares(running: Sequence[Transfer], network: Network) -> dict[str, float]:
    """Megabits a second for each transfer that runs."""
    leaving = Counter(each.source for each in running)
    coming = Counter(each.target for each in running)
    total = network.total_mbps / len(running) if running else 0.0
    return {each.id: min(network.link_mbps / max(leaving[each.source], coming[each.target]), total) for each in running}


class Links:
    """Transfers that run together. Time is told to it; between two of them that begin or end, bandwidth is constant."""

    def __init__(self, network: Network = NETWORK, *, pause: float = PAUSE, timeout: float = TIMEOUT) -> None:
        self._network = network
        self._pause, self._timeout = pause, timeout
        self._running: dict[str, Transfer] = {}
        self._left: dict[str, float] = {}
        self._now = 0.0

    def begin(self, transfer: Transfer) -> None:
        """One more, now: at the time it was last told."""
        self._running[transfer.id] = transfer
        self._left[transfer.id] = transfer.memory

    def end(self, name: str) -> None:
        """One less, now: whatever is left of it is sent no more. One that has ended already is no matter."""
        self._running.pop(name, None)

    @property
    def next_end(self) -> float:
        """When the next one ends if none begins before; never if none runs."""
        return min((done.end for done in self._ends().values()), default=_NEVER)

    def pass_to(self, now: float) -> dict[str, Done]:
        """Let it become that time; what has ended by then, in order."""
        done: dict[str, Done] = {}
        while (at := self.next_end) <= now and self._running:
            ends = self._ends()
            self._send(at)
            for name in [name for name, end in ends.items() if end.end <= at]:
                done[name] = ends[name]
                del self._running[name]
        self._send(now)
        return done

    def _ends(self) -> dict[str, Done]:
        rates = shares([*self._running.values()], self._network)
        return {name: self._end(each, rates[name]) for name, each in self._running.items()}

    def _end(self, each: Transfer, rate: float) -> Done:
        limit = each.start + self._timeout
        end = self._now + precopy(self._left[each.id], rate, each.dirty_mbps, self._pause).seconds
        return Done(end, True) if end <= limit else Done(max(limit, self._now), False)

    def _send(self, now: float) -> None:
        """Let time pass. What is left never grows above the whole memory."""
        rates = shares([*self._running.values()], self._network)
        for name, each in self._running.items():
            sent = (rates[name] - each.dirty_mbps) * MEGABIT * (now - self._now)
            self._left[name] = min(each.memory, max(0.0, self._left[name] - sent))
        self._now = now


def timeline(
    transfers: Sequence[Transfer], network: Network = NETWORK, *, pause: float = PAUSE, timeout: float = TIMEOUT
) -> dict[str, Done]:
    """When each transfer ends."""
    links = Links(network, pause=pause, timeout=timeout)
    done: dict[str, Done] = {}
    for each in sorted(transfers, key=lambda each: (each.start, each.id)):
        done |= links.pass_to(each.start)
        links.begin(each)
    return done | links.pass_to(_NEVER)
