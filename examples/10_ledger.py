"""The ledger: a pod's life recorded, and what people ask about it afterwards. Run it: python examples/10_ledger.py

`bayplan ledger run` records a whole cluster; here three versions of a pod are recorded by hand, into an SQLite file
that is thrown away. The questions are the same on any ledger: docs/ledger.md.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from typing import Any

from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.objects import Object
from bayplan.ledger.differ import nodes, pods
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.questions.amounts import gpu_hours, gpus
from bayplan.ledger.questions.gone import why_gone
from bayplan.ledger.questions.idle import idle_at
from bayplan.ledger.questions.naming import find_pod
from bayplan.ledger.questions.pending import why_pending
from bayplan.ledger.questions.present import pods_at
from bayplan.ledger.questions.usage import usage
from bayplan.ledger.questions.windows import Window
from bayplan.ledger.rows import Rows
from bayplan.ledger.store.migrating import migrate
from bayplan.ledger.store.sql import SqlStore, open_store
from bayplan.model.clock import SECOND, Instant, rfc3339

MIDNIGHT = 1_767_225_600  # 2026-01-01T00:00:00Z


def at(hour: float) -> Instant:
    return Instant(round((MIDNIGHT + hour * 3600) * SECOND))


def seen(hour: float) -> Seen:
    return Seen(cluster="home", at=at(hour), model_of=lambda *_names: "H100")


def machine() -> Object:
    labels = {"nvidia.com/gpu.product": "H100"}
    metadata = {
        "name": "h100-1",
        "uid": "n1",
        "resourceVersion": "1",
        "creationTimestamp": rfc3339(at(0)),
        "labels": labels,
    }
    return Object.from_raw(
        NODE, json.dumps({"metadata": metadata, "status": {"capacity": {"nvidia.com/gpu": "8"}}}).encode()
    )


def trainer(version: int, status: dict[str, Any], node: str = "") -> Object:
    asked = {"nvidia.com/gpu": "6"}
    spec = {"containers": [{"name": "main", "image": "train:1", "resources": {"limits": asked, "requests": asked}}]}
    metadata = {
        "name": "trainer",
        "namespace": "vision",
        "uid": "p1",
        "resourceVersion": str(version),
        "creationTimestamp": rfc3339(at(1)),
    }
    whole = {"metadata": metadata, "spec": {**spec, **({"nodeName": node} if node else {})}, "status": status}
    return Object.from_raw(POD, json.dumps(whole).encode())


def said(kind: str, status: str, hour: float, reason: str = "", message: str = "") -> dict[str, str]:
    since = rfc3339(at(hour))
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


async def record(store: SqlStore) -> None:
    """A version goes in, rows come out; each batch of them is one transaction."""
    _, rows = nodes.changed(None, machine(), seen(0))
    await store.commit(rows)
    refusal = said(
        "PodScheduled", "False", 1, "Unschedulable", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    )
    bound = said("PodScheduled", "True", 2)
    taken = said("DisruptionTarget", "True", 9.5, "PreemptionByScheduler", "default-scheduler: preempting")
    known = None
    for hour, obj in (
        (1, trainer(1, {"phase": "Pending", "conditions": [refusal]})),
        (2, trainer(2, {"phase": "Running", "conditions": [bound]}, "h100-1")),
        (9.5, trainer(3, {"phase": "Running", "conditions": [bound, taken]}, "h100-1")),
    ):
        rows = Rows()
        known = pods.changed(known, obj, seen(hour), rows)
        await store.commit(rows)
    assert known is not None
    await store.commit(pods.gone(known, seen(10)))


async def ask(store: SqlStore) -> None:
    day = Window(at(0), at(24), 6 * 3600 * SECOND)
    hours = await usage(store, ["namespace", "model"], day)
    for line in hours.lines:
        print(
            f"{'/'.join(line.key)} held {gpu_hours(line.total)} GPU-hours: {[gpu_hours(each) for each in line.amounts]}"
        )
    for hour in (5, 12):
        (devices,) = await idle_at(store, at(hour))
        there = [pod.object.name for pod in await pods_at(store, at(hour))]
        print(f"at {hour:02}:00 {gpus(devices.idle)} of {gpus(devices.capacity)} GPUs were idle, pods: {there}")
    pod = await find_pod(store, "trainer")
    print((await why_pending(store, pod, at(24))).sentence)
    print((await why_gone(store, pod)).sentence)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/ledger.db"
        await migrate(url)
        store = await open_store(url)
        await record(store)
        await ask(store)
        await store.close()


asyncio.run(main())
