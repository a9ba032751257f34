"""A VM moves: the target is there before the source goes, so whatever fails on the way leaves the VM where it was.

    the source runs -> budgets would let it go -> target created -> placed -> runs -> source evicted -> gone

Each step may refuse, and says why; from the creation of the target on, a refusal removes it again. The target is kept
off the source's node by node affinity, and on the required one if there is such; the scheduler decides within that.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import Literal

import msgspec

from bayplan.cluster.kinds import POD
from bayplan.model.clock import SECOND, Instant, seconds
from bayplan.model.errors import ApiError, NotFound, ServerError, TooManyRequests
from bayplan.simulate.vms.launcher import REMINDED
from bayplan.simulate.vms.mirror import Sight
from bayplan.simulate.vms.placing import Placing
from bayplan.simulate.vms.precopy import Copy, Network, precopy
from bayplan.simulate.vms.reasons import BUDGET, PRECOPY, Why, forbidden_by, why_elsewhere, why_refused
from bayplan.simulate.vms.vm import VM

OnBudget = Literal["fail", "wait"]
"""What to do while a disruption budget forbids the move."""
_SEVERAL = "more than one PodDisruptionBudget"


class Migration(msgspec.Struct, frozen=True):
    """What came of a migration. True if the VM moved."""

    vm: str
    source: str
    wished: str = ""
    """The node it had to go to, or was wished on; empty for any other."""
    chosen: str = ""
    """Where the VM is now."""
    why: Why = Why()
    """Why it did not move; after a wish, why it is elsewhere."""
    budget: str = ""
    """The disruption budget that forbade it."""
    copy: Copy = Copy(0.0, 0.0)
    moved: bool = False

    def __bool__(self) -> bool:
        return self.moved


class _Refused(Exception):
    def __init__(self, why: Why, budget: str = "", *, undecided: int = 0) -> None:
        super().__init__(why.text)
        self.why, self.budget = why, budget
        self.undecided = undecided  # seconds after which to ask again, where a budget has not been looked at yet


class Migrating:
    """Migrations of VMs. One VM moves once at a time."""

    def __init__(self, placing: Placing, network: Network) -> None:
        self._placing = placing
        self._network = network
        self._reminders = 0

    async def migrate(
        self, vm: VM, source: str, *, only: str = "", wished: str = "", budget: OnBudget = "fail"
    ) -> Migration:
        """Move a VM off a node: to the node `only`, or to wherever the scheduler puts it.

        `wished` is told to nobody; it is what the answer's reasons are about.
        """
        async with self._placing.turn(vm.id):
            memory = vm.memory_consumption * self._placing.terms.shape.memory
            copy = precopy(memory, min(self._network.link_mbps, self._network.total_mbps), vm.dirty_rate_mbps)
            target = only or wished
            try:
                chosen, why = await self._move(vm, source, only, wished, budget, copy)
            except _Refused as refused:
                place = self._placing.mirror.place(vm.id)
                return Migration(vm.id, source, target, place.node if place else "", refused.why, refused.budget, copy)
            return Migration(vm.id, source, target, chosen, why, "", copy, moved=True)

    async def _move(self, vm: VM, source: str, only: str, wished: str, budget: OnBudget, copy: Copy) -> tuple[str, Why]:
        leaving = self._check(vm, source, only, copy)
        placing = self._placing
        if not await placing.ground.until(lambda: self._runs(leaving.name), placing.terms.within):
            raise _Refused(Why("", f"{leaving.name} does not run on {source}"))
        for left in placing.mirror.of(vm.id):
            if left.name != leaving.name:  # of an attempt that broke off
                await placing.remove(left.name)
        await self._evict(leaving, budget, dry_run=True)
        target = await placing.create(vm, only=only, never=source)
        try:
            chosen = await self._arrive(target, source, only or wished)
            why = await self._why_there(target, wished, chosen) if wished else Why()
            await self._evict(leaving, budget, dry_run=False)
        except BaseException:
            with suppress(ServerError):  # out of reach: `sync` removes it when the API is back
                await placing.remove(target)
            raise
        await placing.ground.until(lambda: leaving.name not in placing.mirror.pods, placing.terms.within)
        vm.pod_name, vm.scheduled_node = target, chosen
        return chosen, why

    def _check(self, vm: VM, source: str, only: str, copy: Copy) -> Sight:
        """The pod that is to leave. Raises _Refused for what cannot be tried at all."""
        place = self._placing.mirror.place(vm.id)
        if place is None or place.node != source:
            where = f"is on {place.node}" if place is not None and place.node else "has no place"
            raise _Refused(Why("", f"{vm.id} {where}, not on {source}"))
        if only == source:
            raise _Refused(Why("", f"{vm.id} is on {source} already"))
        if only and only not in self._placing.mirror.nodes:
            raise _Refused(Why("", f"there is no node {only}"))
        if not copy.converges:
            rate = f"{vm.dirty_rate_mbps:g} Mbit/s of its memory change, which is as fast as it can be sent"
            raise _Refused(Why(PRECOPY, f"{vm.id} would never arrive: {rate}"))
        return place

    def _runs(self, pod: str) -> bool:
        sight = self._placing.mirror.pods.get(pod)
        return sight is not None and sight.runs

    async def _arrive(self, target: str, source: str, wished: str) -> str:
        """Wait until the target is placed and runs; the answer is where."""
        placing, pods = self._placing, self._placing.mirror.pods
        await placing.ground.until(lambda: target in pods and pods[target].decided, placing.terms.within)
        node = pods[target].node if target in pods else ""
        if not node:
            decision, said = await placing.judged(target)
            raise _Refused(why_refused(decision, wished, said, leaving=source))
        if not await placing.ground.until(lambda: self._runs(target), placing.terms.within):
            raise _Refused(Why("", f"the target {target} does not start on {node}"))
        return node

    async def _why_there(self, target: str, wished: str, chosen: str) -> Why:
        if wished == chosen:
            return Why()
        return why_elsewhere((await self._placing.judged(target))[0], wished, chosen)

    async def _evict(self, pod: Sight, budget: OnBudget, *, dry_run: bool) -> None:
        """Through the eviction API, so that budgets have their say. Raises _Refused when they forbid it.

        However often budgets change meanwhile, they are waited for no longer than is said.
        """
        placing = self._placing
        end = Instant(placing.ground.now() + seconds(placing.terms.within))
        while True:
            seen = placing.mirror.budgets
            refused = await self._try_evicting(pod, dry_run=dry_run)
            if refused is None:
                return
            left = (end - placing.ground.now()) / SECOND
            if left <= 0 or (budget == "fail" and not refused.undecided):
                raise refused
            wait = min(left, refused.undecided or left)
            changed = await placing.ground.until(functools.partial(self._budgets_changed, seen), wait)
            if not changed and wait < left:
                await self._remind(pod)

    async def _remind(self, pod: Sight) -> None:
        """Touch a pod, so that its budget is looked at anew.

        kube-controller-manager gives up on a budget whose pods' owner it does not know, and of a kind that has just
        been defined it hears only after half a minute.
        """
        placing = self._placing
        self._reminders += 1
        patch = {"metadata": {"annotations": {REMINDED: str(self._reminders)}}}
        await placing.cluster.patch(POD, patch, pod.name, placing.terms.namespace)

    async def _try_evicting(self, pod: Sight, *, dry_run: bool) -> _Refused | None:
        placing = self._placing
        try:
            await placing.cluster.evict(pod.name, placing.terms.namespace, grace=0, uid=pod.uid, dry_run=dry_run)
        except NotFound:
            return None  # somebody else was faster
        except TooManyRequests as error:
            return _forbidden(error)
        except ServerError as error:
            if _SEVERAL not in error.message:
                raise
            return _forbidden(error)
        return None

    def _budgets_changed(self, since: int) -> bool:
        return self._placing.mirror.budgets != since


def _forbidden(error: ApiError) -> _Refused:
    text, budget = forbidden_by(error)
    return _Refused(Why(BUDGET, text), budget, undecided=error.details.retryAfterSeconds)
