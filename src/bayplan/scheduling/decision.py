"""A decision: what was chosen or refused, and every reason for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from bayplan.scheduling.framework import Refusal
from bayplan.scheduling.pods import PodKey


class Outcome(StrEnum):
    """How a decision came out."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"


class TieRule(StrEnum):
    """What made the chosen node the one."""

    NOMINATED = "it was nominated for this pod, and fits"
    ONLY = "it is the only node that fits"
    BEST = "it has the best total"
    HEAP = "it shares the best total, and comes first in kube-scheduler's order of equals"
    FIRST = "it shares the best total, and comes first in the order of nodes"


class GroupedRefusals(Mapping[str, Refusal]):
    """The refusals of nodes by name, where there are only a few for thousands of nodes."""

    __slots__ = ("_answers", "_index", "_members")

    def __init__(self, index: Mapping[str, int], members: Sequence[int], answers: Sequence[Refusal]) -> None:
        """`index` has the place of each node; there `members` has the place of its answer."""
        self._index, self._members, self._answers = index, members, answers

    def __getitem__(self, name: str) -> Refusal:
        return self._answers[self._members[self._index[name]]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def tally(self) -> Iterator[tuple[Refusal, int]]:
        """Each refusal with how many nodes it is of."""
        return ((self._answers[place], number) for place, number in Counter(self._members).items())


class Victims(msgspec.Struct, frozen=True):
    """Whom a node would lose to a pod, the most important first, and how many of them a budget protects."""

    pods: tuple[PodKey, ...]
    violations: int = 0


class Preemption(msgspec.Struct, frozen=True):
    """What evicting others would do. `any_of` are the nodes among which upstream chooses at random."""

    node: str = ""
    decided_by: str = ""
    any_of: tuple[str, ...] = ()
    candidates: Mapping[str, Victims] = {}
    rejected: Mapping[str, Refusal] = {}
    message: str = ""
    """What is said when nobody can be evicted; empty when a node was found."""
    eligible: bool = True
    """False when the pod may evict nobody, or not now: then nobody was looked at, and its nomination stands."""

    @property
    def victims(self) -> Victims:
        """Those to evict."""
        return self.candidates[self.node] if self.node else Victims(())


class Decision(msgspec.Struct, frozen=True):
    """One pod, decided."""

    pod: PodKey
    outcome: Outcome
    node: str = ""
    rule: TieRule | None = None
    nodes: int = 0
    """How many nodes the cluster has."""
    start: int = 0
    """Where the search began."""
    feasible: tuple[str, ...] = ()
    """The nodes that fit, in search order, as far as the search went."""
    scores: Mapping[str, Mapping[str, int]] = {}
    """For each feasible node what each plugin gave it, weight included. A plugin that is missing was skipped."""
    scored: bool = True
    """False when upstream would not have scored, there being no choice."""
    best: tuple[str, ...] = ()
    """The nodes that share the best total, in search order."""
    any_of: tuple[str, ...] = ()
    """The nodes among which upstream chooses at random; empty where it does not."""
    refusals: Mapping[str, Refusal] = {}
    whole: Refusal | None = None
    """A refusal of all nodes at once, before any was asked; for a gated pod, of the pod."""
    restricting: tuple[str, ...] = ()
    """The plugins that named the only nodes to ask; all others are refused in nobody's name."""
    preemption: Preemption | None = None
    fit_error: str = ""
    """"0/N nodes are available: ...", without what became of preemption."""
    message: str = ""
    """The whole sentence of the event, for a pod that found no place."""

    def total(self, node: str) -> int:
        """The sum by which a feasible node is judged."""
        return sum(self.scores[node].values())

    @property
    def evaluated(self) -> int:
        """How many nodes were judged. Those that were not even asked do not count."""
        return len(self.feasible) + sum(bool(each.plugin) for each in self.refusals.values())

    @property
    def plugins(self) -> tuple[str, ...]:
        """The plugins that turned nodes away, sorted."""
        refusals = [*self.refusals.values(), *((self.whole,) if self.whole else ())]
        return tuple(sorted({*self.restricting, *(each.plugin for each in refusals if each.plugin)}))
