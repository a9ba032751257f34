"""A cluster at one time, as plain objects: read with list calls alone, kept in a file, or the end of a recording."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from bayplan.cluster.kinds import NODE, POD, Kind, is_built_in
from bayplan.cluster.objects import Object
from bayplan.cluster.paging import all_of
from bayplan.cluster.port import Cluster
from bayplan.model import objects
from bayplan.model.clock import Instant
from bayplan.model.errors import Expired, Forbidden, NotFound
from bayplan.model.pods import Pod
from bayplan.scheduling.state import ClusterState
from bayplan.simulate.recording.file import Entry, Recording, Writer
from bayplan.simulate.twin.kinds import ALL, NEEDED

_TRIES = 3
_NOT_WHOLE = "the file ends before all was read that was there"


class Snapshot(msgspec.Struct, frozen=True):
    """What was there."""

    at: Instant
    source: str
    objects: tuple[Object, ...]
    lacking: tuple[str, ...] = ()
    """Resources that could not be read."""
    notes: tuple[str, ...] = ()
    """What whoever asks must know of it."""

    def of(self, kind: Kind) -> list[Object]:
        """The objects of a kind, the oldest first: the best guess of the order in which a scheduler met them."""
        found = (item for item in self.objects if item.kind is kind)
        return sorted(found, key=lambda item: (item.meta.creation_timestamp or "", item.key))

    def pods(self) -> list[Pod]:
        """The pods, the oldest first."""
        return [item.view(Pod) for item in self.of(POD)]

    def state(self) -> ClusterState:
        """What decisions are made on."""
        state = ClusterState()
        around = [item for item in self.objects if item.kind not in NEEDED]
        for item in (*around, *self.of(NODE), *self.of(POD)):
            view = objects.KINDS.get(item.kind.name)
            if view is not None:
                state.put(item.view(view) if is_built_in(item.kind) else objects.decode(item.raw(), view))
        return state


async def read_cluster(cluster: Cluster, source: str, at: Instant) -> Snapshot:
    """All that decisions depend on. Raises Forbidden where nodes or pods must not be listed."""
    found = await asyncio.gather(*(listed(cluster, kind) for kind in ALL))
    lacking = [kind for kind, items in zip(ALL, found, strict=True) if items is None]
    missing = [kind.resource for kind in lacking if kind in NEEDED]
    if missing:
        raise Forbidden(
            f"a twin needs to list nodes and pods in all namespaces; lacking: {', '.join(missing)}",
            hint="ask for a ClusterRole with the verb list on nodes and pods; the built-in one named view lacks nodes",
        )
    items = tuple(item for each in found for item in each or ())
    return Snapshot(at, source, items, tuple(kind.resource for kind in lacking))


async def listed(cluster: Cluster, kind: Kind) -> list[Object] | None:
    """All of a kind; None if they must not be listed. A cluster that does not have the kind has none of it."""
    for attempt in range(_TRIES):
        try:
            return [each async for each in all_of(cluster, kind)]
        except Forbidden:
            return None
        except NotFound:
            return []
        except Expired:  # the list took longer than the server remembers
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("unreachable")


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Keep it in a file. Raises OSError."""
    with Writer(path, snapshot.source, snapshot.at, snapshot.notes) as file:
        for item in snapshot.objects:
            file.add(Entry(snapshot.at, "ADDED", item))
        file.add(Entry(snapshot.at, "SYNCED", lacking=snapshot.lacking))
        file.add(Entry(snapshot.at, "END"))


def read_snapshot(path: Path) -> Snapshot:
    """The cluster as a file leaves it: a twin's, or a recording's at its end. Raises RecordingError, OSError."""
    file = Recording(path)
    present: dict[tuple[Kind, str, str], Object] = {}
    at, lacking, notes = file.began, tuple[str, ...](), (*file.header.notes, _NOT_WHOLE)
    for entry in file.entries():
        at = entry.at
        if entry.type == "SYNCED":
            lacking, notes = entry.lacking, file.header.notes
        if (item := entry.object) is not None:
            place = (item.kind, *item.key)
            if entry.type == "DELETED":
                present.pop(place, None)
            else:
                present[place] = item
    return Snapshot(at, file.header.source, tuple(present.values()), lacking, notes)
