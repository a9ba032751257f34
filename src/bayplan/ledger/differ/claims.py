"""GPUs that pods get by ResourceClaims (dynamic resource allocation), and those that ResourceSlices offer.

The resource is the driver's name, the amount again thousandths of a device:

    a partition       its part of the counters that it takes from its device, by the scarcest of them
    a share           (consumable capacity) its part of the device's capacity
    a shared claim    once: it counts for the first pod that it is reserved for
    admin access      nothing: it looks, it does not hold

A device whose slice is not known counts as a whole one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import msgspec

from bayplan.cluster.objects import Object
from bayplan.ledger.differ.reading import Odd, section
from bayplan.ledger.rows import MILLI
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


class Pools:
    """What the slices of a cluster offer."""

    def __init__(self, slices: Iterable[Object], odd: list[Odd], drivers: tuple[str, ...] = DRIVERS) -> None:
        self.devices: dict[tuple[str, str, str], Device] = {}
        """By driver, pool and name."""
        self.capacity: dict[str, dict[str, int]] = {}
        """Thousandths of devices by node and driver: whole devices, however they are cut."""
        self.models: dict[tuple[str, str], str] = {}
        """By node and driver."""
        self._drivers = drivers
        found = [section(each, "spec", _Slice, odd) for each in slices]
        found = [each for each in found if self.is_gpu(each.driver)]
        newest: dict[tuple[str, str], int] = {}
        for each in found:
            key = (each.driver, each.pool.name)
            newest[key] = max(newest.get(key, 0), each.pool.generation)
        found = [each for each in found if each.pool.generation == newest[each.driver, each.pool.name]]
        sets = {
            (e.driver, e.pool.name, shared.name): _values(shared.counters)
            for e in found
            for shared in e.shared_counters
        }
        whole: set[tuple[str, str, str, str]] = set()
        for each in found:
            for device in each.devices:
                self._add(each, device, sets, whole)
        for node, driver, _pool, _name in whole:
            offered = self.capacity.setdefault(node, {})
            offered[driver] = offered.get(driver, 0) + MILLI

    def is_gpu(self, driver: str) -> bool:
        """Whether a driver's devices are GPUs."""
        return any(fnmatchcase(driver, pattern) for pattern in self._drivers)

    def _add(
        self,
        found: _Slice,
        device: _Device,
        sets: dict[tuple[str, str, str], dict[str, int]],
        whole: set[tuple[str, str, str, str]],
    ) -> None:
        driver, pool = found.driver, found.pool.name
        share = 0 if device.consumes_counters else MILLI
        for taken in device.consumes_counters:
            share += _part(_values(taken.counters), sets.get((driver, pool, taken.counter_set), {}))
            whole.add((found.node_name, driver, pool, f"counters {taken.counter_set}"))
        if not device.consumes_counters:
            whole.add((found.node_name, driver, pool, device.name))
        named = {key.rpartition("/")[2]: value.string for key, value in device.attributes.items()}
        model = next((named[key] for key in _MODELS if named.get(key)), "")
        if model:
            self.models.setdefault((found.node_name, driver), model)
        self.devices[driver, pool, device.name] = Device(share, model, _values(device.capacity))

    def held(self, claims: Iterable[Object], odd: list[Odd]) -> dict[str, dict[str, int]]:
        """Thousandths of devices by the uid of the pod that holds them, and by driver."""
        holders: dict[str, dict[str, int]] = {}
        for claim in claims:
            if claim.meta.annotations.get(_MADE_FOR_REQUEST) == "true":
                continue
            status = section(claim, "status", _ClaimStatus, odd)
            pod = next((each.uid for each in status.reserved_for if each.resource == "pods"), "")
            if not pod or status.allocation is None:
                continue
            for result in status.allocation.devices.results:
                if self.is_gpu(result.driver) and not result.admin_access:
                    held = holders.setdefault(pod, {})
                    held[result.driver] = held.get(result.driver, 0) + self._share(result)
        return holders

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
