"""How long the threads of a group have waited for a CPU: the second number of `/proc/PID/task/TID/schedstat`.

The kernel counts by thread and forgets threads that end. What an ended thread had waited, as far as it was seen, stays
in the sum: a counter may not go back. A thread id that counts less than before belongs to a new thread.
"""

from __future__ import annotations

from collections.abc import Mapping


def waited_ns(schedstat: str) -> int:
    """Nanoseconds that a thread has waited, from its schedstat. Raises ValueError for another format."""
    fields = schedstat.split()
    if len(fields) != 3:
        raise ValueError(f"schedstat has {len(fields)} numbers instead of 3: {schedstat!r}")
    return int(fields[1])


class RunQueue:
    """The waiting of one group's threads, ended ones included."""

    def __init__(self) -> None:
        self._living: dict[int, int] = {}
        self._ended = 0

    def add(self, reading: Mapping[int, int]) -> int:
        """Take nanoseconds by thread id, as read now, and return the sum of all threads so far."""
        for thread, waited in self._living.items():
            if reading.get(thread, -1) < waited:
                self._ended += waited
        self._living = dict(reading)
        return self.total_ns

    @property
    def total_ns(self) -> int:
        """The sum at the last reading."""
        return self._ended + sum(self._living.values())
