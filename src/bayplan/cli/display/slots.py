"""Which GPU of a node a pod is drawn on.

Kubernetes counts devices and does not say which; a picture in which cells jump whenever a pod ends cannot be read. So
a pod keeps the slots it was first drawn on, and a new one takes the first free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Slots:
    """The slots of all nodes, remembered from one picture to the next."""

    def __init__(self) -> None:
        self._nodes: dict[str, list[str | None]] = {}

    def place(self, node: str, size: int, holders: Mapping[str, int]) -> Sequence[str | None]:
        """Who is on each of a node's slots, given how many each holder has. More than fit are not drawn."""
        slots = [holder if holder in holders else None for holder in self._nodes.get(node, [])][:size]
        slots += [None] * (size - len(slots))
        for holder, count in holders.items():
            missing = count - slots.count(holder)
            for index, taken in enumerate(slots):
                if missing <= 0:
                    break
                if taken is None:
                    slots[index] = holder
                    missing -= 1
        self._nodes[node] = slots
        return slots
