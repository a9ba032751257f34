"""A server that refuses the lease for a while, as one does that has just started; and leases of part-seconds."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.kinds import LEASE
from bayplan.cluster.leases import Election, LeaseTimes, Place
from bayplan.model.clock import SECOND
from bayplan.model.errors import Forbidden, NotFound
from tests.ledger.shell.scenes import until
from tests.ledger.shell.test_leases import PLACE, Candidate, _pass


class Refused(Candidate):
    """One whom the server refuses for a while."""

    refused = False

    def __getattr__(self, name: str) -> object:
        if self.refused:
            raise Forbidden("leases is forbidden")
        return super().__getattr__(name)


@pytest.mark.parametrize(
    ("seconds", "reigns", "leads_then"),
    [
        pytest.param(5, 1, True, id="who is refused for a moment goes on"),
        pytest.param(40, 1, False, id="who is refused for long lets the lease run out, and the other leads"),
    ],
)
async def test_a_leader_that_is_refused(seconds: int, reigns: int, leads_then: bool) -> None:
    cluster = embedded_cluster()
    one = Refused(cluster, "one")
    await until(one.election.holds)
    two = Candidate(cluster, "two")
    await _pass(cluster, 5, one, two)
    one.refused = True
    await _pass(cluster, seconds, one, two)
    one.refused = False
    await _pass(cluster, 10, one, two)
    assert not one.task.done()
    assert (len(one.reigns), one.election.holds(), two.election.holds()) == (reigns, leads_then, not leads_then)
    await two.die()
    await _pass(cluster, 20, one, two)
    assert one.election.holds()
    await one.end()


async def test_a_place_that_does_not_exist_is_told() -> None:
    cluster = embedded_cluster()
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        await Election(cluster, Place("nowhere", "ledger"), "one", clock=cluster.clock).run(until_cancelled)


async def until_cancelled() -> None:
    """A reign."""
    await asyncio.Event().wait()


async def test_who_has_never_held_the_lease_is_told_that_it_is_refused() -> None:
    cluster = embedded_cluster()
    one = Refused(cluster, "one")
    one.refused = True
    with pytest.raises(Forbidden):
        await one.task


@pytest.mark.parametrize(
    ("duration", "said"),
    [
        pytest.param(15 * SECOND, 15, id="whole seconds as they are"),
        pytest.param(15 * SECOND + 1, 16, id="a part of one counts as one"),
        pytest.param(SECOND // 2, 1, id="less than one is one"),
    ],
)
async def test_others_wait_no_less_than_the_lease_lasts(duration: int, said: int) -> None:
    cluster = embedded_cluster()
    times = LeaseTimes(duration=duration, renew_within=duration - 1, retry=SECOND // 10)
    written = []

    async def reign() -> None:
        written.append((await cluster.get(LEASE, PLACE.name, PLACE.namespace)).doc()["spec"]["leaseDurationSeconds"])

    await Election(cluster, PLACE, "one", clock=cluster.clock, times=times).run(reign)
    assert written == [said]
