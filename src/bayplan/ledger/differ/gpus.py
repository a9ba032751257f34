"""Which resources are GPUs, how many a pod asks for, and which model a node has: by vendor, by configuration.

A pod's GPUs are counted as the scheduler counts (model/resources.py), in thousandths of a device. A part of a device (a
MIG instance) counts as one device unless a share is configured for its resource. Where devices are shared in time, a
node's label says how many pieces of each it offers, and a piece counts as that part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

import msgspec

from bayplan.cluster.objects import Object
from bayplan.ledger.differ.reading import LARGEST, WRONG_QUANTITY, Odd
from bayplan.ledger.rows import MILLI
from bayplan.model.meta import ResourceList
from bayplan.model.pods import Container, Pod, ResourceRequirements
from bayplan.model.quantity import QuantityError, parse
from bayplan.model.resources import CPU, MEMORY, PODS, Amounts, amounts, pod_requests


class GpuVendor(msgspec.Struct, frozen=True):
    """A maker of devices: its resources, as shell patterns, and the node labels that name a model, best first."""

    name: str
    resources: tuple[str, ...]
    models: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    """Resources that look like devices and are not."""


_LONGEST_COUNT = 7
INSTANCE_TYPE = "node.kubernetes.io/instance-type"

VENDORS = (
    GpuVendor(
        "NVIDIA",
        ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"),
        ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator"),
        never=("nvidia.com/mig-*.shared.memory",),
    ),
    GpuVendor(
        "AMD",
        ("amd.com/gpu", "amd.com/[sdqc]px_nps[0-9]"),
        ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"),
    ),
    GpuVendor(
        "Intel",
        ("gpu.intel.com/*",),
        ("gpu.intel.com/product",),
        never=(
            "gpu.intel.com/*_monitoring",
            "gpu.intel.com/millicores",
            "gpu.intel.com/memory.max",
            "gpu.intel.com/tiles",
        ),
    ),
    GpuVendor("Habana", ("habana.ai/gaudi",), ("habana.ai/gaudi.product", INSTANCE_TYPE)),
    GpuVendor("Huawei", ("huawei.com/Ascend*",), ("node.kubernetes.io/npu.chip.name", "accelerator"), ("*-memory",)),
    GpuVendor("Google", ("google.com/tpu",), ("cloud.google.com/gke-tpu-accelerator",)),
    GpuVendor("AWS", ("aws.amazon.com/neuron", "aws.amazon.com/neurondevice"), (INSTANCE_TYPE,)),
    GpuVendor("Cambricon", ("cambricon.com/mlu*",), ("cambricon.com/mlu.product",), ("*.mlumem*", "*.mlucores*")),
    GpuVendor("Moore Threads", ("mthreads.com/gpu",), ("mthreads.com/gpu.product",)),
    GpuVendor("MetaX", ("metax-tech.com/gpu",), ("metax-tech.com/gpu.product",)),
    GpuVendor("Hygon", ("hygon.com/dcu",), ("hygon.com/dcu.product",)),
    GpuVendor("Qualcomm", ("qualcomm.com/qaic",), (INSTANCE_TYPE,)),
)


class GpuVendors:
    """The vendors of a cluster, and what a piece of each resource counts for."""

    def __init__(self, vendors: tuple[GpuVendor, ...] = VENDORS, shares: Mapping[str, int] | None = None) -> None:
        """`shares`: thousandths of a device by resource, for what is less (or more) than one."""
        self._vendors = vendors
        self._shares = dict(shares or {})
        self._found: dict[str, GpuVendor | None] = {}
        # Every resource of a vendor has its domain: a spec without any of them asks for none.
        self._domains = tuple(dict.fromkeys(name.split("/")[0].encode() for each in vendors for name in each.resources))

    def of(self, resource: str) -> GpuVendor | None:
        """Whose device a resource is; None: it is no device."""
        try:
            return self._found[resource]
        except KeyError:
            vendor = self._found[resource] = next((each for each in self._vendors if _makes(each, resource)), None)
            return vendor

    def counted(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """The devices among amounts of resources, in thousandths."""
        return {
            name: min(amount * self._shares.get(name, MILLI), LARGEST)
            for name, amount in amounts.items()
            if amount > 0 and self.of(name) is not None
        }

    def model(self, resource: str, labels: Mapping[str, str]) -> str:
        """The model of a node's devices of that resource, as its labels name it; empty where they do not."""
        vendor = self.of(resource)
        return next((labels[key] for key in vendor.models if labels.get(key)), "") if vendor else ""

    def pieces(self, resource: str, labels: Mapping[str, str]) -> int:
        """Into how many pieces a node's devices of a resource are cut, each offered as one."""
        name = resource.removesuffix(".shared")
        renamed = name != resource
        if resource in self._shares or not (renamed or labels.get(f"{name}.product", "").endswith("-SHARED")):
            return 1
        text = labels.get(f"{name}.replicas", "")
        return max(int(text), 1) if text.isdecimal() and len(text) < _LONGEST_COUNT else 1

    def spoken_of(self, text: str) -> bool:
        """Whether a text may speak of devices."""
        return any(domain in text.encode() for domain in self._domains)

    def asked_for(self, obj: Object) -> bool:
        """Whether a pod may ask for devices, told without decoding it. Never wrong when it says no."""
        spec = obj.sections.get("spec")
        return spec is not None and any(domain in spec.raw for domain in self._domains)


