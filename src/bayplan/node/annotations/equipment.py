"""The machine that a virtual node stands for, and how its kubelet is configured: annotations on the Node.

    bayplan.dev/machine          the name of a machine that ships with bayplan, or the content of a machine file
    bayplan.dev/kubelet-config   a KubeletConfiguration, as YAML or JSON

Without a machine a node has no CPUs to hand out one by one, only amounts. What cannot be read keeps the kubelet from
starting, as a bad file does in life. Each distinct text is read once.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.model.quantity import Format, Quantity
from bayplan.model.resources import CPU, HUGEPAGES_PREFIX, MEMORY, PODS, Amounts
from bayplan.node.admission import NodeManagers
from bayplan.node.configuration import read_configuration
from bayplan.node.machine import Machine
from bayplan.node.machines import named, read_machine
from bayplan.node.policies import NodePolicies
from bayplan.node.reservations import divide

MACHINE = "bayplan.dev/machine"
CONFIGURATION = "bayplan.dev/kubelet-config"
_MOST_PODS = "110"
"""The kubelet's own default."""


class EquipmentError(PermanentError):
    """What a Node says of its machine, or of its kubelet's configuration, cannot be used."""

    code = "BP-N071"


class Problem(msgspec.Struct, frozen=True):
    """Why a kubelet does not start."""

    message: str


class Equipment(msgspec.Struct, frozen=True):
    """A machine with its managers, and what a node offers that has it."""

    machine: Machine
    policies: NodePolicies
    managers: NodeManagers
    """With nothing handed out. It is shared: what is to be handed out is, on a copy."""
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]


def equipment_of(annotations: Mapping[str, str]) -> Equipment | Problem | None:
    """What a Node's annotations say of its machine; None where they say nothing."""
    if not annotations:
        return None
    machine, configuration = annotations.get(MACHINE), annotations.get(CONFIGURATION)
    return None if machine is None and configuration is None else _equipment(machine, configuration)


@functools.lru_cache(maxsize=256)
def _equipment(machine: str | None, configuration: str | None) -> Equipment | Problem:
    try:
        return equip(machine, configuration)
    except PermanentError as error:
        return Problem(f"{error.message} ({error.hint})" if error.hint else error.message)


def equip(machine: str | None, configuration: str | None, source: str = CONFIGURATION) -> Equipment:
    """Read both texts; `source` is what errors call the configuration. Raises PermanentError of some kind."""
    if machine is None:
        raise EquipmentError(f"annotation {CONFIGURATION} is for a machine", hint=f"add the annotation {MACHINE}")
    found = _machine(machine)
    document = None if configuration is None else _document(source, configuration)
    settings = read_configuration(document, source=source)
    shares = divide(settings, found)
    managers = NodeManagers(found, settings.policies)
    usable = dict(shares.allocatable)
    pages = sum(amount for name, amount in usable.items() if name.startswith(HUGEPAGES_PREFIX))
    usable[MEMORY] = max(0, usable[MEMORY] - pages)
    every = Counter(device.resource for device in found.devices)
    healthy = {**dict.fromkeys(every, 0), **Counter(each.resource for each in found.devices if each.healthy)}
    return Equipment(found, settings.policies, managers, _written(shares.capacity, every), _written(usable, healthy))


def _machine(text: str) -> Machine:
    """A name is one word; everything else is a file."""
    if not any(sign in text for sign in ":{\n"):
        return named(text.strip())
    return read_machine(_document(MACHINE, text), MACHINE)


def _document(source: str, text: str) -> Any:
    try:
        return msgspec.yaml.decode(text)
    except msgspec.DecodeError as broken:
        why = " ".join(str(broken).split())
        raise EquipmentError(f"{source}: neither YAML nor JSON: {why}") from broken


def _written(found: Amounts, devices: Mapping[str, int]) -> dict[str, str]:
    """Amounts as a Node's status has them, with its devices and its room for pods."""
    texts = {
        name: str(Quantity.of_milli(amount) if name == CPU else Quantity.whole(amount, Format.BINARY_SI))
        for name, amount in found.items()
    }
    return {**texts, **{name: str(count) for name, count in sorted(devices.items())}, PODS: _MOST_PODS}
