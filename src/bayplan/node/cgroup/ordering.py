"""In which order several values are written so that the kernel accepts each step. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

from bayplan.node.cgroup.port import Bandwidth

Step = tuple[str, int | None]
"""A field of Bandwidth and its new value."""


def bandwidth_steps(old: Bandwidth, new: Bandwidth, files: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """The order of `files` (each sets some fields of Bandwidth) that goes from old to new over valid steps only.

    Valid: the burst is within the quota, and quota/period stays between the old and the new ratio, so that no parent's
    and no child's limit is crossed on the way. Where no order is (both quota and period change, as 50/100 to 100/200),
    the empty set comes first: lift the quota, then write all; without a quota every period and burst is valid, and no
    parent refuses it.
    """
    changed = [each for each in files if any(getattr(old, field) != getattr(new, field) for field in each)]
    for order in permutations(changed):
        if _stays_valid(old, new, order):
            return list(order)
    quota = next(each for each in files if "quota_us" in each)
    return [frozenset(), *(each for each in files if each != quota), quota]


def _stays_valid(old: Bandwidth, new: Bandwidth, order: Sequence[frozenset[str]]) -> bool:
    ratios = [_ratio(old), _ratio(new)]
    state = old
    for fields in order:
        state = Bandwidth(
            **{name: getattr(new if name in fields else state, name) for name in Bandwidth.__struct_fields__}
        )
        if state.quota_us is not None and state.burst_us > state.quota_us and state != new:
            return False
        if not min(ratios) <= _ratio(state) <= max(ratios):
            return False
    return True


def _ratio(limit: Bandwidth) -> float:
    return float("inf") if limit.cpus is None else limit.cpus


def cpuset_steps(changes: Mapping[str, tuple[int, int]]) -> list[tuple[str, int]]:
    """Group -> (old, new) sets: first widen from the top to old and new together, then narrow from the bottom to new.

    So a child is within its parent at every step where it was before and will be after.
    """
    top_down = sorted(changes, key=lambda path: (path.count("/") if path != "/" else 0, path))
    widen = [(path, changes[path][0] | changes[path][1]) for path in top_down if changes[path][1] & ~changes[path][0]]
    narrow = [(path, changes[path][1]) for path in reversed(top_down) if changes[path][0] & ~changes[path][1]]
    return widen + narrow
