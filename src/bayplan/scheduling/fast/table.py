"""Totals of pod shapes by nodes: one row a shape, kept, and corrected only where a node has changed.

    totals[shape, node] = static score + resource score,   far below zero where the pod does not fit

One place changes with the plain arithmetic of `ResourceScore.one`; a block of shapes by changed nodes, or a new row, in
one go with `ResourceScore.many`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.model.resources import PODS
from bayplan.scheduling.fast.scoring import REFUSED

if TYPE_CHECKING:
    from bayplan.scheduling.fast.columns import Columns, Flags, Floats, Positions, Totals
    from bayplan.scheduling.fast.scoring import Asked, ResourceScore

_FIRST_ROWS = 16


class Table:
    """The rows of all shapes that are kept."""

    def __init__(self, columns: Columns, score: ResourceScore) -> None:
        self._columns = columns
        self._score = score
        self._nodes = len(columns.nodes)
        self.totals: Totals = np.zeros((0, self._nodes), dtype=np.int32)
        self.base: Totals = np.zeros((0, self._nodes), dtype=np.int32)
        """The part of the totals that does not depend on what pods take."""
        self._nonzero: Floats = np.zeros((2, 0))
        self._requested: Floats = np.zeros((2, 0))
        self._balanced: Floats = np.zeros(0)
        self._asked: Floats = np.zeros((0, 0))
        self._spare: list[int] = []

    def add(self, asked: Asked, base: Totals) -> int:
        """A row for a new shape, filled in for all nodes."""
        if not self._spare:
            self._grow()
        row = self._spare.pop()
        self._nonzero[:, row] = asked.nonzero
        self._requested[:, row] = asked.requested
        self._balanced[row] = asked.balanced
        needs = {self._columns.row(name): amount for name, amount in asked.amounts}
        missing = len(self._columns.resources) - len(self._asked)
        if missing:
            more = np.full((missing, len(self.totals)), -np.inf)
            self._asked = np.concatenate((self._asked, more))
        self._asked[:, row] = -np.inf
        self._asked[self._columns.row(PODS), row] = 1
        for at, amount in needs.items():
            self._asked[at, row] = amount
        self.base[row] = base
        self.fill(row, asked)
        return row

    def remove(self, row: int) -> None:
        """The row may be used again."""
        self._spare.append(row)

    def _grow(self) -> None:
        had = len(self.totals)
        more = max(_FIRST_ROWS, had)
        blank = np.zeros((more, self._nodes), dtype=np.int32)
        self.totals, self.base = np.concatenate((self.totals, blank)), np.concatenate((self.base, blank))
        self._nonzero, self._requested = (
            np.concatenate((each, np.zeros((2, more))), axis=1) for each in (self._nonzero, self._requested)
        )
        self._balanced = np.concatenate((self._balanced, np.zeros(more)))
        self._asked = np.concatenate((self._asked, np.full((len(self._asked), more), -np.inf)), axis=1)
        self._spare.extend(range(had + more - 1, had - 1, -1))

    def fill(self, row: int, asked: Asked) -> None:
        """All nodes of one row."""
        columns = self._columns
        columns.sync()
        scores = self._score.many(
            columns.capacity, columns.nonzero, columns.requested, columns.balance,
            self._nonzero[:, row, None], self._requested[:, row, None], self._balanced[row, None],
        )  # fmt: skip
        for name, amount in ((PODS, 1), *asked.amounts):
            scores[columns.free[columns.resources[name]] < amount] = REFUSED
        np.add(scores, self.base[row], out=self.totals[row], casting="unsafe")
        ported = [] if asked.plain else [at for at, node in enumerate(columns.nodes) if node.ports]
        for at in {*columns.odd, *ported}:
            self.correct(row, asked, at)

    def correct(self, row: int, asked: Asked, at: int) -> bool:
        """One node of one row; whether it became, or ceased to be, feasible."""
        node = self._columns.nodes[at]
        plain = asked.plain and at not in self._columns.odd
        score = self._score.one(asked, node) if plain else asked.odd(node)
        totals = self.totals[row]
        before: int = totals.item(at)
        after: int = score + self.base.item(row, at)
        totals[at] = after
        return (before < 0) != (after < 0)

    def update(self, rows: Positions, at: Positions) -> Flags:
        """Some nodes, none of them odd, of some rows; for each row whether a node became or ceased to be feasible."""
        columns = self._columns
        columns.sync()
        scores = self._score.many(
            columns.capacity[:, None, at], columns.nonzero[:, None, at], columns.requested[:, None, at],
            columns.balance[at], self._nonzero[:, rows, None], self._requested[:, rows, None],
            self._balanced[rows, None],
        )  # fmt: skip
        lacking = (columns.free[:, None, at] < self._asked[:, rows, None]).any(axis=0)
        scores[lacking] = REFUSED
        where = (rows[:, None], at)
        before = self.totals[where]
        after = scores.astype(np.int32)
        after += self.base[where]
        self.totals[where] = after
        before ^= after
        flips: Flags = np.any(before < 0, axis=1)
        return flips
