"""Short campaigns on the real control plane; the long ones are `make chaos`. How quickly the ledger recovers is not
judged here: whoever runs the tests may have other work for the machine."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.cluster.lab.toolchain import LabUnavailableError
from tests.ledger.chaos.campaign import Plan, run
from tests.ledger.chaos.faults import KILLED
from tests.ledger.chaos.tables import table
from tests.ledger.databases import CannotHaveError

_LIGHT = Plan(times={}, outage=2.0, rest=0.5, pace=0.05, workloads=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database", "faults"),
    [
        pytest.param(
            "sqlite",
            (KILLED, "API server restarted", "etcd compacted (410)", "stalled, then cut"),
            id="SQLite, while the ledger, the API server and connections break",
        ),
        pytest.param(
            "postgresql",
            (KILLED, "database away", "database away, killed"),
            id="PostgreSQL, while the ledger and the database break",
        ),
    ],
)
def test_the_database_tells_what_etcd_held(database: str, faults: tuple[str, ...]) -> None:
    try:
        result = run(msgspec.structs.replace(_LIGHT, times=dict.fromkeys(faults, 1), database=database))
    except LabUnavailableError as error:
        pytest.skip(f"no lab here: {error.message}")
    except CannotHaveError as error:
        pytest.skip(str(error))
    told = "\n".join([table(result), *result.verdict.findings])
    assert result.verdict.states > 100, "a campaign without load says nothing"
    assert result.verdict.sound, told
    assert result.caught_up is not None, told
