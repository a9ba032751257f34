"""A whole cluster served over HTTP in real time, and raw ways to speak to it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.kubelet.behaviour import Defaults
from bayplan.cluster.kinds import NODE
from bayplan.cluster.served.serve import serve
from bayplan.model.clock import MILLISECOND, SystemClock
from tests.cluster.served.raw import Raw

_QUICK = Defaults(pull=100 * MILLISECOND, start=100 * MILLISECOND, shutdown=100 * MILLISECOND, jitter=0.0)


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    """The kubeconfig of a served cluster with three nodes of eight GPUs."""
    cluster = embedded_cluster(clock=SystemClock(), seed=1, behaviour=_QUICK)
    for number in range(3):
        capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}
        await cluster.create(NODE, {"metadata": {"name": f"n{number}"}, "status": {"capacity": capacity}})
    running = asyncio.create_task(cluster.run())
    async with serve(cluster, kubeconfig_out=tmp_path / "kubeconfig") as served:
        yield served.kubeconfig
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.fixture
def raw(kubeconfig: Path) -> Raw:
    """Bytes to and from the API, with its address, token and certificate."""
    config = yaml.safe_load(kubeconfig.read_text())
    port = int(config["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return Raw(port, config["users"][0]["user"]["token"], context)
