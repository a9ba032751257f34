"""Values of the kubelet's policy options, read as the kubelet reads them."""

from __future__ import annotations

from bayplan.model.faults import shown
from bayplan.node.errors import PolicyError

BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def boolean(name: str, value: str) -> bool:
    """Whether the option is on. Raises PolicyError in the kubelet's words."""
    if value not in BOOLEANS:
        raise PolicyError(
            f"bad value for option {shown(name)}: strconv.ParseBool: parsing {shown(value)}: invalid syntax",
            hint="write true or false",
        )
    return BOOLEANS[value]
