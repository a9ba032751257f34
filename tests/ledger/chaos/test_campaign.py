"""A short campaign on the real control plane; the long one is `make chaos`."""

from __future__ import annotations

import os

import pytest

from bayplan.cluster.lab.toolchain import LabUnavailableError
from tests.ledger.chaos.campaign import Plan, run, table

_TIMES = {"ledger killed": 3, "connections cut": 1, "etcd compacted (410)": 1, "database away": 1}


@pytest.mark.slow
@pytest.mark.skipif("BAYPLAN_CHAOS" not in os.environ, reason="ends are told late on a busy machine: see make chaos")
def test_the_database_tells_what_etcd_held() -> None:
    try:
        result = run(Plan(times=_TIMES, outage=2.0, rest=0.5, pace=0.05, workloads=1))
    except LabUnavailableError as error:
        pytest.skip(f"no lab here: {error.message}")
    assert result.verdict.states > 100, "a campaign without load says nothing"
    assert result.verdict.sound, "\n".join([table(result), *result.verdict.findings])
    assert result.caught_up is not None
