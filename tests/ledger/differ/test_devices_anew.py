"""Claims and slices that are read anew: what is known stays until all are, and what is not met again has gone."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.cluster.kinds import RESOURCE_CLAIM, RESOURCE_SLICE, Kind
from bayplan.cluster.objects import Object
from bayplan.ledger.differ.devices import Claimed, Devices
from tests.ledger.differ.lives import at
from tests.ledger.differ.test_claims import COUNTERS, CUT, DRIVER, TWO, claim, device, known, nobody, offered

CLAIM, SLICE = RESOURCE_CLAIM.name, RESOURCE_SLICE.name


def named(obj: Object, name: str) -> Object:
    obj.meta = msgspec.structs.replace(obj.meta, name=name)
    return obj


def claims(*uids: str) -> list[Object]:
    """One for each pod, named like it."""
    return [named(claim({"device": "half"}, pods=(uid,)), uid) for uid in uids]


def capacity(devices: Devices) -> dict[str, dict[str, int]]:
    assert devices.pools is not None
    return devices.pools.capacity


def tell(devices: Devices, *objects: Object) -> None:
    for each in objects:
        if each.kind == RESOURCE_SLICE:
            devices.slice(each, [], gone=False)
        else:
            devices.claim(each, at(60), nobody, [], gone=False)


def test_slices_that_are_read_anew_count_once_all_are_known() -> None:
    devices = known([TWO], [], [])
    devices.interrupted(SLICE)
    tell(devices, offered(device("0"), device("1"), device("2")))
    assert (devices.changed(), capacity(devices)) == (([], []), {"a": {DRIVER: 2000}})
    devices.complete(SLICE)
    assert (devices.changed(), capacity(devices)) == (([], ["a"]), {"a": {DRIVER: 3000}})


@pytest.mark.parametrize("half_way", [False, True], ids=["at once", "half-way"])
def test_a_look_that_fails_changes_nothing(half_way: bool) -> None:
    devices = known([CUT], claims("u1", "u2"), [])
    for kind in (CLAIM, SLICE):
        devices.interrupted(kind)
    if half_way:
        tell(devices, named(offered(device("half", "40Gi"), generation=2, sharedCounters=COUNTERS), "new"))
        tell(devices, *claims("u1"))
    for kind in (CLAIM, SLICE):
        devices.interrupted(kind)
    devices.changed()
    assert capacity(devices) == {"a": {DRIVER: 1000}}
    assert [devices.claimed(uid) for uid in ("u1", "u2")] == [Claimed({DRIVER: 500})] * 2
    tell(devices, CUT)
    devices.complete(SLICE)
    assert (devices.changed()[1], capacity(devices)) == (["a"], {"a": {DRIVER: 1000}})


def test_slices_and_claims_that_are_not_met_again_are_gone() -> None:
    devices = known([TWO], claims("u1", "u2"), [])
    for kind in (CLAIM, SLICE):
        devices.interrupted(kind)
    tell(devices, *claims("u2", "u3"))
    assert devices.claimed("u1") is not None
    for kind in (CLAIM, SLICE):
        devices.complete(kind)
    assert devices.changed() == (["u2", "u3", "u1"], ["a"])
    assert {uid for uid in ("u1", "u2", "u3") if devices.claimed(uid) is not None} == {"u2", "u3"}
    assert capacity(devices) == {}


def test_what_was_read_anew_without_an_interruption_is_as_it_was() -> None:
    devices = known([TWO], claims("u1"), [])
    for kind in (CLAIM, SLICE):
        devices.complete(kind)
    assert devices.changed() == ([], [])
    assert (capacity(devices), devices.claimed("u1")) == ({"a": {DRIVER: 2000}}, Claimed({DRIVER: 1000}))


def test_while_slices_cannot_be_had_claims_are_of_whole_devices_and_nobody_says_what_nodes_offer() -> None:
    devices = Devices()
    devices.interrupted(SLICE)
    tell(devices, *claims("u1"))
    devices.complete(CLAIM)
    assert devices.changed() == (["u1"], [])
    assert (devices.pools, devices.claimed("u1")) == (None, Claimed({DRIVER: 1000}))
    tell(devices, CUT)
    devices.complete(SLICE)
    assert devices.changed() == (["u1"], ["a"])
    assert (capacity(devices), devices.claimed("u1")) == ({"a": {DRIVER: 1000}}, Claimed({DRIVER: 500}))


@pytest.mark.parametrize("kind", [RESOURCE_CLAIM, RESOURCE_SLICE], ids=lambda kind: kind.plural)
def test_a_cluster_that_has_no_such_kind_has_none(kind: Kind) -> None:
    devices = known([TWO], claims("u1"), [])
    devices.interrupted(kind.name)
    devices.complete(kind.name)
    devices.changed()
    there = (capacity(devices) != {}, devices.claimed("u1") is not None)
    assert there == (kind != RESOURCE_SLICE, kind != RESOURCE_CLAIM)
