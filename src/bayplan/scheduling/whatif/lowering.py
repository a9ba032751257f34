"""A pod that asks for less of a resource: the largest container gives first, and the pod stays one that is valid.

What counts is the largest of the containers with their sidecars, and of each init container with the sidecars before
it (see `bayplan.model.resources`); so all of these must come down to the new amount. What the pod asks for as a whole
and the limits of resources that cannot be overcommitted come down with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from bayplan.model.quantity import NANOS, Format, Quantity, parse
from bayplan.model.resources import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY, is_pod_level

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bayplan.model.pods import Container, Pod, ResourceRequirements

_BYTES = (MEMORY, EPHEMERAL_STORAGE)
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def quantity(resource: str, amount: int) -> Quantity:
    """An amount in the scheduler's units as a quantity: thousandths of cores, bytes, pieces."""
    if resource == CPU:
        return Quantity.of_milli(amount)
    return Quantity.whole(amount, Format.BINARY_SI if _is_bytes(resource) else Format.DECIMAL_SI)


def _is_bytes(resource: str) -> bool:
    return resource in _BYTES or resource.startswith(HUGEPAGES_PREFIX)


def amounts(resource: str, less: int, more: int) -> tuple[str, str]:
    """Two amounts for people, written as an object may have them. Bytes are rounded down: less of them fits, too."""
    if resource == CPU:
        return _decimal(less, 1000, 3), _decimal(more, 1000, 3)
    if not _is_bytes(resource):
        return str(less), str(more)
    for digits in range(1, 4):
        texts = _binary(less, digits), _binary(more, digits)
        if texts[0] != texts[1]:
            return texts
    return str(less), str(more)


def _binary(amount: int, digits: int) -> str:
    power = max((power for power in range(len(_BINARY)) if amount >> 10 * power), default=0)
    return _decimal(amount, 1 << 10 * power, digits) + _BINARY[power]


def _decimal(amount: int, unit: int, digits: int) -> str:
    """The amount in units, rounded down."""
    whole, rest = divmod(amount * 10**digits // unit, 10**digits)
    return f"{whole}.{rest:0{digits}}".rstrip("0").rstrip(".")


def least(pod: Pod, resource: str) -> int:
    """What is counted for a pod even if its containers ask for nothing: its overhead."""
    text = pod.spec.overhead.get(resource)
    return _units(resource, parse(text).nanos) if text else 0


def lowered(pod: Pod, resource: str, amount: int) -> Pod:
    """The pod, asking for that much in the scheduler's units. It must ask for more now, and have no more overhead."""
    own = quantity(resource, amount).nanos - parse(pod.spec.overhead.get(resource, "0")).nanos
    spec = pod.spec
    sidecars = [each for each in spec.init_containers if each.is_sidecar]
    kept = _shrunk([*spec.containers, *sidecars], resource, own)
    init = []
    running = 0
    for each in spec.init_containers:
        if each.is_sidecar:
            init.append(kept[id(each)])
            running += _asked(kept[id(each)], resource)
        else:
            init.append(_capped(each, resource, max(own - running, 0)))
    whole = spec.resources
    if whole is not None and is_pod_level(resource) and resource in whole.requests:
        whole = _with(whole, resource, own)
    containers = tuple(kept[id(each)] for each in spec.containers)
    return replace(pod, spec=replace(spec, containers=containers, init_containers=tuple(init), resources=whole))


def _shrunk(containers: Sequence[Container], resource: str, total: int) -> dict[int, Container]:
    """The containers by identity, the largest lowered until all of them ask for no more than `total` nanos."""
    excess = sum(_asked(each, resource) for each in containers) - total
    kept = {id(each): each for each in containers}
    for each in sorted(containers, key=_by_size(resource)):
        if excess <= 0:
            break
        asked = _asked(each, resource)
        given = min(asked, excess)
        kept[id(each)] = _capped(each, resource, asked - given)
        excess -= given
    return kept


def _by_size(resource: str) -> Callable[[Container], int]:
    return lambda container: -_asked(container, resource)


def _asked(container: Container, resource: str) -> int:
    return parse(container.resources.requests.get(resource, "0")).nanos


def _capped(container: Container, resource: str, nanos: int) -> Container:
    if _asked(container, resource) <= nanos:
        return container
    return replace(container, resources=_with(container.resources, resource, nanos))


def _with(resources: ResourceRequirements, resource: str, nanos: int) -> ResourceRequirements:
    text = str(Quantity(nanos, parse(resources.requests[resource]).format))
    limits = resources.limits
    if resource in limits and resource not in (CPU, *_BYTES):  # such limits equal the requests
        limits = {**limits, resource: text}
    return replace(resources, requests={**resources.requests, resource: text}, limits=limits)


def _units(resource: str, nanos: int) -> int:
    return -(-nanos // (NANOS // 1000 if resource == CPU else NANOS))
