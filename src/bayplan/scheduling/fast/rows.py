"""The totals of one pod shape by nodes, kept, and corrected only where a node has changed.

    totals[node] = points << shift | tie-break,   below zero where the pod does not fit

The tie-break is part of the number: of nodes with the same total the one that upstream's heap would bring to the top
has the largest, so the best node is the place of the largest number.

A few nodes are corrected with the plain arithmetic of `ResourceScore.one`, many in one go with `ResourceScore.many`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.scheduling.fast.columns import Columns, Flags, Floats, Ints, Positions, Totals
    from bayplan.scheduling.fast.scoring import Asked, ResourceScore


class Width(msgspec.Struct, frozen=True):
    """How points and tie-breaks share a number: `refused`, twice, and all points besides are still below zero."""

    bits: int
    shift: int
    refused: int

    @classmethod
    def of(cls, nodes: int, most_points: int) -> Width:
        """The narrowest that will do: less memory is quicker to go through."""
        if nodes < 1 << 15 and most_points < 1 << 14:
            return cls(32, 15, -(1 << 14))
        return cls(64, 20, -(1 << 40))


class Row:
    """The totals of a shape."""

    __slots__ = ("_asked", "_base", "_columns", "_evenness", "_lacks", "_refused", "_score", "_shift", "totals")

    def __init__(
        self, columns: Columns, score: ResourceScore, width: Width, asked: Asked, base: Ints, ok: Flags
    ) -> None:
        self._columns, self._score, self._asked = columns, score, asked
        self._shift, self._refused = width.shift, width.refused << width.shift
        self._evenness = score.evenness(asked)
        self._base: Totals = np.where(ok, base + self._evenness, width.refused).astype(f"int{width.bits}")
        """The part of the totals that does not depend on what pods take."""
        self._base <<= width.shift
        self._lacks = False
        """Whether any node has ever lacked something: as long as none has, none becomes feasible or ceases to be."""
        for name, _ in asked.others:
            columns.row(name)
        columns.sync()
        self.totals = self._resources(columns.numbers)
        self.totals += self._base
        ported = [] if asked.plain else [at for at, node in enumerate(columns.nodes) if node.ports]
        self.correct({*columns.odd, *ported})

    def add(self, points: Totals) -> None:
        """Change the part that does not depend on what pods take, by points already shifted."""
        self._base += points
        self.totals += points

    def _resources(self, numbers: Floats) -> Totals:
        """The part of the totals that does depend on what pods take."""
        scores, lacking = self._score.many(self._columns, numbers, self._asked)
        found: Totals = scores.astype(self._base.dtype, copy=False)
        found <<= self._shift
        if lacking.item(lacking.argmax()):
            self._lacks = True
            np.copyto(found, self._refused, where=lacking)
        return found

    def correct(self, places: Iterable[int]) -> bool:
        """Some nodes, one by one; whether one became, or ceased to be, feasible."""
        totals, base, columns, asked = self.totals, self._base, self._columns, self._asked
        flipped = False
        for at in places:
            node = columns.nodes[at]
            if asked.plain and at not in columns.odd:
                score = self._score.one(asked, columns.facts(at), node)
            else:
                score = asked.odd(node)
            self._lacks |= score < 0
            points = self._refused if score < 0 else score - self._evenness << self._shift
            after: int = points + base.item(at)
            flipped |= (totals.item(at) < 0) != (after < 0)
            totals[at] = after
        return flipped

    def correct_many(self, at: Positions) -> bool:
        """Some nodes, none of them odd, at once; a node may be named twice."""
        columns = self._columns
        columns.sync()
        after = self._resources(columns.numbers.take(at, axis=1))
        after += self._base.take(at)
        if not self._lacks:
            self.totals[at] = after
            return False
        before = self.totals.take(at)
        self.totals[at] = after
        before ^= after
        return before.item(before.argmin()) < 0
