"""What a pod holds of its node's machine, as an annotation on the pod: the kubelet's checkpoint.

    bayplan.dev/holdings: {"uid":"...","containers":{"app":{"cpus":"2-5","affinity":"0","preferred":true,...}}}

A real kubelet keeps this in files on its node; here the pods themselves say it, so that a restart loses nothing. The
record names the pod's uid: one that was copied from another pod counts for nothing. A pod that the managers refused
has a record as well, of what was free at that moment.
"""

from __future__ import annotations

import functools

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.model.pods import Pod
from bayplan.node.sets import format_list
from bayplan.node.topology.hint import Hint

HOLDINGS = "bayplan.dev/holdings"


class HoldingsError(PermanentError):
    """Nobody knows what a pod holds: its record is missing, or cannot be right."""

    code = "BP-N070"

    def __init__(self, pod: Pod, why: str) -> None:
        meta = pod.metadata
        super().__init__(
            f"nobody knows what pod {meta.namespace}/{meta.name} holds: annotation {HOLDINGS} {why}",
            hint="delete the pod; the annotation is the kubelet's own",
        )


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Bytes of one kind of memory on a group of NUMA nodes."""

    resource: str
    nodes: str
    size: int


class Held(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one container holds, and how its NUMA nodes were chosen."""

    cpus: str = ""
    memory: tuple[Block, ...] = ()
    devices: dict[str, tuple[str, ...]] = {}
    affinity: str | None = None
    """The NUMA nodes that the topology manager chose; None where it left that open."""
    preferred: bool = False
    why: str = ""
    """What made it choose; empty where it has no part in it."""
    hints: dict[str, str] = {}
    """Which NUMA nodes each resource would be best on, in words."""


class Refused(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the managers had when they refused a pod."""

    container: str = ""
    """Where they stopped; empty where the pod was decided as a whole."""
    free: dict[str, dict[str, str]] = {}
    """What could have been given, by resource and NUMA node: CPUs as a list, amounts of everything else."""
    policy: str = ""
    """The topology manager's, with its scope, where it had a say."""
    affinity: str | None = None
    why: str = ""
    hints: dict[str, str] = {}
    """Which NUMA nodes each resource would be best on, in words."""


class Holdings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole record."""

    uid: str
    containers: dict[str, Held] = {}
    refused: Refused | None = None

    def text(self) -> str:
        """As it stands in the annotation."""
        return msgspec.json.encode(self).decode()


_DECODE = msgspec.json.Decoder(Holdings).decode


@functools.lru_cache(maxsize=16_384)
def _read(text: str) -> Holdings | str:
    try:
        return _DECODE(text)
    except msgspec.MsgspecError as broken:
        return f"cannot be read: {broken}"


def holdings_of(pod: Pod) -> Holdings | None:
    """What a pod's record says; None where it has none. Raises HoldingsError."""
    text = pod.metadata.annotations.get(HOLDINGS)
    if text is None:
        return None
    found = _read(text)
    if isinstance(found, str):
        raise HoldingsError(pod, found)
    if found.uid != pod.metadata.uid:
        raise HoldingsError(pod, f"is of another pod, uid {found.uid}")
    return found


def nodes_text(hint: Hint | None) -> str | None:
    """The NUMA nodes of a hint; None for any."""
    return None if hint is None or hint.nodes is None else format_list(hint.nodes)
