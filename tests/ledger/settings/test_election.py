"""The times of the election, in virtual time: who looks how often, who stops when, who takes over when."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.store import Change
from bayplan.cluster.kinds import LEASE
from bayplan.cluster.leases import Election, LeaseTimes, Place
from bayplan.ledger.settings import lease_times
from bayplan.model.errors import ServerError
from tests.ledger.settings.effects import given, sees
from tests.ledger.shell.scenes import until

PLACE = Place("kube-system", "ledger")


class Candidate:
    """A process that wants to lead; `cut` takes its connection away."""

    def __init__(self, cluster: EmbeddedCluster, name: str, times: LeaseTimes) -> None:
        self.cut = False
        self.inner = cluster
        self.election = Election(self, PLACE, name, clock=cluster.clock, times=times)  # type: ignore[arg-type]  # enough
        self.task = asyncio.create_task(self.election.run(asyncio.Event().wait))  # type: ignore[arg-type]  # for ever

    def __getattr__(self, name: str) -> object:
        if self.cut:
            raise ServerError("no route")
        return getattr(self.inner, name)

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def seconds_until(cluster: EmbeddedCluster, true: bool, candidate: Candidate) -> int:
    """How long it takes until a candidate leads, or no longer does."""
    for second in range(120):
        if candidate.election.holds() is true:
            return second
        await passing(cluster, 1)
    raise AssertionError("it did not come to be")


async def passing(cluster: EmbeddedCluster, seconds: int) -> None:
    for _ in range(seconds):
        await cluster.advance(1)
        for _ in range(30):
            await asyncio.sleep(0)


async def story(times: LeaseTimes) -> tuple[int, int, int]:
    """Renewals in a minute; seconds from the cut to the leader's end, and to the other's beginning."""
    cluster = embedded_cluster()
    renewals = []

    def note(change: Change) -> None:
        if change.new.kind == LEASE:
            renewals.append(change.new.version)

    cluster.world.store.listeners.append(note)
    one = Candidate(cluster, "one", times)
    await until(one.election.holds)
    renewals.clear()
    await passing(cluster, 60)
    renewed = len(renewals)
    two = Candidate(cluster, "two", times)
    await passing(cluster, 1)
    one.cut = True
    ended = await seconds_until(cluster, False, one)
    began = ended + await seconds_until(cluster, True, two)
    await one.end()
    await two.end()
    return renewed, ended, began


@sees("ledger.lease_retry", "ledger.lease_renew", "ledger.lease_duration")
@pytest.mark.parametrize(
    ("values", "renewals", "ends", "begins"),
    [
        pytest.param({}, range(29, 31), range(8, 11), range(13, 20), id="the defaults: 2 s, 10 s and 15 s"),
        pytest.param({"lease_retry": "5s"}, range(11, 13), range(5, 11), range(10, 26), id="a retry every 5 s"),
        pytest.param(
            {"lease_renew": "4s"}, range(29, 31), range(2, 5), range(13, 20), id="the leader gives up after 4 s"
        ),
        pytest.param({"lease_duration": "40s"}, range(29, 31), range(8, 11), range(38, 45), id="others wait for 40 s"),
    ],
)
async def test_times(values: dict[str, str], renewals: range, ends: range, begins: range) -> None:
    renewed, ended, began = await story(lease_times(given(**values).ledger))
    assert (renewed in renewals, ended in ends, began in begins) == (True, True, True), (renewed, ended, began)
