"""Taints keep pods off a node; tolerations let them on all the same.

Source of truth: k8s.io/api 0.36 core/v1 toleration.go. The numeric operators Lt and Gt are behind an alpha gate
upstream that is off by default, so they tolerate nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.model.meta import Wire

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"
HARD_EFFECTS = frozenset({NO_SCHEDULE, NO_EXECUTE})
SOFT_EFFECTS = frozenset({PREFER_NO_SCHEDULE})


class Taint(Wire, frozen=True):
    """A mark on a node that repels pods. `str()` is kubectl's form, `key=value:effect`."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        effect = f":{self.effect}" if self.effect else ""
        return f"{self.key}{value}{effect}"


class Toleration(Wire, frozen=True):
    """What a pod puts up with. An empty key with Exists stands for every key, an empty effect for every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Whether this toleration covers that taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.value == taint.value


def first_untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str]
) -> Taint | None:
    """The first taint with one of these effects that no toleration covers."""
    for taint in taints:
        if taint.effect in effects and not any(one.tolerates(taint) for one in tolerations):
            return taint
    return None


def count_untolerated(taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str]) -> int:
    """How many taints with one of these effects no toleration covers."""
    return sum(taint.effect in effects and not any(one.tolerates(taint) for one in tolerations) for taint in taints)


def seconds_until_eviction(taints: Iterable[Taint], tolerations: Collection[Toleration]) -> int | None:
    """How long a pod may stay under these NoExecute taints: 0 is not at all, None is for ever.

    For each taint the first toleration that covers it counts, and the shortest of their times wins.
    """
    shortest: int | None = None
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        covering = next((one for one in tolerations if one.tolerates(taint)), None)
        if covering is None:
            return 0
        if covering.toleration_seconds is not None:
            limit = max(covering.toleration_seconds, 0)
            shortest = limit if shortest is None else min(shortest, limit)
    return shortest
