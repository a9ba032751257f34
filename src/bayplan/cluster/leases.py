"""Leader election by a Lease: of several processes one holds it, the others wait until it is free or no longer renewed.

No two machines' clocks are compared. A candidate takes a lease over once it has watched it stand still, by its own
clock, for as long as the lease says. A holder counts from the moment *before* its last renewal was sent, and gives up
`renew_within` after it, earlier than anybody else may take over: the difference is the time for what is under way.

    async def reign() -> None: ...                         # write only while election.holds()
    await Election(cluster, place, "me", clock=clock).run(reign)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from bayplan.cluster.kinds import LEASE
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Cluster
from bayplan.model.clock import SECOND, Clock, Instant, rfc3339_micro
from bayplan.model.errors import AlreadyExists, BayplanError, Conflict, NotFound, PermanentError
from bayplan.service.logging import get_logger

log = get_logger(__name__)

Reign = Callable[[], Awaitable[None]]


class LeaseTimes(msgspec.Struct, frozen=True):
    """The numbers of an election, in microseconds; those of Kubernetes' own components."""

    duration: int = 15 * SECOND
    """How long others wait for a renewal."""
    renew_within: int = 10 * SECOND
    """How long a holder may go on without one."""
    retry: int = 2 * SECOND


class LeaseTimesError(PermanentError):
    """The times of a lease do not fit together: two might hold it at once."""

    code = "BP-D033"


