"""Disruption budgets as preemption reads them: it may break them, and does so last.

Pods are charged in order of importance; each that drives a budget below zero violates it, on every node afresh.

Source of truth: kube-scheduler 1.36 plugins/defaultpreemption (filterPodsWithPDBViolation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.model.policies import PodDisruptionBudget
from bayplan.model.selectors import NOTHING, Selector, SelectorError
from bayplan.scheduling.pods import selector_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from bayplan.scheduling.pods import PodInfo


class _Budget(msgspec.Struct, frozen=True, eq=False):
    selector: Selector
    allowed: int
    disrupted: Collection[str]
    """Names of the pods whose eviction is granted: they cost nothing more."""

    def charges(self, pod: PodInfo) -> bool:
        if not pod.labels:  # upstream asks no selector then, not even one that wants a label to be absent
            return False
        return self.selector.matches(pod.labels) and pod.key[1] not in self.disrupted


class Budgets:
    """All budgets, their selectors compiled once for all nodes."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._of: dict[str, list[_Budget]] = {}
        for each in budgets:
            found = _Budget(_selector(each), each.status.disruptions_allowed, each.status.disrupted_pods)
            self._of.setdefault(each.metadata.namespace, []).append(found)

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Those whose eviction would break a budget if all went, in this order, and the others."""
        left: dict[_Budget, int] = {}
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            broken = False
            for budget in self._of.get(pod.namespace, ()):
                if budget.charges(pod):
                    left[budget] = left.get(budget, budget.allowed) - 1
                    broken |= left[budget] < 0
            (violating if broken else others).append(pod)
        return violating, others


def _selector(budget: PodDisruptionBudget) -> Selector:
    """What a budget covers: nothing, if its selector is empty or cannot be read."""
    try:
        return selector_of(budget.spec.selector) or NOTHING
    except SelectorError:  # the API server lets none in; upstream passes over it, too
        return NOTHING
