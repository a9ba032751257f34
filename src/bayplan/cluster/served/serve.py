"""Running the API: a socket on loopback, TLS with a certificate of its own, a token, and a kubeconfig that has both."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bayplan.cluster.credentials import Authority, kubeconfig, token, write_private
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.served.app import Api
from bayplan.model.clock import SECOND, SystemClock
from bayplan.service.http import listen, new_server
from bayplan.service.state import state_folder


class Served(msgspec.Struct, frozen=True):
    """A running API: where it is and how to reach it."""

    url: str
    kubeconfig: Path


@contextlib.asynccontextmanager
async def serve(
    cluster: EmbeddedCluster, *, port: int = 0, kubeconfig_out: Path | None = None, name: str = "bayplan"
) -> AsyncIterator[Served]:
    """Serve a cluster until the block is left; the kubeconfig goes with it."""
    hint = "another port: --port N; 0 takes a free one"
    listener = listen("127.0.0.1", port, what="Kubernetes API", hint=hint)
    url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    authority = Authority(f"{name}-ca", datetime.fromtimestamp(SystemClock().now() // SECOND, UTC))
    certificate, key = authority.serving(name)  # not named as the authority, or OpenSSL takes it for self-signed
    secret = token()
    target = kubeconfig_out if kubeconfig_out is not None else state_folder() / "kubeconfig"
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory() as folder:
        files = [write_private(Path(folder, "tls.crt"), certificate), write_private(Path(folder, "tls.key"), key)]
        server = new_server(
            Api(cluster, secret, url.removeprefix("https://")), certificate=files[0], key=files[1], dated=False
        )
        server.config.load()  # reads the files, which are needed no longer
    running = asyncio.create_task(server.serve(sockets=[listener]), name="kubernetes-api")
    config = kubeconfig(name, url, authority.pem, secret)
    write_private(target, config)
    try:
        yield Served(url, target)
    finally:
        server.should_exit = True
        await running
        if target.exists() and target.read_text() == config:  # another may have put its own there meanwhile
            target.unlink()
