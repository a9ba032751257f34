"""The circumstances in which a version was seen: everything the differ may know beside the object and its past."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bayplan.cluster.objects import Object
from bayplan.ledger.differ.claims import Pools
from bayplan.ledger.differ.gpus import GpuVendors
from bayplan.ledger.differ.people import UserRule
from bayplan.ledger.snapshots import Packed, pack
from bayplan.model.clock import Instant


def _nothing(*_names: str) -> str:
    return ""


def _no_claims(_uid: str) -> dict[str, int]:
    return {}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Who saw it, when, and what they know."""

    cluster: str
    at: Instant
    pack: Callable[[Object], Packed] = pack
    """How a version is packed for its snapshot."""
    vendors: GpuVendors = GpuVendors()
    people: UserRule = UserRule()
    model_of: Callable[[str, str], str] = _nothing
    """The model of a node's devices of a resource, by the names of both; empty while the node is not known."""
    pools: Pools = Pools((), [])
    """What ResourceSlices offer."""
    claimed: Callable[[str], dict[str, int]] = _no_claims
    """What a pod, by its uid, has by ResourceClaims: thousandths of devices by driver (differ/claims.py)."""
    root_of: Callable[[str], str] = _nothing
    """The uid of the workload at the top of the chain that begins with this controller's uid."""
    inferred_after: Instant | None = None
    """Set while what happened unseen is caught up with: the last instant at which all was known. An end that is
    found then lies between the two."""
