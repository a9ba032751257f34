"""The topology manager's options, with the kubelet's names, defaults and words."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from bayplan.model.faults import shown
from bayplan.node.errors import PolicyError
from bayplan.node.flags import boolean

PREFER_CLOSEST = "prefer-closest-numa-nodes"
MOST_NODES = "max-allowable-numa-nodes"
DEFAULT_MOST_NODES = 8
"""With more nodes than this, upstream fears the number of their sets."""

_LARGEST = 2**63 - 1
_MOST_DIGITS = 20  # more than any number has that is not out of range


class TopologyOptions(msgspec.Struct, frozen=True):
    """Options that were read."""

    prefer_closest: bool = False
    most_nodes: int = DEFAULT_MOST_NODES


def read_options(options: Mapping[str, str]) -> TopologyOptions:
    """The options by name. Raises PolicyError in the kubelet's words."""
    read = TopologyOptions()
    for name, value in options.items():
        if name == PREFER_CLOSEST:
            read = msgspec.structs.replace(read, prefer_closest=boolean(name, value))
        elif name == MOST_NODES:
            read = msgspec.structs.replace(read, most_nodes=_most_nodes(value))
        else:
            raise PolicyError(
                f"unknown Topology Manager Policy option: {shown(name)}", hint=f"known: {PREFER_CLOSEST}, {MOST_NODES}"
            )
    return read


def _most_nodes(value: str) -> int:
    complaint = f'unable to convert policy option to integer "{MOST_NODES}": strconv.Atoi: parsing {shown(value)}: '
    found = re.fullmatch("([+-]?)0*([0-9]*)", value, re.ASCII)
    if found is None or not value[-1:].isdigit():
        raise PolicyError(f"{complaint}invalid syntax")
    number = int(f"{found[1]}{found[2][:_MOST_DIGITS] or 0}")
    if not -_LARGEST - 1 <= number <= _LARGEST:
        raise PolicyError(f"{complaint}value out of range")
    if number < DEFAULT_MOST_NODES:
        raise PolicyError(f'the minimum value of "{MOST_NODES}" should not be less than {DEFAULT_MOST_NODES}')
    return number
