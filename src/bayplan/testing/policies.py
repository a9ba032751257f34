"""What surrounds pods: namespaces, quotas, disruption budgets, priorities, configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from bayplan.cluster.kinds import CONFIG_MAP, NAMESPACE, POD_DISRUPTION_BUDGET, PRIORITY_CLASS, RESOURCE_QUOTA
from bayplan.model.policies import ConfigMap, Namespace, PodDisruptionBudget, PriorityClass, ResourceQuota
from bayplan.testing.builder import GPU, Manifest


class QuotaManifest(Manifest[ResourceQuota]):
    """A ResourceQuota."""

    def allows(self, others: Mapping[str, str] | None = None, /, *, gpu: int | None = None, **hard: int | str) -> Self:
        """At most so much: `allows(pods=10, cpu="32", gpu=8)`."""
        given = {**(others or {}), **hard, **({} if gpu is None else {f"requests.{GPU}": gpu})}
        return self._adding({name: str(amount) for name, amount in given.items()}, "spec.hard")


class BudgetManifest(Manifest[PodDisruptionBudget]):
    """A PodDisruptionBudget."""

    def covering(self, **labels: str) -> Self:
        """The pods with these labels."""
        return self._adding(labels, "spec.selector.matchLabels")

    def at_least(self, available: int | str) -> Self:
        """So many of them stay."""
        return self.having("spec.minAvailable", available)

    def at_most(self, unavailable: int | str) -> Self:
        """So many of them may be missing."""
        return self.having("spec.maxUnavailable", unavailable)


def namespace(name: str = "namespace") -> Manifest[Namespace]:
    """A namespace."""
    return Manifest[Namespace].named(NAMESPACE, name)


def quota(name: str = "quota", namespace: str = "default") -> QuotaManifest:
    """A ResourceQuota that limits nothing yet."""
    return QuotaManifest.named(RESOURCE_QUOTA, name, namespace, spec={"hard": {}})


def disruption_budget(name: str = "budget", namespace: str = "default") -> BudgetManifest:
    """A PodDisruptionBudget that covers nothing yet."""
    return BudgetManifest.named(POD_DISRUPTION_BUDGET, name, namespace, spec={})


def priority_class(name: str, value: int) -> Manifest[PriorityClass]:
    """A PriorityClass."""
    return Manifest[PriorityClass].named(PRIORITY_CLASS, name, value=value)


def config_map(name: str = "config", namespace: str = "default", /, **data: str) -> Manifest[ConfigMap]:
    """A ConfigMap with this data."""
    return Manifest[ConfigMap].named(CONFIG_MAP, name, namespace, data=data)
