"""For whom a pod was preempted: the Event names the pod, or has its uid."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.ledger.questions.gone import why_gone
from bayplan.ledger.rows import Disruption
from tests.ledger.books import CLUSTER, hour, pod, written


def _told(rule: str, message: str, for_pod: str = "") -> Disruption:
    return Disruption(cluster=CLUSTER, pod_uid="fill", rule=rule, at=hour(1), message=message, for_pod=for_pod)


@pytest.mark.parametrize(
    ("told", "whom"),
    [
        pytest.param(_told("Preempted", "Preempted by pod boss-uid on node n", "lab/boss"), "lab/boss", id="its name"),
        pytest.param(_told("Preempted", "Preempted by pod boss-uid on node n"), "default/boss", id="its uid"),
        pytest.param(_told("Preempted", "Preempted by pod other-uid on node n"), "", id="a uid that nobody knows"),
        pytest.param(_told("Preempted", "Preempted by a pod on node n"), "", id="nothing"),
    ],
)
async def test_who_got_its_place(tmp_path: Path, told: Disruption, whom: str) -> None:
    condition = _told("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod")
    rows = [pod("fill", gone_at=hour(2)), pod("boss", "default", uid="boss-uid"), condition, told]
    store = await written(str(tmp_path / "ledger.db"), [*rows])
    why = await why_gone(store, pod("fill", gone_at=hour(2)))
    assert ("to make room for" in why.sentence) == bool(whom)
    assert f"to make room for {whom} at" in why.sentence or not whom
    assert {each.for_pod for each in why.disruptions} == {"", whom}
    await store.close()
