"""The kubelet's flags, put in the words of its file: each flag sets one field, and a flag wins over the file.

A flag may come more than once: lists and maps grow, anything else is what was said last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from bayplan.model.faults import Faults, shown, unknown
from bayplan.model.resources import HUGEPAGES_PREFIX, MEMORY
from bayplan.node.configuration.names import OTHER_FLAGS
from bayplan.node.flags import BOOLEANS


class FlagValueError(ValueError):
    """A flag's value, in the kubelet's words."""


def _text(value: str, _: Any) -> str:
    return value


def _boolean(value: str, _: Any) -> bool:
    if value not in BOOLEANS:
        raise FlagValueError(f"strconv.ParseBool: parsing {shown(value)}: invalid syntax")
    return BOOLEANS[value]


def _list(value: str, before: Any) -> list[str]:
    return [*(before or ()), *(value.split(",") if value else ())]


def _pairs(value: str, before: Any) -> dict[str, str]:
    return {**(before or {}), **dict(_pair(each, "=") for each in value.split(",") if each)}


def _one_pair(value: str, before: Any) -> dict[str, str]:
    return {**(before or {}), **dict([_pair(value, "=")])}


def _thresholds(value: str, before: Any) -> dict[str, str]:
    return {**(before or {}), **dict(_pair(each, "<") for each in value.split(",") if each)}


def _pair(text: str, sign: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found:
        raise FlagValueError(f"malformed pair, expect string{sign}string")
    return name.strip(), value.strip()


def _reserved_memory(value: str, before: Any) -> list[dict[str, Any]]:
    """`0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=1Gi`."""
    return [*(before or ()), *(_of_node(part) for part in value.split(";"))] if value else []


def _of_node(part: str) -> dict[str, Any]:
    node, *rest = part.split(":")
    if len(rest) != 1:
        raise FlagValueError(
            "the reserved memory has incorrect format, "
            f"expected numaNodeID:type=quantity[,type=quantity...], got {part}"
        )
    if not re.fullmatch("[+-]?[0-9]{1,18}", node):
        raise FlagValueError(f"failed to convert the NUMA node ID, expected integer, got {node}")
    limits = {}
    for limit in rest[0].split(","):
        name, *amount = limit.split("=")
        if len(amount) != 1:
            raise FlagValueError(f"the reserved limit has incorrect value, expected type=quantity, got {limit}")
        if name != MEMORY and not name.startswith(HUGEPAGES_PREFIX):
            raise FlagValueError(f'memory type conversion error, unknown type: "{name}"')
        limits[name] = amount[0]
    return {"numaNode": int(node), "limits": limits}


class Flag(NamedTuple):
    """The field that a flag sets, and how its value is read onto what the flag said before."""

    field: str
    read: Callable[[str, Any], Any] = _text


FLAGS = {
    "cpu-manager-policy": Flag("cpuManagerPolicy"),
    "cpu-manager-policy-options": Flag("cpuManagerPolicyOptions", _one_pair),
    "topology-manager-policy": Flag("topologyManagerPolicy"),
    "topology-manager-scope": Flag("topologyManagerScope"),
    "topology-manager-policy-options": Flag("topologyManagerPolicyOptions", _pairs),
    "memory-manager-policy": Flag("memoryManagerPolicy"),
    "reserved-memory": Flag("reservedMemory", _reserved_memory),
    "system-reserved": Flag("systemReserved", _pairs),
    "kube-reserved": Flag("kubeReserved", _pairs),
    "system-reserved-cgroup": Flag("systemReservedCgroup"),
    "kube-reserved-cgroup": Flag("kubeReservedCgroup"),
    "reserved-cpus": Flag("reservedSystemCPUs"),
    "reserved-system-cpus": Flag("reservedSystemCPUs"),  # no flag of the kubelet's, but its field's name
    "enforce-node-allocatable": Flag("enforceNodeAllocatable", _list),
    "eviction-hard": Flag("evictionHard", _thresholds),
    "cgroup-driver": Flag("cgroupDriver"),
    "cgroup-root": Flag("cgroupRoot"),
    "cgroups-per-qos": Flag("cgroupsPerQOS", _boolean),
    "cpu-cfs-quota": Flag("cpuCFSQuota", _boolean),
    "cpu-cfs-quota-period": Flag("cpuCFSQuotaPeriod"),
}


class Given(NamedTuple):
    """What the flags say: fields, and the flag that each came from."""

    fields: dict[str, Any]
    origins: dict[str, str]


def read_flags(arguments: Sequence[str], faults: Faults) -> Given:
    """The fields that these arguments set; those of no concern here are passed over."""
    given = Given({}, {})
    for name, value in written(arguments):
        flag, path = FLAGS.get(name), f"--{name}"
        if flag is None:
            if name not in OTHER_FLAGS:
                faults.add(path, unknown("flag", name, FLAGS))
            continue
        try:
            given.fields[flag.field] = flag.read(value, given.fields.get(flag.field))
        except FlagValueError as wrong:
            faults.add(path, f'invalid argument "{value}": {wrong}')
        given.origins[flag.field] = path
    return given


def written(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Names and values: `--name=value`, `--name value`, and `--name` alone where a yes is meant."""
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if not argument.startswith("--"):
            continue  # the program itself, or a short flag, none of which matters here
        name, equals, value = argument[2:].partition("=")
        name = name.replace("_", "-")
        if not equals and _is_switch(name):
            value = "true"
        elif not equals and rest and not rest[0].startswith("-"):
            value = rest.pop(0)
        yield name, value


def _is_switch(name: str) -> bool:
    return name in FLAGS and FLAGS[name].read is _boolean
