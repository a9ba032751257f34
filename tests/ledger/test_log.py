"""Log events have the names, levels and fields of the table: all calls in the source, and what runs really say."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bayplan
from bayplan.cluster.kinds import JOB, NODE, POD
from bayplan.cluster.leases import Election, Place
from bayplan.ledger.events import EVENTS, FIELDS
from bayplan.ledger.finalizers import Finalizers, Stored
from bayplan.ledger.kubelet_service import keep_kubelet_service
from bayplan.ledger.process import _together
from bayplan.ledger.spool import Spool
from bayplan.ledger.store.port import StoreRefusedError
from bayplan.ledger.store.retention import Pruned
from bayplan.model.clock import VirtualClock
from bayplan.model.errors import Forbidden, ServerError
from tests.conftest import Logged
from tests.ledger.log_page import PAGE, rendered
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import caught_up, gpu_cluster, gpu_job, gpu_pod, recorded, until
from tests.ledger.shell.test_spool import version

SOURCE = Path(bayplan.__file__).parent
MODULES = [
    *sorted((SOURCE / "ledger").rglob("*.py")),
    SOURCE / "cluster" / "leases.py",
    SOURCE / "cluster" / "live" / "reflector.py",
]
LEVELS = ("trace", "debug", "info", "warning", "error")
LISTENERS = {name for name in EVENTS if name.startswith("listener ") and name != "listener failed"}
"""Which listeners.py decides: tests/ledger/owners/test_listeners.py compares their fields."""


def calls() -> Iterator[tuple[str, ast.Call, ast.Module]]:
    """Every call of a logger."""
    for module in MODULES:
        tree = ast.parse(module.read_text())
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="log"), attr=level)) if level in LEVELS:
                    yield f"{module.relative_to(SOURCE)}:{node.lineno}", node, tree


def names(call: ast.Call, tree: ast.Module) -> set[str]:
    """What the first argument may be: a text, or a local name that is given texts."""
    first = call.args[0]
    if isinstance(first, ast.Name):
        given = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == first.id
        ]
        return {name for value in given for name in _texts(value)} & EVENTS.keys()
    if isinstance(first, ast.Attribute) and ast.unparse(first) == "action.event":
        return LISTENERS
    return set(_texts(first))


def _texts(value: ast.expr) -> Iterator[str]:
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=one, orelse=other):
            yield from (*_texts(one), *_texts(other))


CALLS = [*calls()]


@pytest.mark.parametrize(("call", "tree"), [pytest.param(call, tree, id=where) for where, call, tree in CALLS])
def test_every_call_is_an_event_of_the_table(call: ast.Call, tree: ast.Module) -> None:
    found = names(call, tree)
    assert found
    assert found <= EVENTS.keys()
    assert isinstance(call.func, ast.Attribute)
    assert {EVENTS[name].level for name in found} == {call.func.attr}
    fields = {word.arg for word in call.keywords}
    for name in found - LISTENERS:
        expected = set(EVENTS[name].fields.split())
        assert fields == ({None} if name == "pruned" else expected)


def test_no_event_of_the_table_is_without_a_call() -> None:
    assert {name for _, call, tree in CALLS for name in names(call, tree)} == EVENTS.keys()
    assert set(EVENTS["pruned"].fields.split()) == set(Pruned.__struct_fields__)


def test_every_field_is_explained_and_no_other() -> None:
    assert {field for event in EVENTS.values() for field in event.fields.split()} == FIELDS.keys()


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == rendered()


# --- what runs really say


@pytest.fixture
def lines(logged: Logged) -> Logged:
    """All that is logged meanwhile, each compared with the table."""

    def said() -> list[dict[str, Any]]:
        found = logged()
        for line in found:
            event = EVENTS[line["msg"]]
            assert line["level"] == event.level
            assert set(line) - {"ts", "level", "logger", "msg"} == set(event.fields.split())
        return found

    return said


async def test_a_run_with_an_outage_and_finalizers(lines: Logged, tmp_path: Path) -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    with (tmp_path / "s").open("wb") as half:
        half.write(b"half")
    finalizers = Finalizers(cluster, cluster.clock)
    spool = Spool(tmp_path / "s", most_bytes=1 << 30)
    async with recorded(cluster, store, spool) as recorder:
        recorder._durable = finalizers.durable
        carrying = asyncio.create_task(finalizers.run(lambda: recorder.waiting_since, lambda: [POD]))
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
        made = await cluster.create(POD, gpu_pod("p"), "default")
        await caught_up(cluster, recorder)
        await until(lambda: finalizers.added == 1)
        store.down = True
        await cluster.create(JOB, gpu_job("train", 2), "default")
        await cluster.advance(5)
        await caught_up(cluster, recorder)
        store.down = False
        await cluster.advance(30)
        await until(lambda: any(line["msg"] == "spool replayed" for line in lines()))
        await cluster.delete(POD, "p", "default", grace=0)
        await caught_up(cluster, recorder)
        await until(lambda: finalizers.removed == 1)
        carrying.cancel()
        await asyncio.gather(carrying, return_exceptions=True)
    said = lines()
    assert {
        "spool cut", "spool opened", "change taken", "row made", "batch stored", "finalizer added", "finalizer removed",
        "database away", "batch spooled", "database back", "spool replayed", "listener started", "synced",
    } <= {line["msg"] for line in said}  # fmt: skip
    taken = [line for line in said if line["msg"] == "change taken" and line["uid"] == made.uid]
    assert taken[0]["resource_version"] == made.version
    decided = {
        (line["table"], line["resource_version"]) for line in said if line.get("uid") == made.uid and "table" in line
    }
    assert {("gpu_pods", made.version), ("pod_snapshots", made.version)} <= decided


async def test_a_part_that_fails_while_another_ends_all_is_told(lines: Logged) -> None:
    async def refused() -> None:
        raise StoreRefusedError("no such table")

    async def cannot_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ServerError("no route")

    async def ends() -> None:
        await asyncio.Event().wait()

    with pytest.raises(StoreRefusedError, match="no such table"):
        await _together({"ends": ends(), "cannot end": cannot_end(), "refused": refused()})
    assert [(line["part"], line["why"]) for line in lines()] == [("cannot end", "ServerError: no route")]


async def test_a_kind_that_may_not_be_read_is_told_once(lines: Logged) -> None:
    class Refusing:
        async def get(self, _kind: object, name: str, _namespace: str) -> object:
            raise Forbidden(f"{name}: not allowed")

    cluster: Any = Refusing()
    finalizers = Finalizers(cluster, VirtualClock())
    for number, kind in enumerate((JOB, JOB, POD)):
        finalizers.durable((), [Stored(kind, "default", f"owner-{number}", f"uid-{number}", 1)])
        assert await finalizers._carry_out()
    told = [(line["level"], line["kind"]) for line in lines() if line["msg"] == "finalizers not allowed"]
    assert told == [("warning", JOB.qualified), ("warning", POD.qualified)]


async def test_a_lease_from_its_taking_to_its_loss(lines: Logged) -> None:
    cluster, place = await gpu_cluster(0), Place("kube-system", "ledger")

    class Cut:
        """A connection that can be taken away."""

        cut = False

        def __getattr__(self, name: str) -> Any:
            if self.cut:
                raise ServerError("no route")
            return getattr(cluster, name)

    async def reign() -> None:
        await asyncio.Event().wait()

    connection: Any = Cut()
    one, two = (Election(connection, place, name, clock=cluster.clock) for name in ("one", "two"))
    tasks = [asyncio.create_task(each.run(reign)) for each in (one, two)]
    await until(lambda: one.holds() or two.holds())
    for connection.cut in (False, True):
        for _ in range(12):
            await cluster.advance(1)
            for _ in range(30):
                await asyncio.sleep(0)
    connection.cut = False
    await cluster.advance(2)
    await until(lambda: one.holds() or two.holds())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    expected = {"acquired", "renewed", "held", "unreachable", "lost", "released"}
    assert {f"lease {word}" for word in expected} <= {line["msg"] for line in lines()}


async def test_a_reconcile_and_a_full_spool(lines: Logged, tmp_path: Path) -> None:
    cluster = await gpu_cluster()
    keeping = asyncio.create_task(keep_kubelet_service(cluster, cluster.clock))
    await until(lambda: any(line["msg"] == "kubelet service reconciled" for line in lines()))
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    spool = Spool(tmp_path / "s", most_bytes=50_000)
    for number in range(100):
        spool.append(version(number, weight=1000))
    assert sum(line["dropped"] for line in lines() if line["msg"] == "spool shrunk") == spool.dropped > 0
