"""Wished against chosen: how often the scheduler agrees, why not, and what following it costs.

The cost of a move is how much higher the pressure is on the node that the scheduler chose than it would have been on
the wished one, each with the VM on it, CPU and memory whichever is worse. Below zero the scheduler knew better. A VM
that was refused stays where it was, and costs nothing but the wish.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable

import msgspec

from bayplan.simulate.vms.reasons import Why


class MoveResult(msgspec.Struct, frozen=True):
    """What came of a wish. True if the VM moved."""

    wished: str
    chosen: str
    """Where the VM is now."""
    why: Why = Why()
    """Why not as wished."""
    direct: bool = False
    """Moved on our word alone: there was no API to ask."""
    vm: str = ""
    source: str = ""
    seconds: float = 0.0
    """That the migration takes."""
    cost: float = 0.0
    moved: bool = False

    def __bool__(self) -> bool:
        return self.moved


class Agreement(msgspec.Struct, frozen=True):
    """The account of a run. `moves` is the sum of all others."""

    moves: int = 0
    followed: int = 0
    """To where it was wished."""
    elsewhere: int = 0
    refused: int = 0
    direct: int = 0
    reasons: dict[str, int] = {}
    """Of moves that did not go as wished: by plugin, or what else it was."""
    mean_cost: float = 0.0
    """Of moves that went elsewhere."""
    worst_cost: float = 0.0
    placed: int = 0
    placed_as_wished: int = 0
    """Of VMs placed when the scenario was loaded."""

    @property
    def share(self) -> float:
        """Of the moves that the scheduler decided on, how many went as wished; 1 where there were none."""
        asked = self.moves - self.direct
        return self.followed / asked if asked else 1.0

    def text(self) -> str:
        """For people."""
        lines = [
            f"{self.followed} of {self.moves - self.direct} moves went as wished ({self.share:.0%}); "
            f"{self.elsewhere} elsewhere, {self.refused} refused, {self.direct} direct"
        ]
        lines += [f"  {number:>4}  {name}" for name, number in sorted(self.reasons.items(), key=_most_first)]
        if self.elsewhere:
            lines.append(
                f"following the scheduler: pressure {self.mean_cost:+.3f} on average, {self.worst_cost:+.3f} at worst"
            )
        if self.placed:
            lines.append(f"{self.placed_as_wished} of {self.placed} VMs were placed where the scenario had them")
        return "\n".join(lines)


def _most_first(reason: tuple[str, int]) -> tuple[int, str]:
    return -reason[1], reason[0]


def agreement(results: Iterable[MoveResult], placed: int = 0, as_wished: int = 0) -> Agreement:
    """Add up."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    costs = []
    for each in results:
        what = _outcome(each)
        counts[what] += 1
        if what in ("elsewhere", "refused"):
            reasons[each.why.plugin or "other"] += 1
        if what == "elsewhere":
            costs.append(each.cost)
    return Agreement(
        moves=counts.total(),
        followed=counts["followed"],
        elsewhere=counts["elsewhere"],
        refused=counts["refused"],
        direct=counts["direct"],
        reasons=dict(reasons),
        mean_cost=statistics.fmean(costs) if costs else 0.0,
        worst_cost=max(costs, default=0.0),
        placed=placed,
        placed_as_wished=as_wished,
    )


def _outcome(each: MoveResult) -> str:
    if each.direct:
        return "direct"
    if not each:
        return "refused"
    return "followed" if each.chosen == each.wished else "elsewhere"
