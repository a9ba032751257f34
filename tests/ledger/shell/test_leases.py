"""Elections on an embedded cluster in virtual time: one leader, a quick successor, and no two at once."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import LEASE
from bayplan.cluster.leases import Election, LeaseTimes, LeaseTimesError, Place
from bayplan.model.clock import SECOND, Instant
from bayplan.model.errors import ServerError
from tests.conftest import Logged
from tests.ledger.shell.scenes import until

PLACE = Place("kube-system", "bayplan-ledger")


class Candidate:
    """A process that wants to lead; `cut` takes its connection away."""

    def __init__(self, cluster: EmbeddedCluster, name: str) -> None:
        self.cut = False
        self.reigns: list[Instant] = []
        self.inner = cluster
        self.election = Election(self, PLACE, name, clock=cluster.clock)  # type: ignore[arg-type]  # what it needs
        self.task = asyncio.create_task(self.election.run(self._reign))

    async def _reign(self) -> None:
        self.reigns.append(self.inner.clock.now())
        await asyncio.Event().wait()

    def __getattr__(self, name: str) -> object:
        if self.cut:
            raise ServerError("no route")
        return getattr(self.inner, name)

    async def die(self) -> None:
        """As kill -9: nothing is released."""
        self.cut = True
        await self.end()

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def _pass(cluster: EmbeddedCluster, seconds: int, *candidates: Candidate) -> None:
    """Let time pass, a second at a time; never do two hold the lease."""
    for _ in range(seconds):
        await cluster.advance(1)
        for _ in range(30):
            await asyncio.sleep(0)
        assert sum(each.election.holds() for each in candidates) <= 1


async def test_one_leads_and_the_other_takes_over_within_twenty_seconds_of_its_death() -> None:
    cluster = embedded_cluster()
    one = Candidate(cluster, "one")
    await until(one.election.holds)
    two = Candidate(cluster, "two")
    await _pass(cluster, 60, one, two)
    assert (one.election.holds(), two.reigns) == (True, [])
    await one.die()
    died = cluster.clock.now()
    await _pass(cluster, 20, one, two)
    assert two.election.holds()
    assert two.reigns[0] - died <= 20 * SECOND
    lease = (await cluster.get(LEASE, PLACE.name, PLACE.namespace)).doc()["spec"]
    assert (lease["holderIdentity"], lease["leaseTransitions"], lease["leaseDurationSeconds"]) == ("two", 1, 15)
    await two.end()


async def test_a_leader_that_ends_well_lets_the_next_one_in_at_once() -> None:
    cluster = embedded_cluster()
    one = Candidate(cluster, "one")
    await until(one.election.holds)
    two = Candidate(cluster, "two")
    await _pass(cluster, 5, one, two)
    await one.end()
    await _pass(cluster, 3, one, two)
    assert two.election.holds()
    await two.end()


async def test_a_leader_that_is_cut_off_stops_before_another_begins_and_comes_back_as_a_follower() -> None:
    cluster = embedded_cluster()
    one = Candidate(cluster, "one")
    await until(one.election.holds)
    two = Candidate(cluster, "two")
    await _pass(cluster, 5, one, two)
    one.cut = True
    await _pass(cluster, 30, one, two)
    assert (one.election.holds(), two.election.holds()) == (False, True)
    one.cut = False
    await _pass(cluster, 30, one, two)
    assert (len(one.reigns), two.election.holds()) == (1, True)
    await two.die()
    await _pass(cluster, 20, one, two)
    assert (len(one.reigns), one.election.holds()) == (2, True)
    await one.end()


async def test_a_fault_of_the_reign_comes_out_and_the_lease_is_free() -> None:
    cluster = embedded_cluster()

    async def fails() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await Election(cluster, PLACE, "one", clock=cluster.clock).run(fails)
    assert (await cluster.get(LEASE, PLACE.name, PLACE.namespace)).doc()["spec"].get("holderIdentity", "") == ""


async def test_a_loss_is_told_also_where_the_reigns_own_work_notices_first(logged: Logged) -> None:
    cluster = embedded_cluster()

    async def writes() -> None:
        while election.holds():
            await cluster.clock.sleep_until(Instant(cluster.clock.now() + SECOND // 10))
        raise ServerError("the lease is lost")

    one = Candidate(cluster, "one")
    election = one.election
    await one.end()
    one.task = asyncio.create_task(election.run(writes))
    await until(election.holds)
    one.cut = True
    await _pass(cluster, 30, one)
    assert [line["lease"] for line in logged() if line["msg"] == "lease lost"] == [str(PLACE)]
    await one.end()


def test_times_by_which_two_might_lead_are_refused() -> None:
    cluster = embedded_cluster()
    with pytest.raises(LeaseTimesError):
        Election(cluster, PLACE, "one", clock=cluster.clock, times=LeaseTimes(renew_within=15 * SECOND))
