"""What claims and slices say together, in whatever order they become known, and whom it concerns.

A claim that several pods share counts for one of them, its holder: the first that it is reserved for, and when that one
has ended, the next, from that end on. What a claim counts for is settled once slices tell of all its devices: a driver
that starts anew takes its slices away and publishes others, and nobody's GPUs change by that.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bayplan.cluster.objects import Object
from bayplan.ledger.differ.claims import Claim, Pools, Slice, is_gpu, read_claim, read_slice
from bayplan.ledger.differ.reading import Odd, identity
from bayplan.model.clock import Instant


class Claimed(msgspec.Struct, frozen=True):
    """What a pod has by its claims."""

    devices: dict[str, int]
    """Thousandths by driver; 0 where another pod counts for all that share the claim."""
    since: Instant | None = None
    """When the latest of them came to count for this pod; None: with its binding, as a claim usually does."""


class _Held(msgspec.Struct):
    """A claim, whose it is, and what it counts for."""

    claim: Claim
    devices: dict[str, int] = {}
    sure: bool = False
    """All its devices were known when they were counted: the number stays, even if their slices go."""
    holder: str = ""
    since: Instant | None = None


EndOf = Callable[[str], Instant | None]


class Devices:
    """The claims and slices of a cluster. Nothing is said before both are known completely, or cannot be had.

    Whoever tells of them may fall silent (`interrupted`) and then tell of all there are, anew. Slices make sense only
    together, so those are kept apart until they are `complete`; a claim is true by itself, and by then those that were
    not met again are gone. What is known stays until then.

    `known` are the pods of an earlier run, which knew all claims at `told_at`: what those have got since began later.
    """

    def __init__(self, known: frozenset[str] = frozenset(), told_at: Instant | None = None) -> None:
        self.pools: Pools | None = None
        """None: the slices are not known yet."""
        self._known, self._told_at = known, told_at
        self._missing = {"ResourceClaim", "ResourceSlice"}
        self._slices: dict[str, Slice] = {}
        self._anew: dict[str, Slice] | None = {}
        """The slices that are read anew; None: all are known."""
        self._offered = False
        """All slices were known once."""
        self._claims: dict[str, _Held] = {}
        self._unmet: dict[str, None] = {}
        """Of the claims those that were not met again, while all are read anew."""
        self._by: Pools | None = None
        """What claims are counted by: `pools`, or nothing where the slices cannot be had. None: it is too early."""
        self._of: dict[str, dict[str, None]] = {}
        """Claims by pod."""
        self._stale = False
        """Slices have changed."""
        self._pods: dict[str, None] = {}
        self._nodes: dict[str, None] = {}

    def slice(self, obj: Object, odd: list[Odd], *, gone: bool) -> None:
        """A ResourceSlice was seen, or is gone."""
        uid = identity(obj)
        slices = self._slices if self._anew is None else self._anew
        before = slices.pop(uid, None)
        if not gone:
            slices[uid] = read_slice(obj, odd)
        if slices is self._slices:
            self._offer(before, slices.get(uid))

    def _offer(self, *slices: Slice | None) -> None:
        """These have come or gone."""
        for each in slices:
            if each is not None and is_gpu(each.spec.driver):
                self._nodes[each.spec.node_name] = None
                self._stale = True

    def claim(self, obj: Object, at: Instant, end_of: EndOf, odd: list[Odd], *, gone: bool) -> None:
        """A ResourceClaim was seen, or is gone. `end_of` says when a pod let go of all it had, if it did."""
        uid = identity(obj)
        before = self._let_go(uid)
        claim = Claim() if gone else read_claim(obj, odd)
        if not claim.results or not claim.pods:
            return
        held = self._claims[uid] = self._followed(before, claim, at, end_of)
        if not held.sure and self._by is not None:
            self._count(held, self._by)
        for pod in claim.pods:
            self._of.setdefault(pod, {})[uid] = None
            self._pods[pod] = None

    def _let_go(self, uid: str) -> _Held | None:
        """Forget a claim; what was known of it."""
        self._unmet.pop(uid, None)
        before = self._claims.pop(uid, None)
        for pod in before.claim.pods if before is not None else ():
            self._pods[pod] = None
            del self._of[pod][uid]
            if not self._of[pod]:
                del self._of[pod]
        return before

    def _followed(self, before: _Held | None, claim: Claim, at: Instant, end_of: EndOf) -> _Held:
        """Whose a claim is after what it was before, and since when."""
        first = claim.pods[0]
        if before is None:
            return _Held(claim, holder=first, since=self._told_at if first in self._known else None)
        held = _Held(claim, holder=before.holder, since=before.since)
        if before.claim.results == claim.results:
            held.devices, held.sure = before.devices, before.sure
        if before.holder not in claim.pods:
            held.holder, held.since = first, end_of(before.holder) or at
        return held

    def interrupted(self, kind: str) -> None:
        """Nobody tells of a kind any more, or could from the beginning: what comes next is all there are, anew."""
        if kind == "ResourceSlice":
            self._anew = {}
        else:
            self._unmet = dict.fromkeys(self._claims)
        self._told(kind)

    def complete(self, kind: str) -> None:
        """All objects of a kind are known now: those that were told, none where the cluster does not have the kind."""
        if kind == "ResourceSlice" and self._anew is not None:
            self._offer(*self._slices.values(), *self._anew.values())
            self._slices, self._anew = self._anew, None
            self._stale = self._stale or not self._offered
            self._offered = True
        elif kind == "ResourceClaim":
            for uid in list(self._unmet):
                self._let_go(uid)
        self._told(kind)

    def _told(self, kind: str) -> None:
        if kind in self._missing:
            self._missing.remove(kind)
            self._stale = True

    def changed(self) -> tuple[list[str], list[str]]:
        """The pods and the names of the nodes of which something else is known than at the last call."""
        if self._missing:
            return [], []
        if self._stale:
            self._by = Pools(self._slices.values())
            self._stale = False
            if self._offered:  # else nodes offer what they did when slices could be had
                self.pools = self._by
            for held in self._claims.values():
                if not held.sure:
                    self._count(held, self._by)
                    self._pods |= dict.fromkeys(held.claim.pods)
        found = list(self._pods), list(self._nodes)
        self._pods, self._nodes = {}, {}
        return found

    def claimed(self, pod: str) -> Claimed | None:
        """What a pod has by claims; None: nothing that is known."""
        claims = self._of.get(pod)
        if not claims or self._by is None:
            return None
        devices: dict[str, int] = {}
        since: Instant | None = None
        for held in map(self._claims.__getitem__, claims):
            mine = held.holder == pod
            for driver, amount in held.devices.items():
                devices[driver] = devices.get(driver, 0) + amount * mine
            if mine and held.since is not None:
                since = held.since if since is None else max(since, held.since)
        return Claimed(devices, since)

    def _count(self, held: _Held, pools: Pools) -> None:
        held.devices, held.sure = pools.held(held.claim), pools.knows(held.claim)
