"""Reservations on the machine: which limits go where, in the order that keeps each step valid.

As kubelet 1.36 enforces node allocatable (cm/node_container_manager_linux.go): the group of all pods gets the shares
and the memory limit of what is allocatable, capacity less both reservations; the groups of the system and of kubelet,
which must exist, get their own. CPU is a share only, never a quota. Where CPUs are reserved too, the two reserved
groups are confined to them.
"""

from __future__ import annotations

import enum

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.node.cgroup.conversions import milli_to_shares
from bayplan.node.cgroup.journalled import JournalledTree
from bayplan.node.cgroup.ordering import cpuset_steps
from bayplan.node.cgroup.port import GroupGoneError
from bayplan.node.sets import CpuSet, format_list


class EnforcementError(PermanentError):
    """Reservations that cannot be enforced on this machine."""

    code = "BP-N038"


class Amount(msgspec.Struct, frozen=True):
    """CPU in thousandths and memory in bytes; None: nothing said, so nothing is written."""

    cpu_milli: int | None = None
    memory: int | None = None


class Reserved(msgspec.Struct, frozen=True):
    """One reservation and its group. `compressible_only`: enforce CPU and not memory (kubelet's -compressible keys)."""

    group: str
    amount: Amount
    compressible_only: bool = False


class Reservations(msgspec.Struct, frozen=True):
    """All that is to be enforced. A reserve without a group is not enforced, and counts all the same."""

    capacity: Amount
    pods_group: str = "/kubepods"
    reserves: tuple[Reserved, ...] = ()
    reserved_cpus: CpuSet = 0


class What(enum.StrEnum):
    """What one write sets."""

    SHARES = "cpu shares"
    MEMORY = "memory limit"
    CPUS = "CPUs"


class Write(msgspec.Struct, frozen=True):
    """One value of one group."""

    group: str
    what: What
    value: int

    def __str__(self) -> str:
        return f"{self.group}: {self.what} {format_list(self.value) if self.what is What.CPUS else self.value}"


def allocatable(wanted: Reservations) -> Amount:
    """What is left for pods. Raises EnforcementError where more is reserved than there is."""
    left = []
    for name in ("cpu_milli", "memory"):
        there = getattr(wanted.capacity, name)
        taken = sum(getattr(each.amount, name) or 0 for each in wanted.reserves)
        if there is not None and taken > there:
            raise EnforcementError(
                f"{name}: {taken} reserved of {there}", hint="lower --system-reserved or --kube-reserved"
            )
        left.append(None if there is None else there - taken)
    return Amount(*left)


def writes(wanted: Reservations) -> list[Write]:
    """The writes, pods first as kubelet does: what they lose is what the reserves then have."""
    result = _limits(wanted.pods_group, allocatable(wanted))
    for each in wanted.reserves:
        if not each.group:
            continue
        amount = Amount(each.amount.cpu_milli) if each.compressible_only else each.amount
        result += _limits(each.group, amount)
        if wanted.reserved_cpus:
            result.append(Write(each.group, What.CPUS, wanted.reserved_cpus))
    return result


def _limits(group: str, amount: Amount) -> list[Write]:
    result = []
    if amount.memory is not None:
        result.append(Write(group, What.MEMORY, amount.memory))
    if amount.cpu_milli is not None:
        result.append(Write(group, What.SHARES, milli_to_shares(amount.cpu_milli)))
    return result


def enforce(tree: JournalledTree, wanted: Reservations) -> list[Write]:
    """Make the group of all pods where it is missing, and write; what was written. All of it is in the journal.

    Raises EnforcementError, before any write, where the group of a reserve does not exist: kubelet does not make it
    either. A WriteRefusedError (EBUSY: pods use more memory than is allocatable now) leaves the earlier writes; kubelet
    tries again each minute, and this may be called again.
    """
    plan = writes(wanted)
    for path in dict.fromkeys(each.group for each in wanted.reserves if each.group):
        try:
            tree.group(path)
        except GroupGoneError as error:
            raise EnforcementError(
                f"the reserved group {path} does not exist", hint="make it, and start the daemons in it, first"
            ) from error
    tree.create(wanted.pods_group)
    for write in plan:
        _apply(tree, write)
    return plan


def _apply(tree: JournalledTree, write: Write) -> None:
    group = tree.group(write.group)
    match write.what:
        case What.SHARES:
            group.set_shares(write.value)
        case What.MEMORY:
            group.set_memory_limit(write.value)
        case What.CPUS:
            _confine(tree, write.group, write.value)


def _confine(tree: JournalledTree, path: str, cpus: CpuSet) -> None:
    """Give a group these CPUs and keep all below within them; one below that would have none left gets all of them."""
    before = {group.path: group.cpuset().cpus for group in tree.walk(path)}
    after = {each: cpus if each == path else old & cpus or cpus for each, old in before.items() if old or each == path}
    for each, value in cpuset_steps({each: (before[each], new) for each, new in after.items()}):
        group = tree.group(each)
        group.set_cpuset(value, group.cpuset().mems)
