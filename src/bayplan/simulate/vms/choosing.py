"""Which ground: `auto`, `embedded`, `lab`, or a cluster that is given.

`auto` takes the API that kubectl would take, if it answers, and says in one line which; else it says in one line why
not, and takes the embedded engine.
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import NODE
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.model.clock import VirtualClock
from bayplan.model.errors import BayplanError, PermanentError
from bayplan.simulate.vms.grounds import Ground, LiveGround, LoopThread, VirtualGround

Backend = str | EmbeddedCluster | LiveCluster
BACKENDS = ("auto", "embedded", "lab")
Close = Callable[[], None]


class BackendError(PermanentError):
    """No such backend, or none that can be used this way."""

    code = "BP-X031"


def choose(backend: Backend, thread: LoopThread, seed: int, tell: Callable[[str], None]) -> tuple[Ground, bool, Close]:
    """The ground, whether it is ours to furnish, and how to end what was started for it."""
    match backend:
        case EmbeddedCluster():
            if not isinstance(backend.clock, VirtualClock):
                hint = "serve it, and hand over a LiveCluster; or let it have a VirtualClock"
                raise BackendError("an embedded cluster in real time is driven by a loop of its own", hint=hint)
            return VirtualGround(backend), True, _nothing
        case LiveCluster():
            return LiveGround(backend), False, _nothing
        case "embedded":
            return _embedded(seed), True, _nothing
        case "lab":
            return _lab()
        case "auto":
            return _auto(thread, seed, tell)
        case _:
            hint = f"one of {', '.join(BACKENDS)}, or a cluster"
            raise BackendError(f"there is no backend {backend!r}", hint=hint)


def _nothing() -> None:
    """What was given is not ours to end."""


def _embedded(seed: int) -> Ground:
    return VirtualGround(embedded_cluster(clock=VirtualClock(), seed=seed))


def _lab() -> tuple[Ground, bool, Close]:
    lab = Lab(name="vms")
    try:
        lab.start()
        return LiveGround(LiveCluster.find(lab.kubeconfig), "lab"), True, lab.close
    except BaseException:
        lab.close()
        raise


def _auto(thread: LoopThread, seed: int, tell: Callable[[str], None]) -> tuple[Ground, bool, Close]:
    try:
        cluster = LiveCluster.find()
        thread.call(_answers(cluster))
    except BayplanError as error:
        tell(f"no Kubernetes API ({error.message}): VMs are placed by the embedded engine")
        return _embedded(seed), True, _nothing
    tell(f"VMs are placed by the scheduler of {cluster.access.context} ({cluster.access.server})")
    return LiveGround(cluster), False, _nothing


async def _answers(cluster: LiveCluster) -> None:
    try:
        await cluster.list(NODE, limit=1)
    except BaseException:
        await cluster.close()
        raise
