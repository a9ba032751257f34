"""Holds: limits that differ from a group's own for a while, and how every one of them finds its way back.

One writer for a tree. A hold on a container raises the limits above it by as much, for a limit is worth no more than
its parents' (and version 1 refuses a child above its parent): parents first on the way up, last on the way down. A
limit that somebody else has changed meanwhile is theirs: it is left as it is, and forgotten.
"""

from __future__ import annotations

import math

import msgspec

from bayplan.model.clock import Instant
from bayplan.model.errors import BayplanError
from bayplan.node.cgroup.journal import FullJournalError
from bayplan.node.cgroup.port import Bandwidth, GroupGoneError, Tree, UnsupportedError, WriteRefusedError


class Hold(msgspec.Struct, frozen=True):
    """What a group was given, and until when; None: until it is released."""

    path: str
    given: Bandwidth
    until: Instant | None = None


class Release(msgspec.Struct, frozen=True):
    """How a hold ended. `kept` says why the limit was not written: the group is gone, or somebody else changed it."""

    path: str
    until: Instant | None
    kept: str = ""


class Holds:
    """All holds on a tree. Not shared: whoever else writes limits is somebody else."""

    def __init__(self, tree: Tree, unjournalled: Tree | None = None) -> None:
        """A group's own limit goes back through the second tree: that is no news for a journal, and must not wait."""
        self._tree, self._plain = tree, unjournalled or tree
        self._holds: dict[str, Hold] = {}
        self._own: dict[str, Bandwidth] = {}
        self._written: dict[str, Bandwidth] = {}

    @property
    def next_due(self) -> Instant | None:
        """When the next hold ends by itself."""
        return min((hold.until for hold in self._holds.values() if hold.until is not None), default=None)

    def own(self, path: str) -> Bandwidth:
        """The group's own limit, whatever it was given meanwhile. Raises GroupGoneError."""
        return self._own.get(path) or self._tree.group(path).bandwidth()

    def hold(self, hold: Hold) -> str:
        """Give a group another limit; one that is held gets the new one. Returns why not, where it was left alone.

        Raises the errors of `set_bandwidth`; nothing is held then.
        """
        if kept := self._left_alone(hold.path):
            self._settle([hold.path])
            return kept
        self._own.setdefault(hold.path, self._tree.group(hold.path).bandwidth())
        self._holds[hold.path] = hold
        if refusals := self._settle([hold.path]):
            self.release(hold.path)
            raise refusals[0]
        return ""

    def expire(self, path: str, at: Instant) -> None:
        """Have a hold end by itself; a group that is not held stays as it is."""
        if path in self._holds:
            self._holds[path] = msgspec.structs.replace(self._holds[path], until=at)

    def release(self, path: str) -> Release | None:
        """Give a group its own limit back; None where it is not held."""
        return next(iter(self._release([path])), None)

    def release_due(self, now: Instant) -> list[Release]:
        """End the holds whose time is over, the oldest first."""
        due = sorted((hold.until, path) for path, hold in self._holds.items() if hold.until and hold.until <= now)
        return self._release([path for _, path in due])

    def release_all(self) -> list[Release]:
        """End every hold."""
        return self._release([*self._holds])

    def _release(self, paths: list[str]) -> list[Release]:
        """End holds together. A step that the kernel refuses does not stop the others."""
        held = [(path, self._holds[path], self._left_alone(path)) for path in paths if path in self._holds]
        for path, _, _ in held:
            self._holds.pop(path, None)
        refused = "; ".join(error.message for error in self._settle([path for path, _, _ in held]))
        return [Release(path, hold.until, kept or refused) for path, hold, kept in held]

    def _left_alone(self, path: str) -> str:
        """Why a group is not ours to write any more; it is forgotten then."""
        try:
            current = self._tree.group(path).bandwidth()
        except GroupGoneError:
            self._forget(path)
            return "the group is gone"
        if current == self._written.get(path, current):
            return ""
        self._forget(path)
        return f"somebody else set it to {_text(current)}"

    def _in_force(self, path: str) -> Bandwidth | None:
        """The limit that a group of ours has now; None where it is not ours, or gone."""
        try:
            return None if self._left_alone(path) else self._written.get(path) or self.own(path)
        except GroupGoneError:  # between two looks
            self._forget(path)
            return None

    def _settle(self, leaves: list[str]) -> list[BayplanError]:
        """Write what these groups and those above them should have now. Returns what the kernel refused.

        First what rises, from the top, then what falls, from the bottom: no child is ever above its parent. A limit
        that could not be given back before, for a parent was below it, is tried again each time.
        """
        concerned = {path for leaf in leaves for path in _lineage(leaf)}
        owed = {path for leaf in self._written if leaf not in self._holds for path in _lineage(leaf)}
        lineage = sorted(concerned | owed, key=lambda path: path.count("/"))
        before = {path: known for path in lineage if (known := self._in_force(path)) is not None}
        ours = [*before]
        for path in ours:
            self._own.setdefault(path, before[path])
        falling = [path for path in ours if _height(self._wanted(path)) < _height(before[path])]
        refusals: list[BayplanError] = []
        gone = False
        for path in [*(path for path in ours if path not in falling), *reversed(falling)]:
            try:
                self._write(path)
            except GroupGoneError:
                self._forget(path)
                gone = True
            except (WriteRefusedError, UnsupportedError, FullJournalError) as error:
                if path in concerned:
                    refusals.append(error)
        return refusals + (self._settle(leaves) if gone else [])  # those above were raised for one that is no more

    def _write(self, path: str) -> None:
        own, wanted = self._own[path], self._wanted(path)
        if wanted != self._written.get(path, own):
            (self._plain if wanted == own else self._tree).group(path).set_bandwidth(wanted)
            self._written[path] = wanted
        if path not in self._holds and wanted == own:
            self._forget(path)

    def _wanted(self, path: str) -> Bandwidth:
        """What the group is given, or its own, and what its descendants were given beyond their own."""
        hold = self._holds.get(path)
        base = self._own[path] if hold is None else hold.given
        if base.quota_us is None:
            return base
        below = [(self._own[each], self._holds[each].given) for each in self._holds if _is_below(each, path)]
        quota = base.quota_us + sum(_more(own, given, "quota_us", base.period_us) for own, given in below)
        burst = base.burst_us + sum(_more(own, given, "burst_us", base.period_us) for own, given in below)
        return msgspec.structs.replace(base, quota_us=quota, burst_us=min(burst, quota))

    def _forget(self, path: str) -> None:
        self._own.pop(path, None)
        self._holds.pop(path, None)
        self._written.pop(path, None)


def _more(own: Bandwidth, given: Bandwidth, field: str, period_us: int) -> int:
    """What a group was given beyond its own quota or burst, as of a period of another length, rounded up."""
    if own.quota_us is None or given.quota_us is None:
        return 0
    before: int = getattr(own, field)
    now: int = getattr(given, field)
    return max(0, -((before * given.period_us - now * own.period_us) * period_us // (given.period_us * own.period_us)))


def _lineage(path: str) -> list[str]:
    """The group and those above it, the highest first, without the root, which has no limit."""
    parts = [part for part in path.split("/") if part]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


def _is_below(path: str, above: str) -> bool:
    return path.startswith(above.rstrip("/") + "/")


def _height(bandwidth: Bandwidth) -> float:
    return math.inf if bandwidth.cpus is None else bandwidth.cpus


def _text(bandwidth: Bandwidth) -> str:
    return "no limit" if bandwidth.quota_us is None else f"{bandwidth.quota_us} of {bandwidth.period_us} us"
