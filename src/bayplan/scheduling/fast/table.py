"""Totals of pod shapes by nodes: one row a shape, kept, and corrected only where a node has changed.

    totals[shape, node] = (static score + resource score) * UNIT + tie-break,   below zero where the pod does not fit

The tie-break is part of the number: of nodes with the same total the one that upstream's heap would bring to the top
has the largest, so the best node is the place of the largest number.

One place changes with the plain arithmetic of `ResourceScore.one`; a row, or a block of all rows by changed nodes, in
one go with `ResourceScore.many`. The block is laid out nodes by rows, since rows are many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayplan.scheduling.fast.scoring import REFUSED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bayplan.scheduling.fast.columns import Columns, Flags, Floats, Ints, Positions
    from bayplan.scheduling.fast.scoring import Asked, ResourceScore

SHIFT = 20
UNIT = 1 << SHIFT
"""What one point is worth; below it is room to tell a million nodes apart."""
_FIRST_ROWS = 16


class Table:
    """The rows of all shapes that are kept."""

    def __init__(self, columns: Columns, score: ResourceScore) -> None:
        self._columns = columns
        self._score = score
        self._nodes = len(columns.nodes)
        self.totals: Ints = np.zeros((0, self._nodes), dtype=np.int64)
        self.base: Ints = np.zeros((0, self._nodes), dtype=np.int64)
        """The part of the totals that does not depend on what pods take."""
        self._nonzero: Floats = np.zeros((2, 0))
        self._requested: Floats = np.zeros((2, 0))
        self._balanced: Floats = np.zeros(0)
        self._asked: Floats = np.zeros((0, 0))
        self._spare: list[int] = []
        self._high = 0
        """Rows that were ever in use."""

    def once(self, asked: Asked, base: Ints) -> Ints:
        """The totals of a shape that has no row."""
        nonzero, requested = (np.array([[cpu], [memory]]) for cpu, memory in (asked.nonzero, asked.requested))
        return self._all_nodes(asked, base << SHIFT, nonzero, requested)

    def add(self, asked: Asked, base: Ints) -> int:
        """A row for a shape, filled in for all nodes. `base` is in points."""
        if not self._spare:
            self._grow()
        row = self._spare.pop()
        self._high = max(self._high, row + 1)
        self._nonzero[:, row] = asked.nonzero
        self._requested[:, row] = asked.requested
        self._balanced[row] = asked.balanced
        needs = {self._columns.row(name): amount for name, amount in asked.amounts.items()}
        missing = len(self._columns.resources) - len(self._asked)
        if missing:
            self._asked = np.concatenate((self._asked, np.full((missing, len(self.totals)), -np.inf)))
        self._asked[:, row] = -np.inf
        for at, amount in needs.items():
            self._asked[at, row] = amount
        self.base[row] = base << SHIFT
        self.totals[row] = self._all_nodes(
            asked, self.base[row], self._nonzero[:, row, None], self._requested[:, row, None]
        )
        return row

    def remove(self, row: int) -> None:
        """The row may be used again."""
        self._spare.append(row)

    def _grow(self) -> None:
        had = len(self.totals)
        more = max(_FIRST_ROWS, had)
        blank = np.zeros((more, self._nodes), dtype=np.int64)
        self.totals, self.base = np.concatenate((self.totals, blank)), np.concatenate((self.base, blank))
        self._nonzero, self._requested = (
            np.concatenate((each, np.zeros((2, more))), axis=1) for each in (self._nonzero, self._requested)
        )
        self._balanced = np.concatenate((self._balanced, np.zeros(more)))
        self._asked = np.concatenate((self._asked, np.full((len(self._asked), more), -np.inf)), axis=1)
        self._spare.extend(range(had + more - 1, had - 1, -1))

    def _all_nodes(self, asked: Asked, base: Ints, nonzero: NDArray[Any], requested: NDArray[Any]) -> Ints:
        columns = self._columns
        for name in asked.amounts:
            columns.row(name)
        columns.sync()
        scores = self._score.many(
            columns.capacity, columns.nonzero, columns.requested, columns.balance, nonzero, requested, asked.balanced
        )
        for name, amount in asked.amounts.items():
            np.copyto(scores, REFUSED, where=columns.free[columns.resources[name]] < amount)
        scores *= UNIT
        scores += base
        totals = scores.astype(np.int64)
        ported = [] if asked.plain else [at for at, node in enumerate(columns.nodes) if node.ports]
        for at in {*columns.odd, *ported}:
            totals[at] = self._score_of(asked, at) * UNIT + int(base[at])
        return totals

    def _score_of(self, asked: Asked, at: int) -> int:
        columns = self._columns
        node = columns.nodes[at]
        if asked.plain and at not in columns.odd:
            return self._score.one(asked, columns.facts(at), node)
        return asked.odd(node)

    def correct(self, row: int, asked: Asked, at: int) -> bool:
        """One node of one row; whether it became, or ceased to be, feasible."""
        before: int = self.totals.item(row, at)
        after: int = self._score_of(asked, at) * UNIT + self.base.item(row, at)
        self.totals[row, at] = after
        return (before < 0) != (after < 0)

    def correct_row(self, row: int, asked: Asked, at: Positions) -> bool:
        """Some nodes, none of them odd, of one row; whether one became, or ceased to be, feasible."""
        columns = self._columns
        columns.sync()
        scores = self._score.many(
            columns.capacity[:, at], columns.nonzero[:, at], columns.requested[:, at], columns.balance[at],
            self._nonzero[:, row, None], self._requested[:, row, None], self._balanced[row],
        )  # fmt: skip
        for name, amount in asked.amounts.items():
            np.copyto(scores, REFUSED, where=columns.free[columns.resources[name], at] < amount)
        scores *= UNIT
        scores += self.base[row, at]
        after = scores.astype(np.int64)
        flips = (self.totals[row, at] ^ after) < 0
        self.totals[row, at] = after
        return bool(flips.any())

    def correct_all(self, at: Positions) -> Positions:
        """Some nodes, none of them odd, of all rows; the rows where one became, or ceased to be, feasible."""
        columns, high = self._columns, self._high
        columns.sync()
        scores = self._score.many(
            columns.capacity[:, at, None], columns.nonzero[:, at, None], columns.requested[:, at, None],
            columns.balance[at, None], self._nonzero[:, None, :high], self._requested[:, None, :high],
            self._balanced[:high],
        )  # fmt: skip
        free, asked = columns.free, self._asked
        lacking: Flags = free[0, at, None] < asked[0, :high]
        for row in range(1, len(asked)):
            lacking |= free[row, at, None] < asked[row, :high]
        np.copyto(scores, REFUSED, where=lacking)
        scores *= UNIT
        rows = self.totals[:high]
        after: Ints = scores.T.astype(np.int64)
        after += self.base[:high].take(at, axis=1)
        flips = rows.take(at, axis=1)
        flips ^= after
        rows[:, at] = after
        return np.flatnonzero((flips < 0).any(axis=1)) if flips.min() < 0 else _NO_ROWS


_NO_ROWS = np.zeros(0, dtype=np.intp)
