"""Which GPU of a node a pod is drawn on.

Kubernetes counts devices and does not say which; a picture in which cells jump whenever a pod ends cannot be read. So
a pod keeps the slots it was first drawn on, and a new one takes the first free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Slots:
    """The slots of all nodes, remembered from one picture to the next."""

    def __init__(self) -> None:
        self._nodes: dict[str, Sequence[str | None]] = {}

    def place(self, node: str, size: int, holders: Mapping[str, int]) -> Sequence[str | None]:
        """Who is on each of a node's slots, given how many each holder has. More than fit are not drawn."""
        left = dict(holders)
        slots: list[str | None] = [None] * size
        for index, holder in enumerate(self._nodes.get(node, ())[:size]):
            if holder is not None and left.get(holder, 0) > 0:
                slots[index] = holder
                left[holder] -= 1
        new = (holder for holder, count in left.items() for _ in range(count))
        slots = [next(new, None) if holder is None else holder for holder in slots]
        self._nodes[node] = slots
        return slots
