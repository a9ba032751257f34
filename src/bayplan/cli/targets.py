"""Which cluster a verb acts on: the flags that say so, and who is asked when they say nothing.

`--kubeconfig`, `--context` and KUBECONFIG mean what they mean to kubectl. With none of them, a `bayplan up` that runs
on this machine is taken, and said so on standard error; then come the pod's own account and ~/.kube/config.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bayplan.cli.names import complete_contexts, complete_namespaces

if TYPE_CHECKING:
    from pathlib import Path

    from bayplan.cluster.live.cluster import LiveCluster
    from bayplan.cluster.live.config import Access
    from bayplan.model.clock import Instant

T = TypeVar("T")

_PATIENCE = 0.5
"""Seconds for a `bayplan up` on loopback to take a connection; one that does not is not there."""


_SKEW = 3
"""Seconds by which clocks may differ and still be the same."""


class Session:
    """A cluster that a verb speaks to, and the namespace it means when nobody names one."""

    def __init__(self, cluster: LiveCluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def now(self) -> Instant:
        """The time that ages are counted from: ours, unless the server has quite another.

        Clocks go wrong, and a `bayplan up` may run a minute a second. The server says whole seconds only, so ours is
        better where they agree.
        """
        from bayplan.model.clock import SECOND, SystemClock

        ours, theirs = SystemClock().now(), self.cluster.server_time()
        return ours if theirs is None or abs(theirs - ours) < _SKEW * SECOND else theirs


class Target:
    """What the command line says of the cluster. Nothing is read before it is needed."""

    def __init__(self, kubeconfig: str | None = None, context: str | None = None, namespace: str | None = None) -> None:
        self._kubeconfig = kubeconfig or None
        self._context = context or ""
        self._namespace = namespace or ""
        self.quiet = False

    @property
    def namespace(self) -> str:
        """What -n says; empty where it says nothing."""
        return self._namespace

    @property
    def names_namespace(self) -> bool:
        """Whether -n was given."""
        return bool(self._namespace)

    def access(self) -> Access:
        """Where the cluster is and who we are there. Raises ConfigError."""
        from bayplan.cluster.live.config import find_access

        if self._kubeconfig is None and not self._context and not os.environ.get("KUBECONFIG"):
            running = running_up(self._tell)
            if running is not None:
                self._tell(f"using the cluster of the running bayplan up ({running})")
                return find_access(running)
        return find_access(self._kubeconfig, self._context)

    def run(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Open the cluster, do the work, close it."""
        import asyncio

        async def whole() -> T:
            from bayplan.cluster.live.cluster import LiveCluster

            access = self.access()
            async with LiveCluster(access, on_warning=_warn) as cluster:
                return await work(Session(cluster, self._namespace or access.namespace))

        return asyncio.run(whole())

    def _tell(self, text: str) -> None:
        if not self.quiet:
            tell(text)


def running_up(say: Callable[[str], None]) -> Path | None:
    """The kubeconfig of a `bayplan up` that runs on this machine."""
    from bayplan.service.state import state_folder

    found = state_folder() / "kubeconfig"
    if not found.exists():
        return None
    if _answers(found):
        return found
    say(f"{found} is left of a bayplan up that no longer runs: ignored")
    return None


def _answers(kubeconfig: Path) -> bool:
    """Whether somebody listens at the kubeconfig's address."""
    import socket
    from urllib.parse import urlsplit

    from bayplan.cluster.live.config import read_kubeconfig

    parts = urlsplit(read_kubeconfig(kubeconfig).access().server)
    try:
        with socket.create_connection((parts.hostname, parts.port or 443), _PATIENCE):
            return True
    except OSError:
        return False


def tell(text: str) -> None:
    """Talk goes to standard error; standard output is for data."""
    sys.stderr.write(f"{text}\n")


def _warn(text: str) -> None:
    tell(f"Warning: {text}")


def on_cluster(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the flags --kubeconfig, --context and -n, and hand it a `target` made of them."""

    @functools.wraps(verb)
    def wrapped(*args: Any, kubeconfig: str | None, context: str | None, namespace: str | None, **others: Any) -> Any:
        return verb(*args, target=Target(kubeconfig, context, namespace), **others)

    for option in reversed(_OPTIONS):
        option(wrapped)
    return wrapped


_OPTIONS = (
    click.option(
        "-n", "--namespace", metavar="NAME", shell_complete=complete_namespaces, help="Namespace, not the context's."
    ),
    click.option("--context", metavar="NAME", shell_complete=complete_contexts, help="Context of the kubeconfig."),
    click.option("--kubeconfig", type=click.Path(), metavar="FILE", help="Kubeconfig, instead of KUBECONFIG."),
)
