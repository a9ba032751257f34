"""What a reflector does next: no I/O, no clock, no randomness of its own. What happened goes in, a Step comes out.

    STREAMING   the present objects come as a stream (WatchList); InitialEnd makes it WATCHING
    LISTING     the present objects come in pages, where the server does not stream them
    WATCHING    news come, from `revision` on
    RESTING     something failed; try again when the pause is over
    STOPPED     it will not work; the error is handed out

The memory is an index from (namespace, name) to uid and revision. While the present is read anew, `_old` holds what was
known and not met again: at the end it is what has gone in between, and each of those is told as DELETED. An object
whose uid has changed is another object: the old one is DELETED, the new one ADDED. So whatever breaks on the way, the
changes that come out are a correct story: each object ADDED once, then MODIFIED, then DELETED once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import ClassVar, Literal

import msgspec

from bayplan.cluster.kinds import Kind
from bayplan.cluster.live.wire import InitialEnd
from bayplan.cluster.objects import Object, version_of
from bayplan.cluster.port import Page, WatchEvent
from bayplan.model.errors import ApiError, BadRequest, BayplanError, Expired, Invalid, PermanentError
from bayplan.model.meta import ObjectMeta

Key = tuple[str, str]
"""Namespace and name."""
Known = tuple[str, str]
"""Uid and revision."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a reflector."""

    stall: float = 70.0
    """Seconds without event or bookmark after which a connection counts as dead: bookmarks come every minute."""
    first_pause: float = 0.5
    longest_pause: float = 30.0
    refusals: int = 8
    """How often in a row a reflector that has worked before puts up with refusals: a server that has just started
    knows neither roles nor custom kinds yet, and says 403 or 404. With the pauses between them this is a minute."""
    lasting: float = 5.0
    """Seconds after which a watch that ends has worked, even if nothing happened that it could tell."""
    stalls: int = 5
    """After so many stalls in a row the present is read anew. A watch from a revision that the server has not reached
    (its store was restored from a backup) is silent for ever."""


class State(Enum):
    """Where a reflector stands."""

    STREAMING = "streaming"
    LISTING = "listing"
    WATCHING = "watching"
    RESTING = "resting"
    STOPPED = "stopped"


