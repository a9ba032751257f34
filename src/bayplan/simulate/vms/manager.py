"""`PodManager`: VMs as pods that a scheduler places, for code that knows nothing of loops and watches.

    with PodManager(backend="embedded") as pods:
        pods.ensure_nodes([Node("node-1"), Node("node-2")])
        pods.create_pod(vm)                                  # without nodeName: the scheduler decides
        pods.get_pod_node_assignment(vm.id)                  # where to, as soon as it has

Every call waits for what it asks for, by watches, and never sleeps. While the API is out of reach every call raises
ClusterAway at once; a probe in the background notices when it is back, and then everything is read anew. A watch that
breaks has the API asked at once, so its loss is noticed while nobody calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, Self, TypeVar

from bayplan.cluster.kinds import NODE
from bayplan.cluster.live.faults import Unreachable
from bayplan.model.clock import Clock, Instant, SystemClock, seconds
from bayplan.model.errors import BayplanError
from bayplan.service.logging import get_logger
from bayplan.simulate.vms.choosing import Backend, choose
from bayplan.simulate.vms.grounds import ClusterAway, LoopThread
from bayplan.simulate.vms.launcher import SIMULATED
from bayplan.simulate.vms.migrating import Migrating, Migration, OnBudget
from bayplan.simulate.vms.mirror import Mirror
from bayplan.simulate.vms.placing import Placing, Terms
from bayplan.simulate.vms.precopy import NETWORK, Network
from bayplan.simulate.vms.vm import USUAL, VM, Node, NodeShape, VMError

log = get_logger(__name__)
T = TypeVar("T")


class PodManager:
    """VMs on a cluster. Close it, or use it as a context manager: VMs stay where they are, what was started ends."""

    def __init__(
        self,
        namespace: str = "default",
        backend: Backend = "auto",
        *,
        shape: NodeShape = USUAL,
        network: Network = NETWORK,
        node_selector: Mapping[str, str] = SIMULATED,
        furnish: bool | None = None,
        budget: OnBudget = "fail",
        within: float = 60.0,
        seed: int = 0,
        tell: Callable[[str], None] = log.warning,
        probe_every: float = 1.0,
        clock: Clock | None = None,
    ) -> None:
        """`backend` is `auto`, `embedded`, `lab` or a cluster; `shape` is the node that consumptions are shares of.

        `node_selector` keeps VMs on simulated nodes. `furnish`: whether missing nodes and the kind VirtualMachine may
        be made; by default only on a cluster that was started here. `budget` is what a migration does that a
        disruption budget forbids. `within`: seconds that a decision, a start or a budget is waited for.
        """
        self.network = network
        """What migrations may use of the network."""
        self._budget, self._probe_every, self._clock = budget, probe_every, clock or SystemClock()
        self.away = False
        """Whether the API is out of reach."""
        self.on_return: list[Callable[[], None]] = []
        """Called on a thread of their own when the API is back and everything has been read anew."""
        self.last_refusal: Migration | None = None
        """The last migration that did not come about; its `why` names the plugin."""
        self._thread = LoopThread("vms")
        self._closed = False
        self._probing: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        try:
            ground, ours, self._end = choose(backend, self._thread, seed, tell)
        except BaseException:
            self._thread.close()
            raise
        terms = Terms(namespace, shape, node_selector, ours if furnish is None else furnish, within)
        self._placing = Placing(ground, terms)
        self._migrating = Migrating(self._placing, network)
        try:
            self._thread.call(self._placing.open())
        except BaseException:
            self.close()
            raise
        ground.on_break = self._suspect  # only now: to begin with, whoever opened it is told

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End what was started here. Pods stay. Closing again does nothing; every other call raises VMError then."""
        if self._closed:
            return
        self._closed = True
        try:
            self._thread.call(self._close())
        finally:
            self._thread.close()
            self._end()

    async def _close(self) -> None:
        for task in (self._probing, self._asking):
            if task is not None:
                task.cancel()
        await self._placing.ground.close()

    @property
    def engine(self) -> str:
        """What places the VMs."""
        return self._placing.ground.name

    @property
    def mirror(self) -> Mirror:
        """What is known of pods and nodes, without waiting."""
        return self._placing.mirror

    @property
    def shape(self) -> NodeShape:
        """The node that consumptions are shares of."""
        return self._placing.terms.shape

    # --- VMs as pods

    def create_pod(self, vm: VM, node_name: str | None = None) -> str:
        """Create a VM's pod and return its name, which the VM gets as well. A VM that has one keeps it.

        Without a node the scheduler decides, and nodeName is not set. With one it is forced there by nodeName, past the
        scheduler: the pod says so in an annotation, and the log in a line. A VM that has a pod elsewhere loses it then.
        """
        vm.pod_name, vm.scheduled_node = self._do(lambda: self._placing.ensure_pod(vm, node_name or ""))
        return vm.pod_name

    def delete_pod(self, vm_id: str) -> bool:
        """Remove a VM; whether it had a pod."""
        return self._do(lambda: self._placing.remove_vm(vm_id)) > 0

    def get_pod_node_assignment(self, vm_id: str) -> str | None:
        """Where the scheduler has put a VM, once it has decided; None if nowhere, or if there is no pod."""
        self._do(lambda: self._placing.decided([vm_id]))
        place = self.mirror.place(vm_id)
        return place.node or None if place is not None else None

    def update_vm_node_assignments(self, vms: Sequence[VM]) -> dict[str, int]:
        """Tell every VM where the scheduler has put it, once it has; how many are where: the sum is all VMs."""
        self._do(lambda: self._placing.decided([vm.id for vm in vms]))
        counts = {"scheduled": 0, "pending": 0, "missing": 0}
        for vm in vms:
            place = self.mirror.place(vm.id)
            vm.scheduled_node = place.node if place is not None else ""
            vm.pod_name = place.name if place is not None else ""
            counts["missing" if place is None else "scheduled" if place.node else "pending"] += 1
        return counts

    def sync_pods_with_vms(self, vms: Sequence[VM]) -> dict[str, int]:
        """Make pods for VMs that have none, remove those of VMs that are no more, replace those of another size."""
        return self._do(lambda: self._placing.sync(vms))

    def check_vms(self, vms: Sequence[VM]) -> None:
        """Whether these VMs can be here, all of them: their ids, sizes, constraints, priorities. Raises VMError."""
        self._do(lambda: self._placing.check(vms))

    def migrate_vm_pod(self, vm: VM, from_node: str, to_node: str | None = None) -> bool:
        """Move a VM off a node: to `to_node`, if the scheduler agrees, or to any other but the one it leaves.

        Where it does not come about the VM stays, and `last_refusal` says why.
        """
        return bool(self.migrate(vm, from_node, to_node))

    def migrate(
        self, vm: VM, from_node: str, to_node: str | None = None, *, wished: str = "", budget: OnBudget | None = None
    ) -> Migration:
        """The same, with the whole answer. `wished` is no demand: the answer says why it was not followed."""
        rule = budget or self._budget
        found = self._do(lambda: self._migrating.migrate(vm, from_node, only=to_node or "", wished=wished, budget=rule))
        if not found:
            self.last_refusal = found
        return found

    def ensure_nodes(self, nodes: Iterable[Node], *, no_others: bool = False) -> list[str]:
        """Make the nodes that are missing, if the cluster is ours, and wait for them; which of them it still lacks.

        With `no_others`, those that were made here before and are not among them go.
        """
        wanted = list(nodes)
        return self._do(lambda: self._placing.ensure_nodes(wanted, no_others=no_others))

    def wait_until_running(self, vms: Sequence[VM]) -> bool:
        """Wait until all of these VMs run; whether they do. Being placed is enough for everything but budgets."""
        return self._do(lambda: self._placing.running([vm.id for vm in vms]))

    def read_anew(self) -> None:
        """Read all pods and nodes anew, in case the watches have missed something."""
        self._do(lambda: self._placing.reread())

    def latency(self, share: float = 0.99) -> float:
        """Seconds from a bind to our seeing it, for that share of binds; 0 in virtual time, where both are one."""
        return self.mirror.latencies.quantile(share)

    def why_pending(self, vm_id: str) -> str:
        """What the scheduler said when it found no place for a VM."""
        place = self.mirror.place(vm_id)
        return place.refusal if place is not None else ""

    # --- the way to the API, and its loss

    def _do(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do something on the loop. If the connection breaks and the API is there all the same, once more.

        So all that is done here must bear to be begun anew.
        """
        if self._closed:
            raise _closed()
        if self.away:
            raise ClusterAway(f"{self.engine} cannot be reached", hint="it is tried again in the background")
        try:
            return self._thread.call(make())
        except CancelledError:  # by closing, on another thread
            raise _closed() from None
        except Unreachable as broken:
            lost = broken
        try:
            self._thread.call(self._placing.reread())
            return self._thread.call(make())
        except Unreachable as broken:
            lost = broken
        self._thread.call(self._lost(lost))
        raise ClusterAway(lost.message, hint=lost.hint) from lost

    def _suspect(self) -> None:
        """A watch broke. It may be the connection only: whether the API is out of reach, the API is asked."""
        if not self.away and not self._closed and (self._asking is None or self._asking.done()):
            self._asking = asyncio.create_task(self._ask(), name="ask")

    async def _ask(self) -> None:
        try:
            await self._placing.cluster.list(NODE, limit=1)
        except Unreachable as broken:
            await self._lost(broken)
        except BayplanError as error:
            log.debug("the API answers, though not as it should", why=error.message)

    async def _lost(self, why: Unreachable) -> None:
        if not self.away:
            self.away = True
            log.warning("the API is out of reach", why=why.message)
            self._probing = asyncio.create_task(self._probe(), name="probe")

    async def _probe(self) -> None:
        while self.away:
            await self._clock.sleep_until(Instant(self._clock.now() + seconds(self._probe_every)))
            try:
                await self._placing.reread()
            except BayplanError as error:
                log.debug("the API is still out of reach", why=error.message)
                continue
            self.away = False
            log.warning("the API is back")
        for callback in list(self.on_return):
            await asyncio.to_thread(callback)


def _closed() -> VMError:
    return VMError("this PodManager is closed", hint="make another one")
