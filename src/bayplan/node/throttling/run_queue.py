"""How long the threads of a group have waited for a CPU: the second number of `/proc/PID/task/TID/schedstat`.

The kernel counts by thread, wherever the thread was, and forgets threads that end. So a group's counter begins with
what its threads had waited when it was first read, and then grows by what each of them waits from look to look: a
thread that comes later brings none of its past with it, and one that ends or leaves takes nothing away.
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
        self._living: dict[int, int] | None = None
        self.total_ns = 0
        """The sum at the last reading."""

    def add(self, reading: Mapping[int, int] | None) -> int:
        """Take nanoseconds by thread id, as read now, and return the sum so far; None: the threads were not asked."""
        if reading is None:
            self._living = self._living or {}  # what they had waited until they are asked is past, too
            return self.total_ns
        if self._living is None:
            self.total_ns = sum(reading.values())
        else:
            # an id that counts less than before belongs to a new thread
            seen = self._living
            self.total_ns += sum(max(0, waited - seen.get(thread, waited)) for thread, waited in reading.items())
        self._living = dict(reading)
        return self.total_ns