class Place(msgspec.Struct, frozen=True):
    """Which Lease."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Election:
    """One candidate."""

    def __init__(
        self,
        cluster: Cluster,
        place: Place,
        identity: str,
        *,
        clock: Clock,
        times: LeaseTimes = LeaseTimes(),  # noqa: B008 - frozen
    ) -> None:
        """`identity` must be unique among candidates, and new for each process. Raises LeaseTimesError."""
        if not 0 < times.retry < times.renew_within < times.duration:
            raise LeaseTimesError(
                "a lease needs retry < renew < duration",
                hint="the defaults are 2s, 10s and 15s: ledger.lease_retry, ledger.lease_renew, ledger.lease_duration",
            )
        self.holder = ""
        """Who was last seen to hold it."""
        self._cluster = cluster
        self._place = place
        self._identity = identity
        self._clock = clock
        self._times = times
        self._renewed_at: Instant | None = None
        self._led = False
        """It was held once: a refusal need not be for good."""
        self._lease: Object | None = None
        self._still_since = Instant(0)
        """Since when the lease has been as it is, by our clock."""
        self._runs_out = Instant(0)
        """When another's lease may be taken over, unless it is renewed before."""

    def holds(self) -> bool:
        """Whether this process may act as the leader at this very instant."""
        return self._renewed_at is not None and self._clock.now() - self._renewed_at < self._times.renew_within

    async def run(self, reign: Reign) -> None:
        """Wait for the lease, reign while it is held, and again when it was lost, until cancelled or the reign ends.

        A reign is cancelled when the lease is lost. Raises what the reign raises, and PermanentError where the server
        refuses the lease. To whoever has held it that is a failed attempt like any other, so that the lease runs out: a
        server that has just started knows no roles yet, and says 403.
        """
        while True:
            await self._acquire()
            if await self._reign(reign):
                return

    async def _acquire(self) -> None:
        while not await self._try():
            now = self._clock.now()
            due = now + self._times.retry
            await self._clock.sleep_until(Instant(min(due, self._runs_out) if self._runs_out > now else due))
        log.info("lease acquired", lease=str(self._place), identity=self._identity)

    async def _reign(self, reign: Reign) -> bool:
        """Whether the reign came to its own end."""
        work = asyncio.ensure_future(reign())
        renewing = asyncio.create_task(self._renew(), name="renewal of the lease")
        try:
            await asyncio.wait((work, renewing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, renewing):
                task.cancel()
            await asyncio.gather(work, renewing, return_exceptions=True)
            lost = not self.holds()
            if lost:  # told here: the reign's own work may notice before whoever renews
                log.error("lease lost", lease=str(self._place), holder=self.holder)
            else:
                await self._release()
            self._renewed_at = None
        if not work.cancelled():
            error = work.exception()
            if error is not None and not lost:
                raise error
            return error is None
        renewing.result()
        return False

    async def _renew(self) -> None:
        """Until the lease is lost."""
        while self.holds():
            await self._clock.sleep_until(Instant(self._clock.now() + self._times.retry))
            await self._try()

    # --- one attempt

    async def _try(self) -> bool:
        """Take or renew the lease; whether we hold it. Faults are a no; permanent ones raise until it was held once."""
        asking = asyncio.ensure_future(self._attempt())
        timer = asyncio.ensure_future(self._clock.sleep_until(Instant(self._clock.now() + self._times.renew_within)))
        try:
            await asyncio.wait((asking, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            if not asking.done():  # an answer that comes too late is no answer
                asking.cancel()
                await asyncio.wait((asking,))
        return False if asking.cancelled() else asking.result()

    async def _attempt(self) -> bool:
        before = self._clock.now()
        try:
            taken = await self._write(before)
        except (Conflict, AlreadyExists):
            return False  # somebody else was quicker
        except BayplanError as error:
            if isinstance(error, PermanentError) and not self._led:
                raise
            log.warning("lease unreachable", why=error.message)
            return False
        if taken:
            self._renewed_at, self._led = before, True
        return taken

    async def _write(self, now: Instant) -> bool:
        place = self._place
        try:
            lease = await self._cluster.get(LEASE, place.name, place.namespace)
        except NotFound:
            self._observe(
                await self._cluster.create(LEASE, self._document({}, None, now), place.namespace), self._clock.now()
            )
            return True
        self._observe(lease, now)
        spec: dict[str, Any] = lease.doc().get("spec") or {}
        self._runs_out = Instant(self._still_since + _span(spec, self._times.duration))
        if self.holder not in ("", self._identity) and now < self._runs_out:
            log.debug("lease held", lease=str(place), holder=self.holder, uid=lease.uid, resource_version=lease.version)
            return False
        body = self._document(spec, lease.meta.resource_version, now)
        try:
            renewed = await self._cluster.update(LEASE, body, place.name, place.namespace)
        except NotFound:
            return False  # somebody took it away just now
        self._observe(renewed, now)
        log.debug("lease renewed", lease=str(place), uid=renewed.uid, resource_version=renewed.version)
        return True

    def _observe(self, lease: Object, now: Instant) -> None:
        if self._lease is None or self._lease.meta.resource_version != lease.meta.resource_version:
            self._still_since = now
        self._lease = lease
        self.holder = (lease.doc().get("spec") or {}).get("holderIdentity") or ""

    def _document(self, spec: dict[str, Any], version: str | None, now: Instant) -> dict[str, Any]:
        mine = spec.get("holderIdentity") == self._identity
        meta = {"name": self._place.name, "namespace": self._place.namespace}
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": meta if version is None else {**meta, "resourceVersion": version},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": -(-self._times.duration // SECOND),  # up: others must not wait for less
                "acquireTime": spec.get("acquireTime") if mine else rfc3339_micro(now),
                "renewTime": rfc3339_micro(now),
                "leaseTransitions": (spec.get("leaseTransitions") or 0) + (0 if mine or version is None else 1),
            },
        }

    async def _release(self) -> None:
        """Let the next one in at once. What goes wrong is not worth a word: the lease runs out by itself."""
        assert self._lease is not None
        place, lease = self._place, self._lease
        spec = {**(lease.doc().get("spec") or {}), "holderIdentity": "", "leaseDurationSeconds": 1}
        meta = {"name": place.name, "namespace": place.namespace, "resourceVersion": lease.meta.resource_version}
        body = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": meta, "spec": spec}
        try:
            await self._cluster.update(LEASE, body, place.name, place.namespace)
        except BayplanError as error:
            log.debug("lease not released", why=error.message)
        else:
            log.info("lease released", lease=str(place))


def _span(spec: dict[str, Any], default: int) -> int:
    said = spec.get("leaseDurationSeconds")
    return said * SECOND if isinstance(said, int) and said > 0 else default
