"""What runs the controllers, and when: changes in, reconciles in order, writes out, time forward.

Everything happens on one thread and in one order. A change marks the objects it concerns; marked objects are looked at
one by one, first marked first; what a look asks for is written at once and may mark others. When nothing is marked the
world rests until its next timer. So the same seed and the same calls give the same history, at any speed.
"""

from __future__ import annotations

import heapq
import random
from collections import OrderedDict
from collections.abc import Sequence

from bayplan.cluster.embedded.bootstrap import bootstrap
from bayplan.cluster.embedded.controllers.contract import ANY_CUSTOM, Concern, Controller, Gathered, View
from bayplan.cluster.embedded.server import Server
from bayplan.cluster.embedded.store import Change, Key, Store
from bayplan.cluster.embedded.writes import Writer
from bayplan.cluster.kinds import Kind, is_built_in
from bayplan.model.clock import MILLISECOND, SECOND, Instant
from bayplan.model.errors import ApiError

_BACKOFF_FIRST = 5 * MILLISECOND
_BACKOFF_MOST = 1000 * SECOND  # both as client-go's default rate limiter

Item = tuple[int, Key]
"""A controller, by its place in the list, and one of its objects."""


class World:
    """A cluster that moves: store, API, controllers, timers. Time is whatever `advance` was last given."""

    def __init__(
        self,
        controllers: Sequence[Controller],
        *,
        seed: int,
        start: Instant,
        history: int = 10_000,
        events: bool = True,
    ) -> None:
        self.now = start
        self.chance = random.Random(seed)
        self.store = Store(history=history)
        self.server = Server(self.store, lambda: self.now, self.chance)
        self.reconciles = 0
        self._writer = Writer(self.server, events=events)
        self._controllers = controllers
        self._marked: OrderedDict[Item, None] = OrderedDict()  # a plain dict is slow to take the first from
        self._timers: list[tuple[Instant, int, Item]] = []
        self._timer_of: dict[Item, Instant] = {}
        self._sequence = 0
        self._failures: dict[Item, int] = {}
        self._watchers: dict[Kind, list[tuple[int, Concern, Gathered | None]]] = {}
        for number, controller in enumerate(controllers):
            for kind, concern in controller.watches.items():
                gathered = concern if isinstance(concern, Gathered) else None
                self._watchers.setdefault(kind, []).append((number, concern, gathered))
        self.store.listeners.append(self._mark)
        bootstrap(self.server)

    def _mark(self, change: Change) -> None:
        view: View = self.store
        watchers = self._watchers.get(change.new.kind)
        if watchers is None:
            found = [] if is_built_in(change.new.kind) else self._watchers.get(ANY_CUSTOM, [])
            watchers = self._watchers[change.new.kind] = found
        for number, concern, gathered in watchers:
            for key in concern(change, view):
                if gathered is not None and gathered.waits(key, view):
                    self._wake_by((number, key), Instant(self.now + gathered.span))
                else:
                    self._marked[(number, key)] = None

    @property
    def busy(self) -> bool:
        """Whether anything is to be done at the present instant."""
        return bool(self._marked)

    @property
    def next_timer(self) -> Instant | None:
        """When the world wants to be woken, if ever."""
        while self._timers and self._timer_of.get(self._timers[0][2]) != self._timers[0][0]:
            heapq.heappop(self._timers)  # replaced by an earlier or later one
        return self._timers[0][0] if self._timers else None

    def settle(self, most: int | None = None) -> int:
        """Look at marked objects until none is left, or `most` have been looked at. Time stands still."""
        looked = 0
        marked = self._marked
        while marked and (most is None or looked < most):
            self._look(marked.popitem(last=False)[0])
            looked += 1
        self.reconciles += looked
        return looked

    def catch_up(self, to: Instant) -> None:
        """Real time: move to an instant and mark what has fallen due. `settle` then does the work."""
        self.now = max(self.now, to)
        self._fire()

    def advance(self, to: Instant) -> None:
        """Let time pass up to an instant, doing everything that falls due on the way, in order."""
        self.settle()
        while (due := self.next_timer) is not None and due <= to:
            self.now = max(self.now, due)
            self._fire()
            self.settle()
        self.now = max(self.now, to)

    def _fire(self) -> None:
        """Mark whatever is due now."""
        while (due := self.next_timer) is not None and due <= self.now:
            _, _, item = heapq.heappop(self._timers)
            del self._timer_of[item]
            self._marked[item] = None

    def _look(self, item: Item) -> None:
        number, key = item
        outcome = self._controllers[number].reconcile(key, self.store, self.now)
        refused = False
        for write in outcome.writes:
            try:
                self._writer.apply(write)
            except ApiError:
                refused = True  # the writer has told it in an Event where the controller wished so; look again later
                break
        if refused:
            count = self._failures[item] = self._failures.get(item, 0) + 1
            self._wake(item, Instant(self.now + min(_BACKOFF_FIRST << min(count - 1, 20), _BACKOFF_MOST)))
            return
        if self._failures:
            self._failures.pop(item, None)
        if outcome.again is not None:
            self._wake(item, outcome.again)

    def _wake_by(self, item: Item, at: Instant) -> None:
        due = self._timer_of.get(item)
        if due is None or due > at:
            self._wake(item, at)

    def _wake(self, item: Item, at: Instant) -> None:
        if self._timer_of.get(item) == at:
            return
        self._timer_of[item] = at
        self._sequence += 1
        heapq.heappush(self._timers, (at, self._sequence, item))
