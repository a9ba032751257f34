"""GPUs that pods get by ResourceClaims (dynamic resource allocation), and those that ResourceSlices offer.

The resource is the driver's name, the amount again thousandths of a device:

    a partition       its part of the counters that it takes from its device, by the scarcest of them
    a share           (consumable capacity) its part of the device's capacity
    a shared claim    once: for the first pod that it is reserved for, and for the next one when that has ended
    admin access      nothing: it looks, it does not hold

A device whose slice is not known counts as a whole one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import msgspec

from bayplan.cluster.objects import Object
from bayplan.ledger.differ.reading import Odd, instant, section
from bayplan.ledger.rows import MILLI
from bayplan.model.clock import Instant
from bayplan.model.meta import Wire
from bayplan.model.quantity import QuantityError, parse

DRIVERS = (
    "gpu.nvidia.com",
    "gpu.amd.com",
    "gpu.intel.com",
    "gaudi.intel.com",
    "tpu.google.com",
    "neuron.aws.com",
    "gpu.example.com",
)
_MADE_FOR_REQUEST = "resource.kubernetes.io/extended-resource-claim"
"""On claims that the scheduler makes for a plain request of a resource: that request is counted already."""
_MODELS = ("productName", "model", "productModel")


class _Amount(Wire, frozen=True):
    value: str = ""


class _Attribute(Wire, frozen=True):
    string: str = ""


class _Counters(Wire, frozen=True):
    name: str = ""
    counter_set: str = ""
    counters: dict[str, _Amount] = msgspec.field(default_factory=dict)


class _Device(Wire, frozen=True):
    name: str = ""
    attributes: dict[str, _Attribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, _Amount] = msgspec.field(default_factory=dict)
    consumes_counters: tuple[_Counters, ...] = ()


class _Pool(Wire, frozen=True):
    name: str = ""
    generation: int = 0


class _Slice(Wire, frozen=True):
    driver: str = ""
    pool: _Pool = _Pool()
    node_name: str = ""
    devices: tuple[_Device, ...] = ()
    shared_counters: tuple[_Counters, ...] = ()


class _Result(Wire, frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    consumed_capacity: dict[str, str] = msgspec.field(default_factory=dict)


class _Results(Wire, frozen=True):
    results: tuple[_Result, ...] = ()


class _Allocation(Wire, frozen=True):
    devices: _Results = _Results()


class _Consumer(Wire, frozen=True):
    resource: str = ""
    uid: str = ""


class _ClaimStatus(Wire, frozen=True):
    allocation: _Allocation | None = None
    reserved_for: tuple[_Consumer, ...] = ()


class Device(msgspec.Struct, frozen=True):
    """What a slice says of a device, or of a part of one."""

    share: int = MILLI
    model: str = ""
    capacity: Mapping[str, int] = {}


class Slice(msgspec.Struct, frozen=True):
    """What is kept of a ResourceSlice."""

    spec: _Slice
    created_at: Instant | None = None


class Claim(msgspec.Struct, frozen=True):
    """What is kept of a ResourceClaim."""

    pods: tuple[str, ...] = ()
    """Those that it is reserved for, by uid."""
    results: tuple[_Result, ...] = ()
    """The devices that were allocated to it, and are held by it."""


def read_slice(obj: Object, odd: list[Odd]) -> Slice:
    """A ResourceSlice, as far as it can be read."""
    return Slice(section(obj, "spec", _Slice, odd), instant(obj.meta.creation_timestamp))


def read_claim(obj: Object, odd: list[Odd], drivers: tuple[str, ...] = DRIVERS) -> Claim:
    """A ResourceClaim, as far as it can be read and is about GPUs."""
    status = section(obj, "status", _ClaimStatus, odd)
    if status.allocation is None or obj.meta.annotations.get(_MADE_FOR_REQUEST) == "true":
        return Claim()
    results = status.allocation.devices.results
    return Claim(
        tuple(each.uid for each in status.reserved_for if each.resource == "pods"),
        tuple(each for each in results if is_gpu(each.driver, drivers) and not each.admin_access),
    )


def is_gpu(driver: str, drivers: tuple[str, ...] = DRIVERS) -> bool:
    """Whether a driver's devices are GPUs."""
    return any(fnmatchcase(driver, pattern) for pattern in drivers)


