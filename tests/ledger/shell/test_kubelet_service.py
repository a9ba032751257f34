"""The Service with all kubelets: what is written, and that nothing is when nothing changed."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.kinds import ENDPOINT_SLICE, NODE, SERVICE
from bayplan.cluster.objects import Object
from bayplan.ledger.kubelet_service import NAME, NAMESPACE, addresses, plan, reconcile
from bayplan.model.meta import ObjectMeta
from bayplan.model.nodes import Node
from bayplan.model.objects import from_builtins


def node(number: int, *more: str) -> dict[str, Any]:
    addresses = [f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", *more]
    return {
        "metadata": {"name": f"n{number}"},
        "status": {
            "addresses": [
                {"type": "Hostname", "address": f"n{number}"},
                *({"type": "InternalIP", "address": each} for each in addresses),
                {"type": "ExternalIP", "address": "192.0.2.1"},
            ],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def nodes(*documents: dict[str, Any]) -> list[Node]:
    return [from_builtins(each, Node) for each in documents]


def stored(document: dict[str, Any], kind: Any = ENDPOINT_SLICE) -> Object:
    import msgspec

    return Object.from_raw(kind, msgspec.json.encode(document))


async def test_a_look_at_an_unchanged_cluster_writes_nothing() -> None:
    cluster = embedded_cluster()
    for number in range(3):
        await cluster.create(NODE, node(number, "fd00::1", "10.9.9.9"))
    assert await reconcile(cluster) == 3  # the Service, a slice a family
    revision = cluster.world.store.revision
    assert await reconcile(cluster) == 0
    assert cluster.world.store.revision == revision
    service = (await cluster.get(SERVICE, NAME, NAMESPACE)).doc()["spec"]
    assert (service["clusterIP"], [each["port"] for each in service["ports"]]) == ("None", [10250])
    page = await cluster.list(ENDPOINT_SLICE, NAMESPACE)
    found = {each.doc()["addressType"]: each.doc() for each in page.items}
    assert [each["addresses"] for each in found["IPv4"]["endpoints"]] == [["10.0.0.0"], ["10.0.0.1"], ["10.0.0.2"]]
    assert [each["addresses"] for each in found["IPv6"]["endpoints"]] == [["fd00::1"]] * 3


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        pytest.param(["fd00::0"], {"IPv6": "fd00::"}, id="written in its one form"),
        pytest.param(["FD00:0::1", "fd00::2"], {"IPv6": "fd00::1"}, id="the first of its family"),
        pytest.param(["127.0.0.1", "fe80::1", "::1", "10.0.0.9"], {"IPv4": "10.0.0.9"}, id="not those of one machine"),
        pytest.param(["::ffff:10.0.0.9", "fe80::1%eth0", "0.0.0.0", "host"], {}, id="not what a slice may not have"),
    ],
)
def test_addresses_that_a_slice_takes(told: list[str], kept: dict[str, str]) -> None:
    document = node(0)
    document["status"]["addresses"] = [{"type": "InternalIP", "address": each} for each in told]
    found = addresses(nodes(document))
    assert {family: each["n0"].address for family, each in found.items() if each} == kept


async def test_a_node_that_comes_or_goes_changes_its_slices_alone() -> None:
    cluster = embedded_cluster()
    for number in range(3):
        await cluster.create(NODE, node(number))
    await reconcile(cluster)
    await cluster.delete(NODE, "n1")
    await cluster.create(NODE, node(7))
    assert await reconcile(cluster) == 1
    (found,) = (await cluster.list(ENDPOINT_SLICE, NAMESPACE)).items
    assert sorted(each["nodeName"] for each in found.doc()["endpoints"]) == ["n0", "n2", "n7"]
    for name in ("n0", "n2", "n7"):
        await cluster.delete(NODE, name)
    assert await reconcile(cluster) == 1
    assert (await cluster.list(ENDPOINT_SLICE, NAMESPACE)).items == ()


async def test_other_ports_are_a_setting() -> None:
    cluster = embedded_cluster()
    await cluster.create(NODE, node(0))
    await reconcile(cluster)
    old = (10250, 10255, 4194, 9100)
    assert await reconcile(cluster, old) == 2
    assert await reconcile(cluster, old) == 0
    ports = (await cluster.get(SERVICE, NAME, NAMESPACE)).doc()["spec"]["ports"]
    assert [each["name"] for each in ports] == ["https-metrics", "http-metrics", "cadvisor", "port-9100"]
    assert [each["targetPort"] for each in ports] == list(old)
    (found,) = (await cluster.list(ENDPOINT_SLICE, NAMESPACE)).items
    assert [each["port"] for each in found.doc()["ports"]] == list(old)


def test_five_thousand_nodes_take_five_slices_and_one_more_node_one_write() -> None:
    many = nodes(*map(node, range(5000)))
    service, *slices = plan(many, None, ())
    assert [len((each.document or {})["endpoints"]) for each in slices] == [1000] * 5
    assert service.document is not None
    kept = [stored(each.document) for each in slices if each.document]
    there = Object(SERVICE, ObjectMeta(name=NAME), stored(service.document, SERVICE).sections, 1)
    assert plan(many, there, kept) == []
    assert len(plan([*many, *nodes(node(5000))], there, kept)) == 1
