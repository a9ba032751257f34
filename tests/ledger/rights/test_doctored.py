"""What the doctor is for, provoked on real parts: a ledger on a lab is killed, robbed of rights and gone behind."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from bayplan.cluster.kinds import NODE, POD, SERVICE_ACCOUNT
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.port import PatchType
from bayplan.ledger.discovering import LiveKinds
from bayplan.ledger.finalizers import FINALIZER
from bayplan.ledger.manifest import roles
from bayplan.ledger.questions.asking import SILENCE, open_ledger
from bayplan.ledger.questions.doctor.examine import Account, Examination, examine
from bayplan.ledger.rights import OWNERS, Owner, needs
from bayplan.ledger.rows import GpuPod, GpuWorkload, StreamPosition
from bayplan.ledger.store.reading import Readable
from bayplan.ledger.store.sql import SqlStore
from bayplan.model.clock import SECOND, Instant, SystemClock
from bayplan.service.settings import LedgerSettings
from tests.ledger.databases import Postgres, server
from tests.ledger.process.running import Process, happens, soon, stored
from tests.ledger.rights.accounts import RBAC, as_account, bayplan, made, namespace_made
from tests.ledger.rights.scenes import STRANGER, TRAINER, kinds_made, node_made, owned_pod
from tests.ledger.shell.scenes import gpu_pod

pytestmark = pytest.mark.slow

PLACE, ACCOUNT = "doctored", "doctored-ledger"
SETTINGS = LedgerSettings(finalizers="on", election="off")
_LATER = 120 * SECOND
"""Beyond what the doctor puts up with as mere delay."""


class Scene:
    """A lab, an account with some rights on it, and the database of a ledger that is that account."""

    def __init__(self, lab: Lab, admin: LiveCluster, folder: Path) -> None:
        self.lab, self.admin, self.folder = lab, admin, folder
        self.database = f"sqlite:///{folder}/ledger.db"

    async def prepare(self) -> None:
        await namespace_made(self.admin, PLACE)
        await kinds_made(self.admin)
        await node_made(self.admin, "doctored")
        await made(self.admin, SERVICE_ACCOUNT, {"metadata": {"name": ACCOUNT}}, PLACE)
        await self.grant(*OWNERS, Owner(TRAINER.group, TRAINER.plural))

    async def grant(self, *owners: Owner) -> None:
        for each in roles(needs(SETTINGS, owners), PLACE, ACCOUNT):
            kind, name = RBAC[each["kind"]], each["metadata"]["name"]
            await made(self.admin, kind, each)
            if "rules" in each:
                await self.admin.patch(kind, {"rules": each["rules"]}, name, type=PatchType.MERGE)

    def ledger(self) -> Process:
        kubeconfig = as_account(self.lab, self.folder, PLACE, ACCOUNT)
        words = ("ledger", "run", "--database", self.database, "--kubeconfig", kubeconfig)
        return Process(self.folder, *words, finalizers="on", election="off")

    async def findings(self, later: int = 0, silence: int = SILENCE) -> set[tuple[str, str]]:
        """Codes and subjects of what the doctor finds in this place."""
        opened: list[SqlStore] = []
        kinds = LiveKinds(self.admin.access, SystemClock())

        async def opening() -> Readable:
            opened.append(await open_ledger(self.database))
            return opened[0]

        now = Instant(SystemClock().now() + later)
        wanted = Examination(
            now=now, silence=silence, find=kinds.find, settings=SETTINGS, account=Account(PLACE, ACCOUNT), pause=0
        )
        try:
            report = await examine(opening, self.admin, wanted)
        finally:
            await kinds.close()
            for store in opened:
                await store.close()
        assert report.skipped == ()
        found = {(each.code, each.subject.rpartition(": ")[2]) for each in report.findings}
        return {(code, subject) for code, subject in found if "/" not in subject or subject.startswith(PLACE)}

    async def has_finalizer(self, *names: str) -> bool:
        pods = [await self.admin.get(POD, name, PLACE) for name in names]
        return all(FINALIZER in pod.meta.finalizers for pod in pods)


DENIED = {("LD004", f"{verb} {STRANGER.resource}") for verb in ("list", "watch", "get", "patch")}


async def test_what_becomes_of_a_ledger_is_found(lab: Lab, tmp_path: Path) -> None:
    async with LiveCluster.find(lab.kubeconfig) as admin:
        scene = Scene(lab, admin, tmp_path)
        await scene.prepare()
        await _begun(scene)
        await _deaf(scene)
        await _behind(scene)
        bayplan(tmp_path, "ledger", "uninstall", "--kubeconfig", lab.kubeconfig)


async def _begun(scene: Scene) -> None:
    """A ledger at work: all that is wrong is that it may not see one kind of owners."""
    async with scene.ledger() as process:
        await process.tells("recording started")
        for name in ("steady", "lost", "stuck"):
            await scene.admin.create(POD, gpu_pod(name), PLACE)
        await owned_pod(scene.admin, TRAINER, "trainer", PLACE)
        await owned_pod(scene.admin, STRANGER, "stranger", PLACE)
        await happens(lambda: scene.has_finalizer("steady", "lost", "stuck", "trainer", "stranger"))

        async def seen() -> bool:
            rows: list[GpuWorkload] = await stored(scene.database, GpuWorkload)
            return any(row.name == "trainer" and row.resource_version for row in rows)

        await happens(seen)
        await happens(lambda: _finds(scene, DENIED))
        blind = {("LD005", STRANGER.resource), ("LD007", f"{PLACE}/stranger")}
        assert await scene.findings(_LATER) == DENIED | blind
        await process.end(signal.SIGKILL)


async def _finds(scene: Scene, wanted: set[tuple[str, str]]) -> bool:
    return await scene.findings() == wanted


async def _deaf(scene: Scene) -> None:
    """A ledger that is started again without a right that it had: one listener is dead, the others live."""
    await scene.grant(*OWNERS)
    denied = DENIED | {("LD004", f"{verb} {TRAINER.resource}") for verb in ("list", "watch", "get", "patch")}
    await happens(lambda: _finds(scene, denied))
    clock = SystemClock()
    killed = clock.now()
    async with scene.ledger() as process:

        def failed() -> set[str]:
            return {each["kind"] for each in process.told("listener failed")}

        await soon(lambda: failed() == {TRAINER.qualified, STRANGER.qualified}, "their listeners' ends", process.output)
        await scene.admin.create(POD, gpu_pod("poke"), PLACE)
        await scene.admin.patch(NODE, {"metadata": {"labels": {"poke": "1"}}}, "doctored", type=PatchType.MERGE)

        async def heard() -> bool:
            rows: list[StreamPosition] = await stored(scene.database, StreamPosition)
            return {"pods", "nodes", "events"} <= {row.kind for row in rows if row.at > killed}

        await happens(heard)
        found = await scene.findings(silence=clock.now() - killed)
        assert {each for each in found if each[0] == "LD006"} == {("LD006", TRAINER.resource)}
        await happens(lambda: scene.has_finalizer("poke"))
        await process.end(signal.SIGKILL)


async def _behind(scene: Scene) -> None:
    """While the ledger is dead, pods come, go, change, and cannot go."""
    admin = scene.admin
    await admin.patch(POD, {"metadata": {"finalizers": None}}, "lost", PLACE, type=PatchType.MERGE)
    for name in ("lost", "stuck"):
        await admin.delete(POD, name, PLACE, grace=0)
    await admin.create(POD, gpu_pod("unheard"), PLACE)
    changed = {"status": {"phase": "Failed"}}
    await admin.patch(POD, changed, "steady", PLACE, subresource="status", type=PatchType.MERGE)
    rows: list[GpuPod] = await stored(scene.database, GpuPod)
    assert {"lost", "stuck", "steady"} <= {row.name for row in rows if row.gone_at is None}
    found = await scene.findings(_LATER)
    assert found >= {
        ("LD008", f"{PLACE}/Pod/stuck"),
        ("LD009", f"{PLACE}/lost"),
        ("LD010", f"{PLACE}/unheard"),
        ("LD011", f"{PLACE}/steady"),
    }
    dead = {("LD006", kind) for kind in ("pods", "nodes", "events", TRAINER.resource)}
    assert await scene.findings(SILENCE + _LATER) >= dead


def test_a_database_that_is_stopped(tmp_path: Path) -> None:
    running = server(Postgres)
    url = running.create("doctored")
    assert bayplan(tmp_path, "ledger", "migrate", "--database", url).returncode == 0
    running.stop()
    try:
        told = bayplan(tmp_path, "ledger", "doctor", "--offline", "--database", url, "-o", "json")
    finally:
        running.start()
    assert told.returncode == 1
    (found,) = json.loads(told.stdout)["items"]
    assert (found["code"], found["subject"]) == ("LD001", "database")
    assert "s3cret" not in told.stdout + told.stderr