class Change(msgspec.Struct, frozen=True, gc=False):
    """One change of one object.

    A `synthetic` DELETED was inferred, not heard: its object has name, namespace, uid and last known revision only.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: Object
    synthetic: bool = False


# --- what happened


class Told(msgspec.Struct, frozen=True):
    """The stream brought events."""

    events: Sequence[WatchEvent]


class Closed(msgspec.Struct, frozen=True):
    """The server ended the stream, as it does from time to time."""

    lived: float = 0.0
    """Seconds since the server had accepted the watch."""


class Failed(msgspec.Struct, frozen=True):
    """A request or a stream failed."""

    error: BayplanError
    lived: float = 0.0
    """As in Closed."""


class Stalled(msgspec.Struct, frozen=True):
    """Nothing came for as long as the policy waits."""


class Rested(msgspec.Struct, frozen=True):
    """The pause is over."""


Stimulus = Page | Told | Closed | Failed | Stalled | Rested


# --- what to do


class Fetch(msgspec.Struct, frozen=True):
    """Ask for a page of the list."""

    after: str = ""


class Stream(msgspec.Struct, frozen=True):
    """Open a watch: from a revision, or with the present objects first."""

    since: str = ""
    initial: bool = False
    late: bool = False
    """Nobody has listened since the revision: what the watch tells first happened at no known time."""


class Read(msgspec.Struct, frozen=True):
    """Go on reading the stream."""


class Rest(msgspec.Struct, frozen=True):
    """Wait so many seconds."""

    seconds: float
    error: BayplanError | None = None


class Stop(msgspec.Struct, frozen=True):
    """Give up, and say why."""

    error: BayplanError


Instruction = Fetch | Stream | Read | Rest | Stop


class Step(msgspec.Struct, frozen=True):
    """What came of a stimulus: changes to hand out, and what to do next."""

    then: Instruction
    changes: tuple[Change, ...] = ()
    synced: bool = False
    """The present is now known completely; before this, objects may still be missing."""


class InvalidTransition(Exception):
    """A stimulus that cannot happen in this state: a fault of the shell. Tells the last steps."""


class ReflectorCore:
    """Follows one kind. Give each stimulus to `handle` and do what the Step says."""

    def __init__(
        self,
        kind: Kind,
        *,
        policy: Policy = Policy(),  # noqa: B008 - frozen
        random: Callable[[], float],
        streams: bool = True,
        since: str = "",
        known: Mapping[Key, Known] | None = None,
    ) -> None:
        """`since` and `known` take up where an earlier run ended; `streams` says whether to try a streamed list."""
        self.state = State.WATCHING if since else State.STREAMING
        self.revision = since
        self._kind = kind
        self._policy = policy
        self._random = random
        self._streams = streams
        self._index: dict[Key, Known] = dict(known or {})
        self._old: dict[Key, Known] = {}
        self._worked = False
        """Something has come from the server before."""
        self._heard = False
        """Something has come from this stream."""
        self._late = bool(since)
        """Something may have happened that no stream told as it happened."""
        self._failures = self._refusals = self._stalls = self._expiries = 0
        """Each: in a row."""
        self._history: list[str] = []

    def start(self) -> Instruction:
        """The first thing to do."""
        return self._resume()

    def handle(self, stimulus: Stimulus) -> Step:
        """What to do now that this has happened. Raises InvalidTransition."""
        rule = self._RULES.get((self.state, type(stimulus)))
        self._history = [*self._history[-9:], f"{self.state.value}: {type(stimulus).__name__}"]
        if rule is None:
            raise InvalidTransition(f"{self._kind.resource}: the last steps were {'; '.join(self._history)}")
        return rule(self, stimulus)

    def __len__(self) -> int:
        """How many objects are known."""
        return len(self._index) + len(self._old)

    # --- reading the present

    def _sync(self) -> Instruction:
        """Begin to read the present; what is known so far is to be met again."""
        self._old |= self._index
        self._index = {}
        self.revision = ""
        self.state = State.STREAMING if self._streams else State.LISTING
        return Stream(initial=True) if self._streams else Fetch()

    def _page(self, page: Page) -> Step:
        changes: list[Change] = []
        for item in page.items:
            self._tell(changes, "ADDED", item)
        self._succeed()
        if page.next:
            return Step(Fetch(page.next), tuple(changes))
        self._finish(changes, page.revision)
        return Step(self._resume(), tuple(changes), synced=True)

    def _initial(self, told: Told) -> Step:
        """Events of a streamed list. Those after InitialEnd are news already."""
        changes: list[Change] = []
        synced = False
        for event in told.events:
            if isinstance(event, InitialEnd):
                self._finish(changes, event.revision)
                self.state, synced = State.WATCHING, True
            else:
                self._hear(changes, event)
        self._succeed()
        return Step(Read(), tuple(changes), synced)

    def _finish(self, changes: list[Change], revision: str) -> None:
        changes += [self._inferred(key, known) for key, known in self._old.items()]
        self._old = {}
        self.revision = revision

    # --- hearing news

    def _news(self, told: Told) -> Step:
        changes: list[Change] = []
        for event in told.events:
            self._hear(changes, event)
        self._succeed()
        self._expiries = 0
        return Step(Read(), tuple(changes))

    def _hear(self, changes: list[Change], event: WatchEvent) -> None:
        if event.object is not None and event.type != "BOOKMARK":
            self._tell(changes, event.type, event.object)
        if self.state is State.WATCHING and event.revision:  # an object may come without
            self.revision = event.revision

    def _tell(self, changes: list[Change], kind: Literal["ADDED", "MODIFIED", "DELETED"], item: Object) -> None:
        """Add what an object's appearance means, given what was known of its name."""
        key, revision = item.key, item.meta.resource_version
        was = self._old.pop(key, None) or self._index.get(key)
        if was is not None and was[0] != item.uid:
            changes.append(self._inferred(key, was))
            was = None
        if kind == "DELETED":
            self._index.pop(key, None)
            if was is not None:  # else it was never told, and need not be
                changes.append(Change("DELETED", item))
            return
        self._index[key] = (item.uid, revision)
        if was is None or was[1] != revision:
            changes.append(Change("ADDED" if was is None else "MODIFIED", item))

    def _inferred(self, key: Key, known: Known) -> Change:
        uid, revision = known
        meta = ObjectMeta(namespace=key[0], name=key[1], uid=uid, resource_version=revision)
        return Change("DELETED", Object(self._kind, meta, {}, version_of(revision)), True)

    def _succeed(self) -> None:
        self._worked = self._heard = True
        self._late = False
        self._failures = self._refusals = self._stalls = 0

    # --- going on

    def _resume(self) -> Instruction:
        """Go on from the last revision, or read the present where there is none."""
        self._heard = False
        if not self.revision:
            return self._sync()
        self.state = State.WATCHING
        return Stream(self.revision, late=self._late)

    def _closed(self, closed: Closed) -> Step:
        """A stream that has worked is taken up at once; one that has not, after a pause."""
        self._lasted(closed.lived)
        self._late = self._late and not self._heard
        if self._heard and self.state is State.WATCHING:
            return Step(self._resume())
        return self._rest()

    def _lasted(self, lived: float) -> None:
        """A long silence that was listened to is a success like another: failures before it are not in a row."""
        if lived >= self._policy.lasting:
            self._heard = True
            self._failures = self._refusals = 0

    def _stalled(self, _: Stalled) -> Step:
        self._late = True
        self._stalls += 1
        if self._stalls >= self._policy.stalls:
            self._stalls = 0
            self.revision = ""
        return self._rest()

    def _failed(self, failed: Failed) -> Step:
        error = failed.error
        self._late = True
        self._lasted(failed.lived)
        if isinstance(error, Expired):
            return self._expired(error)
        if self.state is State.STREAMING and isinstance(error, (Invalid, BadRequest)):
            self._streams = False
            return Step(self._sync())
        if not isinstance(error, PermanentError):
            self._refusals = 0
            return self._rest(error)
        self._refusals += 1
        if self._worked and self._refusals <= self._policy.refusals:
            return self._rest(error)
        self.state = State.STOPPED
        return Step(Stop(error))

    def _expired(self, error: Expired) -> Step:
        """Read the present: at once, but after a pause where that did not help the last time."""
        at_once = self.state is State.WATCHING and not self._expiries
        self.revision = ""
        self._expiries += 1
        if at_once:
            return Step(self._resume())
        self._failures = max(self._failures, self._expiries)
        return self._rest(error)

    def _rest(self, error: BayplanError | None = None) -> Step:
        """Pause for a while that doubles with each failure in a row, never all reflectors for the same while."""
        policy = self._policy
        pause = min(policy.first_pause * 2 ** min(self._failures, 20), policy.longest_pause) * (
            0.5 + self._random() / 2
        )
        if isinstance(error, ApiError):
            pause = max(pause, error.details.retryAfterSeconds)
        self._failures += 1
        self.state = State.RESTING
        return Step(Rest(pause, error))

    def _rested(self, _: Rested) -> Step:
        return Step(self._resume())

    _RULES: ClassVar[dict[tuple[State, type], Callable[..., Step]]] = {
        (State.STREAMING, Told): _initial,
        (State.STREAMING, Closed): _closed,
        (State.STREAMING, Stalled): _stalled,
        (State.STREAMING, Failed): _failed,
        (State.LISTING, Page): _page,
        (State.LISTING, Stalled): _stalled,
        (State.LISTING, Failed): _failed,
        (State.WATCHING, Told): _news,
        (State.WATCHING, Closed): _closed,
        (State.WATCHING, Stalled): _stalled,
        (State.WATCHING, Failed): _failed,
        (State.RESTING, Rested): _rested,
    }
