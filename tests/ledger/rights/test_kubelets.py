"""The Service with all kubelets on a real API server: it takes what is planned, and stores nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.cluster.kinds import ENDPOINT_SLICE, NODE, SERVICE
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.objects import Object
from bayplan.ledger.kubelet_service import _SELECTOR, NAME, NAMESPACE, _apply, plan, reconcile
from bayplan.model.nodes import Node
from bayplan.model.objects import from_builtins
from tests.ledger.process.running import Process, happens
from tests.ledger.rights.accounts import made
from tests.ledger.shell.test_kubelet_service import node

pytestmark = pytest.mark.slow

OLD = (10250, 10255, 4194)


async def _slices(cluster: LiveCluster) -> list[Object]:
    return list((await cluster.list(ENDPOINT_SLICE, NAMESPACE, labels=_SELECTOR)).items)


async def _versions(cluster: LiveCluster) -> set[tuple[str, int]]:
    service = await cluster.get(SERVICE, NAME, NAMESPACE)
    return {(each.name, each.version) for each in (service, *await _slices(cluster))}


async def test_five_thousand_nodes_with_old_ports_are_taken_as_they_are(lab: Lab) -> None:
    many = [from_builtins(node(number, f"fd00::{number:x}"), Node) for number in range(5000)]
    async with LiveCluster.find(lab.kubeconfig) as cluster:
        await reconcile(cluster)
        for _ in range(2):  # the second time nothing is left to do
            service = await cluster.get(SERVICE, NAME, NAMESPACE)
            writes = plan(many, service, await _slices(cluster), OLD)
            for write in writes:
                await _apply(cluster, write)
        assert writes == []
        found = [each.doc() for each in await _slices(cluster)]
        for family in ("IPv4", "IPv6"):
            sizes = [len(each["endpoints"]) for each in found if each["addressType"] == family]
            assert (sum(sizes), max(sizes)) == (5000, 1000)
        assert {port["port"] for each in found for port in each["ports"]} == set(OLD)
        await reconcile(cluster)


async def test_a_running_ledger_keeps_the_ports_that_are_set_and_a_second_look_writes_nothing(
    lab: Lab, tmp_path: Path
) -> None:
    async with LiveCluster.find(lab.kubeconfig) as cluster:
        await made(cluster, NODE, node(77, "fd00::4d", "10.9.9.9", "fd00::99"))
        words = ("ledger", "run", "--database", f"sqlite:///{tmp_path}/ledger.db", "--kubeconfig", lab.kubeconfig)
        settings = {"election": "off", "kubelet_service": "on", "kubelet_ports": "10250,10255,4194"}
        async with Process(tmp_path, *words, **settings) as process:

            async def kept() -> bool:
                ports = (await cluster.get(SERVICE, NAME, NAMESPACE)).doc()["spec"]["ports"]
                slices = [each.doc() for each in await _slices(cluster)]
                ends = [each for slice_ in slices for each in slice_["endpoints"] if each["nodeName"] == "n77"]
                addresses = sorted(each["addresses"] for each in ends)
                return [each["port"] for each in ports] == list(OLD) and addresses == [["10.0.0.77"], ["fd00::4d"]]

            await happens(kept)
            await process.end()
        before = await _versions(cluster)
        assert await reconcile(cluster, OLD) == 0
        assert await _versions(cluster) == before
