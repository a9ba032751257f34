"""For tests, ours and yours: builders of objects, a clock that obeys, a whole cluster that needs nothing.

    from bayplan.testing import deployment, fake_cluster, node, until

    cluster = fake_cluster(node("gpu-1").offers(cpu=64, memory="512Gi", gpu=8))
    web = deployment("web").replicas(3).requests(cpu="500m")
    await web.create(cluster)
    await until(cluster, web, lambda it: it.status.ready_replicas == 3)

The embedded engine is the fake of the port `Cluster`: what a test sees is what `bayplan up` runs. Two pytest fixtures,
`bayplan_cluster` and `bayplan_clock`, are found by pytest on its own; so this module imports nothing until asked.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayplan.model.clock import VirtualClock
    from bayplan.testing.builder import Manifest, manifest
    from bayplan.testing.fake import fake_cluster, until, until_gone
    from bayplan.testing.nodes import node
    from bayplan.testing.pods import pod
    from bayplan.testing.policies import config_map, disruption_budget, namespace, priority_class, quota
    from bayplan.testing.workloads import daemon_set, deployment, job, replica_set, stateful_set

__all__ = [
    "Manifest",
    "VirtualClock",
    "config_map",
    "daemon_set",
    "deployment",
    "disruption_budget",
    "fake_cluster",
    "job",
    "manifest",
    "namespace",
    "node",
    "pod",
    "priority_class",
    "quota",
    "replica_set",
    "stateful_set",
    "until",
    "until_gone",
]

_MODULES = ("builder", "nodes", "pods", "policies", "workloads", "fake")


def __getattr__(name: str) -> Any:
    """A name of the kit, imported when it is first used."""
    if name in __all__:
        for module in _MODULES:
            found = vars(importlib.import_module(f"{__name__}.{module}")).get(name)
            if found is not None:
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
