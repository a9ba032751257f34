"""The served engine on a thread of its own, so that a verb may be called as from a shell; and what is in it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import pytest

from bayplan.cli.main import main
from bayplan.cluster import kinds
from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.kubelet.behaviour import PREFIX
from bayplan.cluster.served.serve import serve
from bayplan.model.clock import SystemClock

T = TypeVar("T")
Doc = dict[str, Any]
QUICK = {f"{PREFIX}{step}": "10ms" for step in ("pull", "start", "shutdown")}
"""Nobody has to wait for a kubelet."""


class Told(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str


class Command:
    """`command("get", "pods")`."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str) -> Told:
        self._capture.readouterr()
        code = main(arguments)
        return Told(code, *self._capture.readouterr())


class Serving:
    """A cluster of three nodes with a deployment, a job and a pod that fits nowhere."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._loop = asyncio.new_event_loop()
        self._ready, self._end = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._main(),))
        self.cluster: EmbeddedCluster

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        self.do(self._fill())
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._loop.close()

    async def _main(self) -> None:
        self.cluster = embedded_cluster(clock=SystemClock(), seed=1)
        running = asyncio.create_task(self.cluster.run())
        async with serve(self.cluster, kubeconfig_out=self.kubeconfig):
            self._ready.set()
            await self._end.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the cluster's own thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _fill(self) -> None:
        capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}
        for number in range(3):
            body: Doc = {"metadata": {"name": f"n{number}", "labels": {"zone": f"z{number}"}}}
            await self.cluster.create(kinds.NODE, {**body, "status": {"capacity": capacity}}, manager="tests")
        await self.cluster.create(kinds.DEPLOYMENT, deployment("web", 3), "default")
        await self.cluster.create(kinds.POD, pod("big", {"cpu": "64"}), "default")
        await until(self.cluster, "web", 3)


async def until(cluster: EmbeddedCluster, name: str, available: int) -> None:
    """Return once a deployment has so many pods that serve."""
    async with asyncio.timeout(30):
        while True:
            status = (await cluster.get(kinds.DEPLOYMENT, name, "default")).doc().get("status", {})
            if status.get("availableReplicas", 0) == available == status.get("replicas"):
                return
            await asyncio.sleep(0.05)


def deployment(name: str, replicas: int, image: str = "nginx:1") -> Doc:
    """A deployment whose pods ask for half a core and a GPU each."""
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}}
    template = {
        "metadata": {"labels": {"app": name}, "annotations": QUICK},
        "spec": {"containers": [{"name": "main", "image": image, "resources": resources}]},
    }
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


def pod(name: str, requests: dict[str, str] | None = None) -> Doc:
    """A pod that nobody makes anew."""
    container = {"name": "main", "image": "busybox:1", "resources": {"requests": requests or {}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
