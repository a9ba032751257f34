"""Bursts for a log: each at level debug, and once a minute at info how many there were.

A group that is always throttled bursts more than once a second: a line for each would hide everything else.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from bayplan.agent.burst import Happening
from bayplan.model.clock import SECOND, Instant

_EVERY = 60 * SECOND


class Log(Protocol):
    """Where it goes."""

    def debug(self, event: str, /, **fields: object) -> object:
        """For whoever asks for all of it."""
        ...

    def info(self, event: str, /, **fields: object) -> object:
        """For everybody."""
        ...


class BurstNews:
    """Hears what happens. The first of all is told at once; what comes after it waits for its minute to end."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._counts: Counter[str] = Counter()
        self._groups: set[str] = set()
        self._due = Instant(0)

    def tell(self, happening: Happening) -> None:
        """Take one."""
        fields = {"group": happening.path, "limit_cpus": happening.limit_cpus, "why": happening.why}
        self._log.debug(happening.what, **fields)
        self._counts[happening.what] += 1
        self._groups.add(happening.path)
        if happening.at < self._due:
            return
        self._due = Instant(happening.at + _EVERY)
        counts = {what.replace(" ", "_"): count for what, count in self._counts.items()}
        self._log.info("bursts", groups=len(self._groups), **counts, last=happening.what, **fields)
        self._counts.clear()
        self._groups.clear()
