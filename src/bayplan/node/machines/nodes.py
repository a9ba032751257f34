"""The NUMA nodes of a machine file: their memory and how far they are from one another."""

from __future__ import annotations

from bayplan.model.faults import Faults
from bayplan.node.machine import NumaNode
from bayplan.node.machines.document import Amount, Document, Layout, NodeEntry
from bayplan.node.machines.faults import whole

_LOCAL = 10  # LOCAL_DISTANCE of Linux
_KIB = 1024
_LEAST = _KIB * _KIB


def listed_nodes(read: Document, faults: Faults) -> tuple[NumaNode, ...]:
    """The nodes under `nodes`, ascending."""
    layout = read.layout
    if read.nodes and layout and (layout.memory_per_node is not None or layout.hugepages_per_node or layout.distances):
        faults.add("layout", "memoryPerNode, hugepagesPerNode and distances do not go with nodes, which say it all")
    if not read.nodes and (layout is None or layout.memory_per_node is None):
        faults.add("nodes" if layout is None else "layout.memoryPerNode", "expected the memory of the NUMA nodes")
    ids = sorted(entry.id for entry in read.nodes)
    found: dict[int, NumaNode] = {}
    for index, entry in enumerate(read.nodes):
        path = f"nodes[{index}]"
        if entry.id in found:
            faults.add(f"{path}.id", f"node {entry.id} is listed already")
        if len(entry.distances) != (len(ids) if any(each.distances for each in read.nodes) else 0):
            expected = f"expected {len(ids)}, one for each node in ascending order, not {len(entry.distances)}"
            faults.add(f"{path}.distances", expected)
        memory = _memory(entry.memory, f"{path}.memory", faults)
        pages = _pages(entry.hugepages, f"{path}.hugepages", faults)
        found[entry.id] = NumaNode(entry.id, memory, pages, dict(zip(ids, entry.distances, strict=False)))
    if not faults.found:
        _check_distances(read.nodes, found, read.asymmetric, faults)
    return tuple(found[each] for each in sorted(found))


def _memory(written: Amount, path: str, faults: Faults) -> int:
    """Bytes; a node may have none, but a few of them are a unit that was forgotten."""
    found = whole(written, path, faults)
    if 0 < found < _LEAST:
        faults.add(path, f'expected 1Mi or more, or 0, not "{written}": without a unit it is bytes; 64Gi is usual')
    return found


def _pages(written: dict[str, int], path: str, faults: Faults) -> dict[int, int]:
    found = {}
    for size, count in written.items():
        bytes_ = whole(size, f"{path}.{size}", faults)
        if bytes_ % _KIB or not bytes_:
            faults.add(f"{path}.{size}", "expected a page size such as 2Mi")
        found[bytes_ // _KIB] = count
    return dict(sorted(found.items()))


def _check_distances(
    entries: tuple[NodeEntry, ...], found: dict[int, NumaNode], asymmetric: bool, faults: Faults
) -> None:
    """As Linux checks a SLIT: 10 to itself, more to others; and the same there and back unless it is meant."""
    for index, entry in enumerate(entries):
        for other, far in found[entry.id].distances.items():
            path = f"nodes[{index}].distances"
            back = found[other].distances[entry.id]
            if other == entry.id and far != _LOCAL:
                faults.add(path, f"expected {_LOCAL} to itself, not {far}")
            elif other != entry.id and far <= _LOCAL:
                faults.add(path, f"expected more than {_LOCAL} to node {other}, not {far}")
            elif far != back and other < entry.id and not asymmetric:
                faults.add(path, f"{far} to node {other}, and {back} back; if it is so, say asymmetric: true")


def laid_out_nodes(layout: Layout, faults: Faults) -> tuple[NumaNode, ...]:
    """The nodes of a regular machine."""
    memory = _memory(layout.memory_per_node or 0, "layout.memoryPerNode", faults)
    pages = _pages(layout.hugepages_per_node, "layout.hugepagesPerNode", faults)
    many = layout.sockets * layout.nodes_per_socket
    far = {(True, True): _LOCAL, (False, True): _distance(layout, "same_socket", faults)}
    far[False, False] = _distance(layout, "other_socket", faults)
    known = many == 1 or layout.distances is not None

    def distance(one: int, other: int) -> int:
        return far[one == other, one // layout.nodes_per_socket == other // layout.nodes_per_socket]

    return tuple(
        NumaNode(one, memory, pages, {other: distance(one, other) for other in range(many)} if known else {})
        for one in range(many)
    )


def _distance(layout: Layout, which: str, faults: Faults) -> int:
    """A distance that is needed, or that is written all the same."""
    needed = layout.nodes_per_socket > 1 if which == "same_socket" else layout.sockets > 1
    path = "layout.distances.sameSocket" if which == "same_socket" else "layout.distances.otherSocket"
    if layout.distances is None:
        return _LOCAL
    far: int | None = getattr(layout.distances, which)
    if far is None and needed:
        faults.add(path, "expected a distance")
    elif far is not None and far <= _LOCAL:
        faults.add(path, f"expected more than {_LOCAL}, not {far}")
    return far or _LOCAL