class Pools:
    """What the slices of a cluster offer."""

    def __init__(self, slices: Iterable[Slice] = (), drivers: tuple[str, ...] = DRIVERS) -> None:
        self.devices: dict[tuple[str, str, str], Device] = {}
        """By driver, pool and name."""
        self.capacity: dict[str, dict[str, int]] = {}
        """Thousandths of devices by node and driver: whole devices, however they are cut."""
        self.models: dict[tuple[str, str], str] = {}
        """By node and driver."""
        self.since: dict[tuple[str, str], Instant] = {}
        """When the eldest slice of a node and driver was made."""
        found = [each for each in slices if is_gpu(each.spec.driver, drivers)]
        for each in found:
            self._date(each)
        newest: dict[tuple[str, str], int] = {}
        for spec in (each.spec for each in found):
            key = (spec.driver, spec.pool.name)
            newest[key] = max(newest.get(key, 0), spec.pool.generation)
        specs = [each.spec for each in found]
        specs = [spec for spec in specs if spec.pool.generation == newest[spec.driver, spec.pool.name]]
        sets = {
            (spec.driver, spec.pool.name, shared.name): _values(shared.counters)
            for spec in specs
            for shared in spec.shared_counters
        }
        whole: dict[tuple[str, str, str, str], None] = {}
        for spec in specs:
            for device in spec.devices:
                self._add(spec, device, sets, whole)
        for node, driver, _pool, _name in whole:
            offered = self.capacity.setdefault(node, {})
            offered[driver] = offered.get(driver, 0) + MILLI

    def _date(self, found: Slice) -> None:
        key = (found.spec.node_name, found.spec.driver)
        if found.created_at is not None:
            self.since[key] = min(self.since.get(key, found.created_at), found.created_at)

    def _add(
        self,
        found: _Slice,
        device: _Device,
        sets: dict[tuple[str, str, str], dict[str, int]],
        whole: dict[tuple[str, str, str, str], None],
    ) -> None:
        driver, pool = found.driver, found.pool.name
        share = 0 if device.consumes_counters else MILLI
        for taken in device.consumes_counters:
            share += _part(_values(taken.counters), sets.get((driver, pool, taken.counter_set), {}))
            whole[found.node_name, driver, pool, f"counters {taken.counter_set}"] = None
        if not device.consumes_counters:
            whole[found.node_name, driver, pool, device.name] = None
        named = {key.rpartition("/")[2]: value.string for key, value in device.attributes.items()}
        model = next((named[key] for key in _MODELS if named.get(key)), "")
        if model:
            self.models.setdefault((found.node_name, driver), model)
        self.devices[driver, pool, device.name] = Device(share, model, _values(device.capacity))

    def held(self, claim: Claim) -> dict[str, int]:
        """Thousandths of devices that a claim holds, by driver."""
        held: dict[str, int] = {}
        for result in claim.results:
            held[result.driver] = held.get(result.driver, 0) + self._share(result)
        return held

    def knows(self, claim: Claim) -> bool:
        """Whether a slice tells of every device of a claim."""
        return all((each.driver, each.pool, each.device) in self.devices for each in claim.results)

    def _share(self, result: _Result) -> int:
        device = self.devices.get((result.driver, result.pool, result.device), Device())
        if not result.consumed_capacity:
            return device.share
        consumed = {name: _nanos(amount) for name, amount in result.consumed_capacity.items()}
        return device.share * _part(consumed, device.capacity) // MILLI


def _values(amounts: Mapping[str, _Amount]) -> dict[str, int]:
    return {name: _nanos(amount.value) for name, amount in amounts.items()}


def _nanos(text: str) -> int:
    try:
        return parse(text).nanos
    except QuantityError:  # as if it were not there: the device is then counted by its other amounts, or whole
        return 0


def _part(taken: Mapping[str, int], of: Mapping[str, int]) -> int:
    """How much of the scarcest amount is taken, in thousandths; all, where nothing says how much there is."""
    parts = [min(-(-amount * MILLI // of[name]), MILLI) for name, amount in taken.items() if of.get(name, 0) > 0]
    return max(parts, default=MILLI)
