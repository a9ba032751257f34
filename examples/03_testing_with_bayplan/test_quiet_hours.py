"""The operator against a whole cluster, through a night that takes no time."""

from __future__ import annotations

import pytest
from quiet_hours import BEFORE, HOURS, look, patch_for

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import DEPLOYMENT, POD
from bayplan.model.clock import VirtualClock, parse_rfc3339
from bayplan.model.workloads import Deployment
from bayplan.testing import Manifest, deployment, node, until

HOUR = 3600.0
NOTEBOOKS = deployment("notebooks").replicas(3).annotated({HOURS: "22-6"})


@pytest.mark.parametrize(
    ("time", "made", "replicas"),
    [
        pytest.param("2026-01-01T21:59:59Z", NOTEBOOKS, None, id="in the evening nothing changes yet"),
        pytest.param("2026-01-01T22:00:00Z", NOTEBOOKS, 0, id="at night it is scaled to nothing"),
        pytest.param("2026-01-02T05:59:59Z", NOTEBOOKS.replicas(0), None, id="what is at nothing stays there"),
        pytest.param(
            "2026-01-02T06:00:00Z", NOTEBOOKS.replicas(0).annotated({BEFORE: "3"}), 3, id="in the morning it is back"
        ),
        pytest.param("2026-01-01T23:00:00Z", deployment("web"), None, id="who has no quiet hours is left alone"),
    ],
)
def test_what_is_to_be_changed(time: str, made: Manifest[Deployment], replicas: int | None) -> None:
    patch = patch_for(made.view(), parse_rfc3339(time))
    assert (patch or {}).get("spec") == (None if replicas is None else {"replicas": replicas})


async def test_a_night(bayplan_cluster: EmbeddedCluster, bayplan_clock: VirtualClock) -> None:
    cluster = bayplan_cluster
    await node("n1").create(cluster)
    await NOTEBOOKS.create(cluster)
    await until(cluster, NOTEBOOKS, lambda it: it.status.ready_replicas == 3)

    await cluster.advance(22 * HOUR)
    assert await look(cluster, bayplan_clock) == ["default/notebooks"]
    await cluster.advance(60)
    assert (await cluster.list(POD)).items == ()

    await cluster.advance(8 * HOUR)
    assert await look(cluster, bayplan_clock) == ["default/notebooks"]
    await until(cluster, NOTEBOOKS, lambda it: it.status.ready_replicas == 3)
    assert await look(cluster, bayplan_clock) == []


async def test_a_change_by_somebody_else_is_not_overwritten(
    bayplan_cluster: EmbeddedCluster, bayplan_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = bayplan_cluster
    await NOTEBOOKS.create(cluster)
    await cluster.advance(22 * HOUR)
    seen = await cluster.list(DEPLOYMENT)
    await cluster.scale(DEPLOYMENT, "notebooks", "default", 5)

    async def outdated(*_: object) -> object:
        return seen

    monkeypatch.setattr(cluster, "list", outdated)

    assert await look(cluster, bayplan_clock) == []
    assert (await cluster.get(DEPLOYMENT, "notebooks", "default")).doc()["spec"]["replicas"] == 5
