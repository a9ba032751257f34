"""`bayplan ledger manifest` applied to a real API server, and a ledger that is nobody but the account it makes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bayplan.cluster.kinds import DEPLOYMENT, ENDPOINT_SLICE, LEASE, POD, SERVICE
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.ledger.finalizers import FINALIZER
from bayplan.ledger.kubelet_service import NAME as KUBELETS
from bayplan.ledger.manifest import NAME
from bayplan.ledger.questions.doctor.checks import FOLLOWED
from bayplan.ledger.rows import GpuPod, GpuWorkload, StreamPosition
from bayplan.model.errors import NotFound
from tests.ledger.process.running import Process, happens, soon, stored
from tests.ledger.rights.accounts import as_account, bayplan, kubectl, namespace_made
from tests.ledger.rights.scenes import STRANGER, TRAINER, deployment, kinds_made, node_made, owned_pod

pytestmark = pytest.mark.slow

PLACE, WORK = "deployed", "deployed-work"
FLAGS = ("-n", PLACE, "--finalizers", "--kubelet-service", "--owners", f"{TRAINER.group}/{TRAINER.plural}")


@asynccontextmanager
async def _deployed(lab: Lab, folder: Path) -> AsyncIterator[tuple[LiveCluster, Path]]:
    """The manifest applied to a cluster with work; the administrator, and the kubeconfig of the ledger's account."""
    async with LiveCluster.find(lab.kubeconfig) as admin:
        for each in (PLACE, WORK):
            await namespace_made(admin, each)
        kubectl(lab, "label", "namespace", PLACE, "pod-security.kubernetes.io/enforce=restricted")
        await kinds_made(admin)
        await node_made(admin, "deployed")
        kubectl(lab, "apply", "-f", "-", given=bayplan(folder, "ledger", "manifest", *FLAGS).stdout)
        await happens(lambda: _admitted(admin))
        yield admin, as_account(lab, folder, PLACE, NAME)


async def _admitted(admin: LiveCluster) -> bool:
    """Whether both replicas were taken, in a namespace that takes none with more privileges than they need."""
    return bool((await admin.get(DEPLOYMENT, NAME, PLACE)).doc().get("status", {}).get("replicas") == 2)


async def _seen(database: str, name: str) -> bool:
    """Whether a workload's own object was seen, by its name."""
    rows: list[GpuWorkload] = await stored(database, GpuWorkload)
    return any(row.name == name and row.resource_version for row in rows)


async def _gone(admin: LiveCluster, name: str) -> bool:
    try:
        await admin.get(POD, name, WORK)
    except NotFound:
        return True
    return False


def _refusals(process: Process) -> list[dict[str, Any]]:
    return [line for line in process.lines() if "forbidden" in str(line).lower() or "cannot" in str(line).lower()]


async def test_the_manifest_is_enough_and_a_kind_without_right_costs_its_listener_alone(
    lab: Lab, tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path}/ledger.db"
    async with _deployed(lab, tmp_path) as (admin, kubeconfig):
        words = ("ledger", "run", "--database", database, "--kubeconfig", kubeconfig)
        settings = {"finalizers": "on", "kubelet_service": "on", "lease_namespace": PLACE}
        async with Process(tmp_path, *words, **settings) as process:
            await _everything_works(admin, process, database)
            assert _refusals(process) == []

            await owned_pod(admin, STRANGER, "stranger", WORK)
            await soon(lambda: bool(process.told("listener failed")), "a listener that fails", process.output)
            (failed,) = process.told("listener failed")
            assert failed["kind"] == STRANGER.qualified
            assert 'cannot watch resource "strangers"' in failed["why"]
            itself = ("--kubeconfig", kubeconfig, "--set", f"ledger.lease_namespace={PLACE}")
            somebody = ("--kubeconfig", lab.kubeconfig, "--account", f"{PLACE}/{NAME}")
            for who in (itself, somebody):
                told = bayplan(tmp_path, "ledger", "doctor", "-o", "json", "--database", database, *who)
                items = [each for each in json.loads(told.stdout)["items"] if each["code"] == "LD004"]
                assert [each["subject"] for each in items] == [
                    f"{verb} {STRANGER.resource}" for verb in ("list", "watch")
                ]
                assert {each["cure"].partition(" ...")[0] for each in items} == {
                    f"bayplan ledger manifest --owners {STRANGER.group}/{STRANGER.plural}"
                }

            await owned_pod(admin, TRAINER, "later", WORK)  # it goes on
            await happens(lambda: _seen(database, "later"))
            assert await process.end() == 0
        for each in await stored(database, GpuPod):
            assert each.owner_uid
        await admin.delete(DEPLOYMENT, "web", WORK, propagation="Background")
        bayplan(tmp_path, "ledger", "uninstall", "--kubeconfig", lab.kubeconfig)


async def _everything_works(admin: LiveCluster, process: Process, database: str) -> None:
    """Pods, owners built in and custom, election, finalizers, claims and slices, the kubelets' Service."""
    await process.tells("recording started")
    assert (await admin.get(LEASE, "bayplan-ledger", PLACE)).doc()["spec"]["holderIdentity"]
    await deployment(admin, "web", WORK)
    await owned_pod(admin, TRAINER, "trainer", WORK)
    await happens(lambda: _seen(database, "web"))
    await happens(lambda: _seen(database, "trainer"))

    async def marked() -> bool:
        return FINALIZER in (await admin.get(POD, "trainer", WORK)).meta.finalizers

    await happens(marked)
    await admin.delete(POD, "trainer", WORK, grace=0)
    await happens(lambda: _gone(admin, "trainer"))

    async def served() -> bool:
        await admin.get(SERVICE, KUBELETS, "kube-system")
        slices = [each for each in (await admin.list(ENDPOINT_SLICE, "kube-system")).items if KUBELETS in each.name]
        return {each.doc()["addressType"] for each in slices} == {"IPv4", "IPv6"}

    await happens(served)

    async def heard() -> bool:
        kinds = {each.kind for each in await stored(database, StreamPosition)}
        return kinds >= FOLLOWED | {"deployments.apps", "replicasets.apps", TRAINER.resource}

    await happens(heard)
