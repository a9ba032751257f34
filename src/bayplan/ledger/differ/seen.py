"""The circumstances in which a version was seen: everything the differ may know beside the object and its past."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bayplan.ledger.differ.claims import Pools
from bayplan.ledger.differ.devices import Claimed
from bayplan.ledger.differ.gpus import GpuVendors
from bayplan.ledger.differ.people import UserRule
from bayplan.model.clock import Instant


def _nothing(*_names: str) -> str:
    return ""


def _whole(_node: str, _resource: str) -> int:
    return 1


def _no_claims(_uid: str) -> Claimed | None:
    return None


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Who saw it, when, and what they know."""

    cluster: str
    at: Instant
    vendors: GpuVendors = GpuVendors()
    people: UserRule = UserRule()
    model_of: Callable[[str, str], str] = _nothing
    """The model of a node's devices of a resource, by the names of both; empty while the node is not known."""
    pieces_of: Callable[[str, str], int] = _whole
    """Into how many pieces a node's devices of a resource are cut, each offered as one; 1 where that is not known."""
    pools: Pools | None = None
    """What ResourceSlices offer; None: that is not known yet."""
    claimed: Callable[[str], Claimed | None] = _no_claims
    """What a pod, by its uid, has by ResourceClaims; None: nothing that is known."""
    root_of: Callable[[str], str] = _nothing
    """The uid of the workload at the top of the chain that begins with this controller's uid."""
    inferred_after: Instant | None = None
    """Set while what happened unseen is caught up with: the last instant at which all was known. An end that is
    found then lies between the two."""
