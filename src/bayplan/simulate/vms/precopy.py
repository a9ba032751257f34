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
from collections.abc import Mapping, Sequence

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


def timeline(
    transfers: Sequence[Transfer],
    network: Network = NETWORK,
    *,
    pause: float = PAUSE,
    timeout: float = TIMEOUT,
) -> dict[str, Done]:
    """When each transfer ends. Between two events (one begins, one ends) every bandwidth is constant."""
    waiting = sorted(transfers, key=lambda each: (each.start, each.id))
    left: dict[str, float] = {}
    running: list[Transfer] = []
    done: dict[str, Done] = {}
    now = 0.0
    while waiting or running:
        if not running:
            now = max(now, waiting[0].start)
        while waiting and waiting[0].start <= now:
            running.append(waiting.pop(0))
            left[running[-1].id] = running[-1].memory
        rates = shares(running, network)
        ends = {each.id: _end(each, left[each.id], rates[each.id], now, pause, timeout) for each in running}
        event = min(waiting[0].start if waiting else _NEVER, *(end.end for end in ends.values()))
        _send(running, left, rates, event - now)
        now = event
        for each in [each for each in running if ends[each.id].end <= now]:
            done[each.id] = ends[each.id]
            running.remove(each)
    return done


def _end(each: Transfer, left: float, rate: float, now: float, pause: float, timeout: float) -> Done:
    limit = each.start + timeout
    end = now + precopy(left, rate, each.dirty_mbps, pause).seconds
    return Done(end, True) if end <= limit else Done(max(limit, now), False)


def _send(running: Sequence[Transfer], left: dict[str, float], rates: Mapping[str, float], span: float) -> None:
    """Let time pass. What is left never grows above the whole memory."""
    for each in running:
        sent = (rates[each.id] - each.dirty_mbps) * MEGABIT * span
        left[each.id] = min(each.memory, max(0.0, left[each.id] - sent))
