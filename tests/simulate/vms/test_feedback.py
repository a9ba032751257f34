"""Wishes that come together: all of them are looked at before the first is tried, and none loses its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from bayplan.model.errors import Forbidden
from bayplan.simulate.vms import VM, Exporter, ExporterState, Migration, Node, PodManager
from bayplan.testing import fake_cluster


@pytest.fixture
def state() -> Any:
    with PodManager(backend=fake_cluster()) as pods:
        found = ExporterState(pods)
        found.load_scenario([Node("n-1", [VM("vm-1", 0.2, 0.3), VM("vm-2", 0.2, 0.3)]), Node("n-2"), Node("n-3")])
        yield found


@pytest.fixture
async def http(state: ExporterState) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(Exporter(state).app())
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        yield client


def wish(state: ExporterState, vm: str) -> dict[str, str]:
    """A wish that can be followed: onto the node that is empty."""
    empty = next(name for name, node in state.nodes.items() if not node.vms)
    return {"vm_id": vm, "from_node": state.vms[vm].scheduled_node, "to_node": empty}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        pytest.param({"vm_id": "x"}, 'there is no VM "x"', id="an unknown VM"),
        pytest.param({"to_node": "x"}, 'there is no node "x"', id="an unknown node"),
        pytest.param({"from_node": "x"}, 'there is no node "x"', id="an unknown source"),
    ],
)
async def test_where_one_wish_makes_no_sense_none_is_tried(
    http: httpx2.AsyncClient, state: ExporterState, change: dict[str, str], error: str
) -> None:
    good = wish(state, "vm-1")
    before = {name: vm.scheduled_node for name, vm in state.vms.items()}

    answer = await http.post("/feedback", json={"migrations": [good, good | change]})

    assert (answer.status_code, answer.json()["error"]) == (404, error)
    assert {name: vm.scheduled_node for name, vm in state.vms.items()} == before
    assert (await http.get("/feedback")).json()["moves"] == 0


async def test_what_comes_in_between_is_the_answer_to_one_wish_only(
    http: httpx2.AsyncClient, state: ExporterState, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = wish(state, "vm-1"), wish(state, "vm-2")
    whole = state.pod_manager.migrate

    def refused(vm: VM, *given: Any, **how: Any) -> Migration:
        if vm.id == "vm-2":
            raise Forbidden("exceeded quota")
        return whole(vm, *given, **how)

    monkeypatch.setattr(state.pod_manager, "migrate", refused)
    answer = (await http.post("/feedback", json={"migrations": [first, second]})).json()

    assert answer["success"] is False
    assert [(each["vm_id"], each["success"], each["why"]) for each in answer["results"]] == [
        ("vm-1", True, ""),
        ("vm-2", False, "exceeded quota"),
    ]
    assert answer["results"][1]["chosen"] == second["from_node"]
