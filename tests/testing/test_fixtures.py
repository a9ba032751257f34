"""The pytest fixtures: there without an import, and unnoticed by those who do not use them."""

from __future__ import annotations

import json
import subprocess
import sys

import bayplan.testing
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.model.clock import SECOND, VirtualClock
from bayplan.testing import node, pod, until

_IMPORTED = """
import json, sys
import pytest
before = set(sys.modules)
import bayplan.testing.fixtures
print(json.dumps(sorted(set(sys.modules) - before)))
"""


async def test_the_cluster_goes_by_the_clock(bayplan_cluster: EmbeddedCluster, bayplan_clock: VirtualClock) -> None:
    before = bayplan_clock.now()
    await node("n1").create(bayplan_cluster)
    await pod("x").create(bayplan_cluster)
    await until(bayplan_cluster, pod("x"), lambda it: it.status.phase == "Running")
    assert before < bayplan_clock.now() < before + 60 * SECOND


def test_each_test_has_a_cluster_of_its_own(bayplan_cluster: EmbeddedCluster) -> None:
    assert bayplan_cluster.world.store.count(pod().kind) == 0


def test_pytest_imports_next_to_nothing_for_them() -> None:
    told = subprocess.run([sys.executable, "-c", _IMPORTED], check=True, capture_output=True, text=True).stdout
    assert json.loads(told) == ["bayplan", "bayplan.testing", "bayplan.testing.fixtures"]


def test_every_name_of_the_kit_is_there() -> None:
    assert [name for name in bayplan.testing.__all__ if getattr(bayplan.testing, name, None) is None] == []
