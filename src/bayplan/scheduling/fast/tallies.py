"""How many pods of a crowd stand in each domain of a topology, kept up to date as pods come and go.

Affinity and spreading ask nothing else: how many pods that match a term, or hold one, share a zone or host with a node.
A `Tally` is the answer as an array. Pods with the same labels and terms form a class and go into the same tallies, so a
pod that comes or goes costs one look-up and a few additions, and a new tally is filled class by class.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from bayplan.model.selectors import Selector
from bayplan.scheduling.pods import AffinityTerm

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from bayplan.scheduling.fast.columns import Columns, Flags, Group, Ints
    from bayplan.scheduling.pods import PodInfo, Wants
    from bayplan.scheduling.state import ClusterState

_NO_LABELS: dict[str, str] = {}
_NONE: dict[Holding, int] = {}
_MOST_REMEMBERED = 4096


class Role(Enum):
    """What a pod that is there holds a term as."""

    AWAY = "required anti-affinity"
    NEAR = "required affinity"
    WISH = "preferred affinity"
    DISLIKE = "preferred anti-affinity"


class Alike(msgspec.Struct, frozen=True):
    """The crowd of a spread constraint: living pods of a namespace. An empty selector selects nobody."""

    namespace: str
    selector: Selector

    def has(self, pod: PodInfo) -> bool:
        """Whether a pod is one of them."""
        return (
            pod.namespace == self.namespace
            and not pod.terminating
            and bool(self.selector)
            and self.selector.matches(pod.labels)
        )


class Matching(msgspec.Struct, frozen=True):
    """The crowd of an incoming pod's terms: those that match all of them."""

    terms: tuple[AffinityTerm, ...]

    def has(self, pod: PodInfo) -> bool:
        """Whether a pod is one of them."""
        return all(term.matches(pod, _NO_LABELS) for term in self.terms)


class Holding(msgspec.Struct, frozen=True):
    """The crowd of those who hold a term; one that holds it twice counts twice."""

    role: Role
    term: AffinityTerm


Crowd = Alike | Matching


class Tally:
    """Counts by domain. Nodes without the label, and those that are not eligible, do not count."""

    __slots__ = ("_eligible", "counts", "group", "total")

    def __init__(self, group: Group, eligible: Flags | None) -> None:
        self.group = group
        self.counts: Ints = np.zeros(len(group.values), dtype=np.int64)
        self.total = 0
        self._eligible = None if eligible is None else eligible.tolist()

    def add(self, at: int, number: int) -> None:
        """Pods came to, or left, a node."""
        code = self.group.of_node[at]
        if self.group.values[code] is not None and (self._eligible is None or self._eligible[at]):
            self.counts[code] += number
            self.total += number

    @property
    def by_node(self) -> Ints:
        """The count of each node's domain."""
        return self.counts[self.group.codes]


class _Class:
    """Pods that are all the same to every tally, and where they are."""

    __slots__ = ("example", "tallies", "where")

    def __init__(self, example: PodInfo) -> None:
        self.example = example
        self.where: dict[int, int] = {}
        self.tallies: list[tuple[Tally, int]] | None = None
        """Those that it counts in, and how often; None when that is to be found out again."""


class Tallies:
    """All tallies that some shape asks for, and those of all terms that some pod holds."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._classes: dict[Hashable, _Class] = {}
        self._asked: dict[Hashable, tuple[Crowd, Tally]] = {}
        self.held: dict[Holding, Tally] = {}
        self._spoken_of: dict[Hashable, tuple[int, tuple[int, ...]]] = {}
        """For pods of some labels how many terms there were, and which of them speak of these pods."""
        self._room = _MOST_REMEMBERED
        for at, node in enumerate(columns.nodes):
            for pod in node.pods.values():
                where = self._class_of(pod).where
                where[at] = where.get(at, 0) + 1
        for each in self._classes.values():
            self._hold(each)
        self._needed = len(self.held)

    @property
    def growth(self) -> int:
        """How many there are more than there were pods for at first; they stay when nobody asks for them any more."""
        return len(self._asked) + len(self.held) - 2 * self._needed

    def speaking_of(self, pod: PodInfo, state: ClusterState) -> tuple[int, ...]:
        """Which of the terms that pods hold speak of a pod, by number; a number is never given to another term."""
        if not self.held:
            return ()
        key = (pod.namespace, frozenset(pod.labels.items()))
        seen, found = self._spoken_of.get(key, (0, ()))
        if seen < len(self.held):
            labels = state.namespace_labels(pod.namespace)
            new = enumerate(islice(self.held, seen, None), seen)
            found += tuple(number for number, each in new if each.term.matches(pod, labels))
            if len(self._spoken_of) > _MOST_REMEMBERED:
                self._spoken_of.clear()
            self._spoken_of[key] = len(self.held), found
        return found

    def held_against(self, pod: PodInfo, state: ClusterState) -> dict[Holding, Tally]:
        """The same terms, with who holds them where."""
        numbers = set(self.speaking_of(pod, state))
        return {each: tally for number, (each, tally) in enumerate(self.held.items()) if number in numbers}

    def count(self, pod: PodInfo, at: int, number: int) -> None:
        """A pod came to (1) or left (-1) a node."""
        found = self._class_of(pod)
        if not found.where:
            self._hold(found)
        found.where[at] = found.where.get(at, 0) + number
        for tally, times in self._tallies_of(found):
            tally.add(at, number * times)

    def of(self, crowd: Crowd, topology: Group, eligible: Flags | None = None) -> Tally:
        """The tally of a crowd; it is kept from now on."""
        mask = None if eligible is None or eligible.all() else eligible
        key = (crowd, id(topology), None if mask is None else mask.tobytes())
        known = self._asked.get(key)
        if known is None:
            known = self._asked[key] = (crowd, Tally(topology, mask))
            for each in self._classes.values():
                if crowd.has(each.example):
                    each.tallies = None
                    for at, number in each.where.items():
                        known[1].add(at, number)
        return known[1]

    def _class_of(self, pod: PodInfo) -> _Class:
        wants = pod.wants if pod.wants.has_affinity else None
        key = (pod.namespace, frozenset(pod.labels.items()), wants, pod.terminating)
        found = self._classes.get(key)
        if found is None:
            if len(self._classes) >= self._room:
                self._classes = {key: each for key, each in self._classes.items() if any(each.where.values())}
                self._room = 2 * len(self._classes) + _MOST_REMEMBERED
            found = self._classes[key] = _Class(pod)
        return found

    def _hold(self, found: _Class) -> None:
        """See that the terms of a new class have their tallies, and that it counts in them."""
        for holding, times in _holdings(found.example.wants).items():
            tally = self.held.get(holding)
            if tally is None:
                tally = self.held[holding] = Tally(self._columns.topology(holding.term.topology_key), None)
            for at, number in found.where.items():
                tally.add(at, number * times)

    def _tallies_of(self, found: _Class) -> Iterable[tuple[Tally, int]]:
        if found.tallies is None:
            pod = found.example
            found.tallies = [(tally, 1) for crowd, tally in self._asked.values() if crowd.has(pod)]
            found.tallies += [(self.held[holding], times) for holding, times in _holdings(pod.wants).items()]
        return found.tallies


def _holdings(wants: Wants) -> Mapping[Holding, int]:
    if not wants.has_affinity:
        return _NONE
    held = (
        (Role.AWAY, wants.anti_affinity),
        (Role.NEAR, wants.affinity),
        (Role.WISH, wants.preferred_affinity),
        (Role.DISLIKE, wants.preferred_anti_affinity),
    )
    return Counter(Holding(role, term) for role, terms in held for term in terms)
