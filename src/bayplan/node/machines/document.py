"""The words of a machine file, as it is written. Lists are the kernel's (`0-3,8`), amounts are quantities (`64Gi`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

IdList = Any
Amount = Any
Positive = Annotated[int, msgspec.Meta(ge=1, le=8192)]
Id = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
NodeId = Annotated[int, msgspec.Meta(ge=0, le=1023)]  # MAX_NUMNODES of the largest kernels
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Distance = Annotated[int, msgspec.Meta(ge=10, le=255)]  # LOCAL_DISTANCE of Linux, "unreachable" of ACPI's SLIT


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The base of every struct here."""


class Distances(Entry, frozen=True):
    """Of a regular machine, from any node; to itself it is 10."""

    same_socket: Distance | None = None
    other_socket: Distance | None = None


class Layout(Entry, frozen=True):
    """A regular machine: cores in order are dealt evenly to a socket's NUMA nodes, and to its L3 groups."""

    cores_per_socket: Positive
    sockets: Positive = 1
    threads_per_core: Positive = 1
    nodes_per_socket: Positive = 1
    caches_per_socket: Positive = 1
    numbering: Literal["threads-last", "threads-adjacent", "sockets-alternating"] = "threads-last"
    """In which order Linux counts the CPUs; it follows the firmware's table.

    threads-last: the first threads of all cores, socket by socket, then the second ones (most x86 servers).
    threads-adjacent: the threads of a core one after the other (POWER, many virtual machines).
    sockets-alternating: as threads-last, dealt to the sockets in turn: 0, 2, 4 on socket 0 (some two-socket servers).
    """
    memory_per_node: Amount | None = None
    hugepages_per_node: dict[str, Count] = msgspec.field(default_factory=dict)
    distances: Distances | None = None


class CpuEntry(Entry, frozen=True):
    """CPUs of one core; `core` joins several entries. The L3 group is the socket's where it is not known."""

    ids: IdList
    socket: Id
    node: NodeId
    cache: Id | None = None
    core: Id | None = None


class NodeEntry(Entry, frozen=True):
    """A NUMA node; `distances` are to the nodes in ascending order, as the kernel lists them."""

    id: NodeId
    memory: Amount
    hugepages: dict[str, Count] = msgspec.field(default_factory=dict)
    distances: tuple[Distance, ...] = ()


class DeviceEntry(Entry, frozen=True):
    """A device of an extended resource and the NUMA nodes it hangs on; none where unknown."""

    resource: str
    id: str
    nodes: IdList = ""
    healthy: bool = True


class Document(Entry, frozen=True):
    """The whole file."""

    name: str = ""
    description: str = ""
    layout: Layout | None = None
    cpus: tuple[CpuEntry, ...] = ()
    nodes: tuple[NodeEntry, ...] = ()
    asymmetric: bool = False
    """Distances there and back differ, as ACPI's SLIT allows; unless it is said, that is a mistake."""
    offline: IdList = ""
    devices: tuple[DeviceEntry, ...] = ()
