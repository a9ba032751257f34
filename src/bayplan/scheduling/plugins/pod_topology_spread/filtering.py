"""Hard constraints: no domain may hold more of the pod's like than the emptiest one and the allowed skew.

Source of truth: kube-scheduler 1.36 podtopologyspread/filtering.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from bayplan.scheduling.framework import NodeFilter, Refusal
from bayplan.scheduling.plugins.pod_topology_spread.constraints import (
    NAME,
    Constraint,
    Eligibility,
    have_all_keys,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import NodeState

UNEVEN = Refusal(NAME, ("node(s) didn't match pod topology spread constraints",))
NO_LABEL = Refusal(
    NAME, ("node(s) didn't match pod topology spread constraints (missing required label)",), hopeless=True
)
NO_DOMAIN = 2**31 - 1
"""The least count where there is no domain: any node passes."""


class Spread:
    """One constraint and how many pods count in each domain."""

    __slots__ = ("_least", "constraint", "counts", "own")

    def __init__(self, constraint: Constraint, counts: dict[str, int], own: int) -> None:
        self.constraint = constraint
        self.counts = counts
        self.own = own
        """1 if the pod itself will count, else 0."""
        self._least: int | None = None

    def add(self, domain: str, number: int) -> None:
        """More, or fewer, pods in a domain."""
        self.counts[domain] = self.counts.get(domain, 0) + number
        self._least = None

    @property
    def least(self) -> int:
        """What the emptiest domain holds: 0 as long as there are fewer domains than asked for."""
        if self._least is None:
            enough = len(self.counts) >= self.constraint.min_domains
            self._least = min(self.counts.values(), default=NO_DOMAIN) if enough else 0
        return self._least

    def is_too_uneven(self, domain: str) -> bool:
        """Whether the pod in that domain would be one too many."""
        return self.counts.get(domain, 0) + self.own - self.least > self.constraint.max_skew

    def copy(self) -> Spread:
        """One to suppose things on."""
        return Spread(self.constraint, self.counts.copy(), self.own)


class SpreadFilter(NodeFilter):
    """A pod's hard constraints."""

    __slots__ = ("_eligibility", "_namespace", "_spreads")

    def __init__(self, namespace: str, spreads: tuple[Spread, ...], eligibility: Eligibility) -> None:
        self._namespace = namespace
        self._spreads = spreads
        self._eligibility = eligibility

    @classmethod
    def of(cls, pod: PodInfo, constraints: tuple[Constraint, ...], nodes: Iterable[NodeState]) -> Self:
        """Count once over all nodes; those that lack one of the labels are no part of any topology."""
        spreads = tuple(Spread(each, {}, int(each.selector.matches(pod.labels))) for each in constraints)
        eligibility = Eligibility(pod)
        for node in nodes:
            if have_all_keys(node.labels, constraints):
                for spread in spreads:
                    if eligibility.admits(node, spread.constraint):
                        domain = node.labels[spread.constraint.topology_key]
                        spread.add(domain, spread.constraint.count(node, pod.namespace))
        return cls(pod.namespace, spreads, eligibility)

    def check(self, node: NodeState) -> Refusal | None:
        """Every constraint in turn."""
        for spread in self._spreads:
            domain = node.labels.get(spread.constraint.topology_key)
            if domain is None:
                return NO_LABEL
            if spread.is_too_uneven(domain):
                return UNEVEN
        return None

    def copy(self) -> Self:
        """With counts of its own."""
        return type(self)(self._namespace, tuple(each.copy() for each in self._spreads), self._eligibility)

    def add(self, pod: PodInfo, node: NodeState) -> None:
        """Count a pod in."""
        self._update(pod, node, 1)

    def remove(self, pod: PodInfo, node: NodeState) -> None:
        """Count a pod out."""
        self._update(pod, node, -1)

    def _update(self, pod: PodInfo, node: NodeState, number: int) -> None:
        """As upstream: unlike in the first count, terminating pods and empty selectors count, too."""
        if pod.namespace != self._namespace:
            return
        if any(each.constraint.topology_key not in node.labels for each in self._spreads):
            return
        for spread in self._spreads:
            constraint = spread.constraint
            if constraint.selector.matches(pod.labels) and self._eligibility.admits(node, constraint):
                spread.add(node.labels[constraint.topology_key], number)
