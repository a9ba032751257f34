"""`SystemReservation`: the machine's workers (its CPUs) in three pools that never overlap.

    all = reserved for the system + exclusive to a task + shared by everybody else

What cannot be given is refused with the numbers, and then nothing has changed. The shared pool keeps at least one
worker, or the tasks in it could not run. Exclusive workers come from as few NUMA nodes as possible: a task far from its
memory waits for it.
"""

from __future__ import annotations

from bayplan.model.errors import PermanentError
from bayplan.node.machine import Topology
from bayplan.node.sets import CpuSet, format_list, lowest_bits


class ReservationError(PermanentError):
    """More workers were asked for than can be given."""

    code = "BP-N053"


class SystemReservation:
    """Who has which workers. Sets are bit masks of CPU ids."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.reserved_workers: CpuSet = 0
        self.shared_pool: CpuSet = topology.all
        self.exclusive_assignments: dict[str, CpuSet] = {}

    def reserve_for_system(self, count: int) -> CpuSet:
        """Reserve the first workers for the system, instead of those reserved before. Raises ReservationError."""
        wanted = lowest_bits(self._topology.all, count)
        total = self._topology.all.bit_count()
        if count < 0 or count >= total:
            raise ReservationError(
                f"cannot reserve {count} of {total} workers for the system",
                hint=f"reserve 0 to {total - 1}: at least one is for the tasks",
            )
        for task, held in self.exclusive_assignments.items():
            if held & wanted:
                both = format_list(held & wanted)
                raise ReservationError(
                    f"cannot reserve workers {format_list(wanted)}: {both} is exclusive to {task}",
                    hint=f"release {task} first",
                )
        taken = sum(held.bit_count() for held in self.exclusive_assignments.values())
        if count + taken >= total:
            raise ReservationError(
                f"cannot reserve {count} workers: with {taken} exclusive ones none of {total} is left to share",
                hint=f"reserve at most {total - taken - 1}",
            )
        self.shared_pool = (self.shared_pool | self.reserved_workers) & ~wanted
        self.reserved_workers = wanted
        return wanted

    def assign(self, task: str, count: int) -> CpuSet:
        """Give a task workers of its own. The same again changes nothing. Raises ReservationError."""
        held = self.exclusive_assignments.get(task, 0)
        if held and held.bit_count() == count:
            return held
        free = self.shared_pool.bit_count()
        if held or count < 1 or count >= free:
            why = f"it has {held.bit_count()}" if held else f"{free} are shared, and one must stay so"
            raise ReservationError(
                f"task {task} cannot have {count} workers of its own: {why} "
                f"({self.reserved_workers.bit_count()} of {self._topology.all.bit_count()} are the system's)",
                hint=f"release {task} first" if held else f"ask for 1 to {free - 1}" if free > 1 else "release a task",
            )
        chosen = self._choose(count)
        self.shared_pool &= ~chosen
        self.exclusive_assignments[task] = chosen
        return chosen

    def release(self, task: str) -> None:
        """Take back what a task has to itself. A task that has nothing is no error."""
        self.shared_pool |= self.exclusive_assignments.pop(task, 0)

    def _choose(self, count: int) -> CpuSet:
        """From the fullest NUMA node that suffices; else from the emptiest ones, until there are enough."""
        free = sorted(
            (members & self.shared_pool for members in self._topology.nodes.values()),
            key=lambda members: (members.bit_count(), members),
        )
        for members in free:
            if members.bit_count() >= count:
                return lowest_bits(members, count)
        chosen = 0
        for members in reversed(free):
            chosen |= lowest_bits(members, count - chosen.bit_count())
        return chosen
