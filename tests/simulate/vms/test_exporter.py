"""The exporter's routes, and the command that serves them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from bayplan.simulate.vms import VM, Exporter, ExporterState, Node, PodManager
from tests.simulate.vms.conftest import Flaky

NAMES = [
    "node_cpu_pressure_psi",
    "node_cpu_usage_ratio",
    "node_memory_pressure_psi",
    "node_memory_usage_ratio",
    "node_vm_count",
]


@pytest.fixture
async def http(flaky: Flaky) -> AsyncIterator[httpx2.AsyncClient]:
    with PodManager(backend=flaky, probe_every=60) as pods:
        state = ExporterState(pods)
        state.load_scenario([Node("n-1", [VM("vm-1", 0.2, 0.3)]), Node("n-2")])
        transport = httpx2.ASGITransport(Exporter(state).app())
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            yield client


async def test_metrics_have_the_names_that_dashboards_know(http: httpx2.AsyncClient) -> None:
    text = (await http.get("/metrics")).text

    assert sorted(re.findall(r"# TYPE (\w+) gauge", text)) == NAMES
    samples = dict(re.findall(r'^(\w+{node="[\w-]+"}) (\S+)$', text, re.M))
    assert len(samples) == 10
    assert sorted(value for name, value in samples.items() if name.startswith("node_vm_count")) == ["0.0", "1.0"]
    assert "0.3" in [value for name, value in samples.items() if name.startswith("node_memory_usage")]


async def test_health(http: httpx2.AsyncClient, flaky: Flaky) -> None:
    assert (await http.get("/health")).json() == {
        "status": "ok",
        "engine": "embedded",
        "reachable": True,
        "vms": {"scheduled": 1, "pending": 0, "missing": 0},
        "bind_to_observed_p99_seconds": 0.0,
    }
    flaky.gone = True
    assert (await http.post("/refresh")).status_code == 503
    assert (await http.get("/health")).json()["status"] == "degraded"
    assert (await http.get("/metrics")).status_code == 200


async def test_feedback_says_what_came_of_each_wish(http: httpx2.AsyncClient) -> None:
    scenario = (await http.get("/scenario")).json()
    source = next(node["name"] for node in scenario["nodes"] if node["vms"])
    target = next(node["name"] for node in scenario["nodes"] if not node["vms"])
    wish = {"vm_id": "vm-1", "from_node": source, "to_node": target}

    answer = (await http.post("/feedback", json={"migrations": [wish]})).json()

    assert answer["success"] is True
    assert answer["results"] == [
        {
            "vm_id": "vm-1",
            "from_node": source,
            "wished": target,
            "chosen": target,
            "success": True,
            "direct": False,
            "why": "",
            "plugin": "",
            "seconds": pytest.approx(35.828, abs=0.01),
        }
    ]
    assert (await http.get("/feedback")).json()["followed"] == 1


async def test_a_scenario_is_loaded_and_read_back(http: httpx2.AsyncClient) -> None:
    nodes = [{"name": "m-1", "cores": 8, "vms": [{"id": "a", "cpu_consumption": 0.1, "memory_consumption": 0.1}]}]

    loaded = await http.post("/scenario", json={"nodes": nodes})

    assert loaded.json() == {"vms": {"scheduled": 1, "pending": 0, "missing": 0}}
    found = (await http.get("/nodes/m-1")).json()
    assert (found["cores"], found["vms"][0]["scheduled_node"]) == (8, "m-1")
    assert found["metrics"]["node_cpu_usage_ratio"] == pytest.approx(0.4)  # 3.2 of 8 cores


async def test_vms_without_a_place_are_told(http: httpx2.AsyncClient) -> None:
    vms = [{"id": f"v{n}", "cpu_consumption": 0.1, "memory_consumption": 0.6} for n in range(2)]

    assert (await http.post("/scenario", json={"nodes": [{"name": "m", "vms": vms}]})).json()["vms"]["pending"] == 1

    found = (await http.get("/scenario")).json()
    assert [len(found["nodes"][0]["vms"]), len(found["pending"])] == [1, 1]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error"),
    [
        pytest.param("GET", "/nodes/x", None, 404, 'there is no node "x"', id="an unknown node"),
        pytest.param("POST", "/scenario", "{", 400, "scenario:2: not YAML", id="no JSON"),
        pytest.param("POST", "/scenario", '{"nodes": [{}]}', 400, "scenario:1: nodes[0]: object missing", id="no name"),
        pytest.param("POST", "/feedback", '{"moves": []}', 400, "Object", id="an unknown key"),
        pytest.param(
            "POST",
            "/feedback",
            '{"migrations": [{"vm_id": "x", "from_node": "n-1", "to_node": "n-2"}]}',
            404,
            'there is no VM "x"',
            id="an unknown VM",
        ),
    ],
)
async def test_bad_input_is_refused(
    http: httpx2.AsyncClient, method: str, path: str, body: str | None, status: int, error: str
) -> None:
    answer = await http.request(method, path, content=body, headers={"content-type": "application/json"})

    assert (answer.status_code, answer.json()["error"][: len(error)]) == (status, error)


async def test_other_sites_are_kept_out(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/metrics", headers={"host": "evil.example"})).status_code == 400
    form = await http.post("/scenario", content="{}", headers={"content-type": "text/plain"})
    assert form.status_code == 400


async def test_a_scrape_asks_no_api(http: httpx2.AsyncClient, flaky: Flaky) -> None:
    flaky.gone = True  # whoever asks it now, fails
    for path in ("/metrics", "/scenario", "/nodes/n-1", "/feedback", "/health"):
        assert (await http.get(path)).status_code == 200


def test_the_document_of_a_scenario_can_be_loaded_again() -> None:
    from bayplan.simulate.vms.scenario_file import parse_vms, written

    nodes = [Node("n-1", [VM("vm", 0.1, 0.2, labels={"a": "b"})], labels={"zone": "a"})]
    document: dict[str, Any] = written(nodes)
    assert document.pop("pending") == []
    assert parse_vms("again", json.dumps(document)) == nodes
