"""A custom kind is served as soon as it is defined: discovery, OpenAPI, tables, patches, scale."""

from __future__ import annotations

from typing import Any

import httpx2
import msgspec
import pytest

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.served.app import Api
from bayplan.model.clock import VirtualClock

from .definitions import definition, widget

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


@pytest.fixture
def client() -> httpx2.AsyncClient:
    api = Api(embedded_cluster(clock=VirtualClock()), "secret")
    transport = httpx2.ASGITransport(api)
    headers = {"authorization": "Bearer secret"}
    return httpx2.AsyncClient(transport=transport, base_url="http://cluster", headers=headers)


async def _defined(client: httpx2.AsyncClient) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await client.get(WIDGETS)).status_code == 404
    assert (await client.post(path, json=definition())).status_code == 201
    assert (await client.post(WIDGETS, json=widget(replicas=1))).status_code == 201


async def test_it_is_discovered(client: httpx2.AsyncClient) -> None:
    await _defined(client)
    listed = (await client.get("/apis/example.com/v1")).json()["resources"]
    assert [each["name"] for each in listed] == ["widgets", "widgets/status", "widgets/scale"]
    groups = (await client.get("/apis")).json()["groups"]
    assert "example.com" in [group["name"] for group in groups]
    document = (await client.get("/openapi/v3/apis/example.com/v1")).json()
    schema = document["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "version": "v1", "kind": "Widget"}]
    assert schema["properties"]["spec"]["properties"]["size"]["minimum"] == 1


async def test_its_table_has_the_columns_of_its_definition(client: httpx2.AsyncClient) -> None:
    await _defined(client)
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = (await client.get(WIDGETS, headers=accept)).json()
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size", "Ready", "Age"]
    assert table["rows"][0]["cells"] == ["a", 3, None, "0s"]


@pytest.mark.parametrize(
    ("media", "body", "status"),
    [
        pytest.param("application/merge-patch+json", {"spec": {"size": 4}}, 200, id="merged"),
        pytest.param("application/strategic-merge-patch+json", {"spec": {"size": 4}}, 415, id="not merged by strategy"),
        pytest.param("application/merge-patch+json", {"spec": {"size": 40}}, 422, id="refused"),
    ],
)
async def test_it_is_patched(client: httpx2.AsyncClient, media: str, body: Any, status: int) -> None:
    await _defined(client)
    answer = await client.patch(f"{WIDGETS}/a", content=msgspec.json.encode(body), headers={"content-type": media})
    assert answer.status_code == status


async def test_it_is_scaled(client: httpx2.AsyncClient) -> None:
    await _defined(client)
    media = {"content-type": "application/merge-patch+json"}
    answer = await client.patch(f"{WIDGETS}/a/scale", content=b'{"spec":{"replicas":7}}', headers=media)
    assert answer.json()["spec"] == {"replicas": 7}
    assert (await client.get(f"{WIDGETS}/a")).json()["spec"]["replicas"] == 7


@pytest.mark.parametrize(
    ("path", "query", "kind"),
    [
        pytest.param(WIDGETS, "", "PartialObjectMetadataList", id="a list"),
        pytest.param(f"{WIDGETS}/a", "", "PartialObjectMetadata", id="one object"),
        pytest.param(WIDGETS, "?watch=1&timeoutSeconds=0", "PartialObjectMetadata", id="a watch"),
        pytest.param(
            WIDGETS,
            "?watch=1&timeoutSeconds=0&sendInitialEvents=true&allowWatchBookmarks=true",
            "PartialObjectMetadata",
            id="a streamed list with its bookmarks",
        ),
    ],
)
async def test_it_is_shown_as_metadata_alone(client: httpx2.AsyncClient, path: str, query: str, kind: str) -> None:
    await _defined(client)
    accept = {"accept": f"application/json;as={kind};g=meta.k8s.io;v=v1"}
    answer = await client.get(path + query, headers=accept)
    documents = [msgspec.json.decode(line) for line in answer.content.splitlines()]
    shown = [each.get("object", each) for each in documents]
    assert {(each["kind"], each["apiVersion"]) for each in shown} == {(kind, "meta.k8s.io/v1")}
    assert shown[0].get("items", shown)[0]["metadata"]["name"] == "a"
    assert b'"spec"' not in answer.content