def _makes(vendor: GpuVendor, resource: str) -> bool:
    def fits(patterns: tuple[str, ...]) -> bool:
        return any(fnmatchcase(resource, pattern) for pattern in patterns)

    return fits(vendor.resources) and not fits(vendor.never)


def requests(pod: Pod, odd: list[Odd]) -> Amounts:
    """What the scheduler sets aside for a pod."""
    try:
        return pod_requests(pod)
    except QuantityError:
        return pod_requests(_readable(pod, odd))


def capacity(
    resources: ResourceList, vendors: GpuVendors, odd: list[Odd], labels: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Thousandths of devices by resource that a node has."""
    devices = {name: text for name, text in resources.items() if vendors.of(name) is not None}
    counted = vendors.counted({name: parse(text).value() for name, text in _sound(devices, odd).items()})
    return {name: amount // vendors.pieces(name, labels or {}) for name, amount in counted.items()}


def allocatable(resources: ResourceList, odd: list[Odd]) -> Amounts:
    """What a node has for pods beside its devices: thousandths of cores, bytes, pods."""
    found = amounts(_sound({name: resources[name] for name in (CPU, MEMORY, PODS) if name in resources}, odd))
    return {name: min(found.get(name, 0), LARGEST) for name in (CPU, MEMORY, PODS)}


def _readable(pod: Pod, odd: list[Odd]) -> Pod:
    """The pod without the quantities that are none."""
    replace = msgspec.structs.replace

    def mended(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(replace(each, resources=_requirements(each.resources, odd)) for each in containers)

    spec = pod.spec
    spec = replace(
        spec,
        containers=mended(spec.containers),
        init_containers=mended(spec.init_containers),
        overhead=_sound(spec.overhead, odd),
        resources=spec.resources and _requirements(spec.resources, odd),
    )
    return Pod(metadata=pod.metadata, spec=spec)  # what is in force is left out: it repeats the same quantities


def _requirements(asked: ResourceRequirements, odd: list[Odd]) -> ResourceRequirements:
    return ResourceRequirements(requests=_sound(asked.requests, odd), limits=_sound(asked.limits, odd))


def _sound(resources: ResourceList, odd: list[Odd]) -> ResourceList:
    sound: ResourceList = {}
    for name, text in resources.items():
        try:
            parse(text)
        except QuantityError as error:
            odd.append(Odd(WRONG_QUANTITY, f"{name} is {text[:40]!r}: {error.message}"))
        else:
            sound[name] = text
    return sound
