"""Totals of pod shapes by nodes: one row a shape, kept, and corrected only where a node has changed.

    totals[shape, node] = points << shift | tie-break,   below zero where the pod does not fit

The tie-break is part of the number: of nodes with the same total the one that upstream's heap would bring to the top
has the largest, so the best node is the place of the largest number. What of the points is due to resources is kept
besides; a node that changed gets the difference.

One place changes with the plain arithmetic of `ResourceScore.one`; a row, or a block of all rows by changed nodes, in
one go with `ResourceScore.many`. The block is laid out nodes by rows, since rows are many. Numbers are as narrow as
points and nodes allow: the block touches a cache line in every row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bayplan.scheduling.fast.columns import Columns, Flags, Floats, Ints, Positions
    from bayplan.scheduling.fast.scoring import Asked, ResourceScore

    Totals = NDArray[np.signedinteger[Any]]

_FIRST_ROWS = 16
_NARROW_POINTS, _NARROW_SHIFT = 14, 15
_WIDE_POINTS, _WIDE_SHIFT = 40, 20


class Table:
    """The rows of all shapes that are kept."""

    def __init__(self, columns: Columns, score: ResourceScore) -> None:
        self._columns = columns
        self._score = score
        self._nodes = len(columns.nodes)
        narrow = score.most < 1 << _NARROW_POINTS and self._nodes < 1 << _NARROW_SHIFT
        self.shift = _NARROW_SHIFT if narrow else _WIDE_SHIFT
        self._refused = -(1 << (_NARROW_POINTS if narrow else _WIDE_POINTS))
        """In place of points where the pod does not fit; twice of it, and all points besides, is still below zero."""
        self.totals: Totals = np.zeros((0, self._nodes), dtype=np.int32 if narrow else np.int64)
        self._scores: Totals = np.zeros((0, self._nodes), dtype=np.int16 if narrow else np.int64)
        self._nonzero: Floats = np.zeros((2, 0))
        self._requested: Floats = np.zeros((2, 0))
        self._balanced: Floats = np.zeros(0)
        self._asked: Floats = np.zeros((0, 0))
        self._spare: list[int] = []
        self._high = 0
        """Rows that were ever in use."""

    def once(self, asked: Asked, base: Ints, ok: Flags) -> Totals:
        """The totals of a shape that has no row. `base` are points that do not depend on what pods take."""
        return self._sum(self._all_nodes(asked), base, ok)

    def add(self, asked: Asked, base: Ints, ok: Flags) -> int:
        """A row for a shape, filled in for all nodes."""
        if not self._spare:
            self._grow()
        row = self._spare.pop()
        self._high = max(self._high, row + 1)
        self._nonzero[:, row] = asked.nonzero
        self._requested[:, row] = asked.requested
        self._balanced[row] = asked.balanced
        scores = self._all_nodes(asked)
        missing = len(self._columns.resources) - len(self._asked)
        if missing:
            self._asked = np.concatenate((self._asked, np.full((missing, len(self.totals)), -np.inf)))
        self._asked[:, row] = -np.inf
        for name, amount in asked.amounts.items():
            self._asked[self._columns.resources[name], row] = amount
        self._scores[row] = scores
        self.totals[row] = self._sum(scores, base, ok)
        return row

    def remove(self, row: int) -> None:
        """The row may be used again."""
        self._spare.append(row)

    def _grow(self) -> None:
        had = len(self.totals)
        more = max(_FIRST_ROWS, had)
        self.totals, self._scores = (
            np.concatenate((each, np.zeros((more, self._nodes), dtype=each.dtype)))
            for each in (self.totals, self._scores)
        )
        self._nonzero, self._requested = (
            np.concatenate((each, np.zeros((2, more))), axis=1) for each in (self._nonzero, self._requested)
        )
        self._balanced = np.concatenate((self._balanced, np.zeros(more)))
        self._asked = np.concatenate((self._asked, np.full((len(self._asked), more), -np.inf)), axis=1)
        self._spare.extend(range(had + more - 1, had - 1, -1))

    def _sum(self, scores: Floats, base: Ints, ok: Flags) -> Totals:
        totals = np.where(ok, base, self._refused)
        totals += scores.astype(np.int64)
        totals <<= self.shift
        return totals.astype(self.totals.dtype)

    def _all_nodes(self, asked: Asked) -> Floats:
        columns = self._columns
        rows = [(columns.row(name), amount) for name, amount in asked.amounts.items()]
        columns.sync()
        nonzero, requested = (np.array([[cpu], [memory]]) for cpu, memory in (asked.nonzero, asked.requested))
        scores = self._score.many(
            columns.capacity, columns.nonzero, columns.requested, columns.balance, nonzero, requested, asked.balanced
        )
        for row, amount in rows:
            np.copyto(scores, self._refused, where=columns.free[row] < amount)
        ported = [] if asked.plain else [at for at, node in enumerate(columns.nodes) if node.ports]
        for at in {*columns.odd, *ported}:
            scores[at] = self._score_of(asked, at)
        return scores

    def _score_of(self, asked: Asked, at: int) -> int:
        columns = self._columns
        node = columns.nodes[at]
        plain = asked.plain and at not in columns.odd
        score = self._score.one(asked, columns.facts(at), node) if plain else asked.odd(node)
        return self._refused if score < 0 else score

    def correct(self, row: int, asked: Asked, at: int) -> bool:
        """One node of one row; whether it became, or ceased to be, feasible."""
        score = self._score_of(asked, at)
        difference = score - self._scores.item(row, at)
        if not difference:
            return False
        before: int = self.totals.item(row, at)
        after = before + (difference << self.shift)
        self._scores[row, at] = score
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
            np.copyto(scores, self._refused, where=columns.free[columns.resources[name], at] < amount)
        after = scores.astype(self.totals.dtype)
        after -= self._scores[row, at]
        after <<= self.shift
        before = self.totals[row, at]
        after += before
        self._scores[row, at] = scores
        self.totals[row, at] = after
        return bool(((before ^ after) < 0).any())

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
        np.copyto(scores, self._refused, where=lacking)
        new = scores.T
        kept, totals = self._scores[:high], self.totals[:high]
        before = totals.take(at, axis=1)
        after = new.astype(totals.dtype)
        after -= kept.take(at, axis=1)
        after <<= self.shift
        after += before
        kept[:, at] = new
        totals[:, at] = after
        before ^= after
        return np.flatnonzero(before.min(axis=1) < 0) if before.min() < 0 else _NO_ROWS


_NO_ROWS: Positions = np.zeros(0, dtype=np.intp)
