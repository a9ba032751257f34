"""Among nodes with the same total, kube-scheduler takes the one that its heap brings to the top.

Upstream turns the feasible nodes, in search order, into a binary heap (Go's heap.Init) and takes the first element. An
element rises only over a smaller parent, and the left child goes before an equal right one. So of the best elements
that one wins which comes first in preorder of the tree in which the children of position i are 2i+1 and 2i+2: a node,
then all below its left child, then all below its right child. How many elements there are does not matter.

Source of truth: kube-scheduler 1.36 schedule_one.go (newSortedNodeScores) and Go's container/heap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_DEPTH = 32
"""No tree is deeper: keys stay below 2**38 and fit in 64 bits."""


def preorder_key(position: int) -> int:
    """A number by which positions sort in preorder.

    The binary digits of position + 1, after the leading one, are the way down to it: 0 is left, 1 is right. Ways sort
    like words: by their digits from the first on, and a way before all that lead further.
    """
    digits = (position + 1).bit_length() - 1
    way = (position + 1 << _DEPTH - digits) - (1 << _DEPTH)
    return way << 6 | digits


def heap_winner(totals: Sequence[int]) -> int:
    """The position of the total that wins; there must be one."""
    best = max(totals)
    return min((position for position, total in enumerate(totals) if total == best), key=preorder_key)
