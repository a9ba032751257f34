"""What is kept: the present version of every object, and the recent changes of each kind.

Pure: no I/O, no clock, no opinion on what may be stored (that is admission's). One counter gives every change its
revision, as etcd does. A kind's changes stand in a log that all its watchers share: a watcher is a position in it, so
fan-out copies nothing and a slow watcher costs nothing but, in the end, its place: what the log has dropped is Expired.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from enum import Enum

import msgspec

from bayplan.cluster.kinds import CONTROLLER_REVISION, POD, REPLICA_SET, Kind, KindRegistry
from bayplan.cluster.objects import Object, Section
from bayplan.model.errors import Expired
from bayplan.model.meta import ObjectMeta
from bayplan.model.pods import PodSpec

_ADOPTABLE = frozenset((POD, REPLICA_SET, CONTROLLER_REVISION))

Key = tuple[str, str]
"""Namespace ('' for cluster-scoped kinds) and name."""


class ChangeType(Enum):
    """What happened to an object, in the words of a watch."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change:
    """One step of an object's life. `new` is the last state, also of a deleted object; `old` the one before, if any."""

    __slots__ = ("new", "old", "type")

    def __init__(self, type_: ChangeType, new: Object, old: Object | None) -> None:
        self.type = type_
        self.new = new
        self.old = old

    @property
    def revision(self) -> int:
        """The revision the change made."""
        return self.new.version

    @property
    def kind(self) -> Kind:
        """The kind of the changed object."""
        return self.new.kind


class Log:
    """The recent changes of one kind, oldest first, each at a position that never changes."""

    __slots__ = ("_changes", "_first", "compacted", "keep")

    def __init__(self, keep: int, compacted: int) -> None:
        self._changes: list[Change] = []
        self._first = 0  # the position of _changes[0]
        self.keep = keep
        self.compacted = compacted  # changes up to this revision may be missing

    @property
    def end(self) -> int:
        """The position after the newest change."""
        return self._first + len(self._changes)

    def append(self, change: Change) -> None:
        """Add a change. The oldest half goes once there are twice as many as asked for: constant cost a change."""
        self._changes.append(change)
        if len(self._changes) >= 2 * self.keep:
            self._drop(len(self._changes) - self.keep)

    def compact(self, revision: int) -> None:
        """Forget the changes up to a revision."""
        self._drop(bisect_right(self._changes, revision, key=lambda change: change.revision))
        self.compacted = max(self.compacted, revision)

    def _drop(self, count: int) -> None:
        if count:
            self.compacted = max(self.compacted, self._changes[count - 1].revision)
            del self._changes[:count]
            self._first += count

    def after(self, revision: int) -> int:
        """The position of the first change after a revision. Raises Expired when some of those are gone."""
        if revision < self.compacted:
            raise Expired(f"too old resource version: {revision} ({self.compacted})")
        return self._first + bisect_right(self._changes, revision, key=lambda change: change.revision)

    def read(self, position: int, most: int) -> list[Change]:
        """Up to `most` changes from a position on. Raises Expired when the log has moved past it."""
        if position < self._first:
            raise Expired(f"too old resource version: the watcher fell behind revision {self.compacted}")
        at = position - self._first
        return self._changes[at : at + most]


class _Shelf:
    """The objects of one kind: by namespace, then by name."""

    __slots__ = ("by_namespace", "count", "kind", "log", "sorted_names")

    def __init__(self, kind: Kind, log: Log) -> None:
        self.kind = kind
        self.log = log
        self.by_namespace: dict[str, dict[str, Object]] = {}
        self.sorted_names: dict[str, list[str]] = {}  # dropped when a name comes or goes
        self.count = 0

    def names(self, namespace: str) -> list[str]:
        names = self.sorted_names.get(namespace)
        if names is None:
            names = self.sorted_names[namespace] = sorted(self.by_namespace[namespace])
        return names


def _node_name(spec: Section) -> str:
    """Where a pod is. A spec that names no node is not decoded: most pods are stored before anybody looks at them."""
    if b'"nodeName"' not in spec.raw:
        return ""
    view: PodSpec = spec.view(PodSpec)
    return view.node_name


class Store:
    """All objects of a cluster. Every method is synchronous and finishes; a caller sees its own writes."""

    def __init__(self, *, history: int = 10_000) -> None:
        self.revision = 0
        self.registry = KindRegistry()
        self.listeners: list[Callable[[Change], None]] = []
        self._history = history
        self._compacted = 0
        self._shelves: dict[Kind, _Shelf] = {}
        self._by_owner: dict[str, dict[tuple[Kind, Key], Object]] = {}
        self._by_node: dict[str, dict[Key, Object]] = {}
        self._node_of: dict[Key, str] = {}  # of the pods that have one
        self._orphans: dict[tuple[Kind, str], dict[str, Object]] = {}

    def _shelf(self, kind: Kind) -> _Shelf:
        shelf = self._shelves.get(kind)
        if shelf is None:
            stem = self.registry.stem(kind)  # all versions of a custom kind share one shelf
            shelf = self._shelf(stem) if stem != kind else _Shelf(kind, Log(self._history, self._compacted))
            self._shelves[kind] = shelf
        return shelf

    # --- reading

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The present version of one object."""
        shelf = self._shelves.get(kind) or self._shelf(kind)
        objects = shelf.by_namespace.get(namespace)
        return None if objects is None else objects.get(name)

    def objects(self, kind: Kind, namespace: str | None = None) -> Iterator[Object]:
        """The objects of a kind, of one namespace or of all, ordered by namespace and name as etcd orders keys."""
        shelf = self._shelf(kind)
        for each in sorted(shelf.by_namespace) if namespace is None else (namespace,):
            objects = shelf.by_namespace.get(each)
            if objects:
                for name in shelf.names(each):
                    yield objects[name]

    def count(self, kind: Kind, namespace: str | None = None) -> int:
        """How many there are."""
        shelf = self._shelf(kind)
        return shelf.count if namespace is None else len(shelf.by_namespace.get(namespace, ()))

    def owned_by(self, uid: str, kind: Kind | None = None) -> list[Object]:
        """The objects that name an owner, in the order in which they came."""
        owned = self._by_owner.get(uid)
        if not owned:
            return []
        return [one for one in owned.values() if kind is None or one.kind is kind]

    def orphans(self, kind: Kind, namespace: str) -> list[Object]:
        """The objects of an adoptable kind that nobody controls, in one namespace."""
        return [*self._orphans.get((kind, namespace), {}).values()]

    def pods_on(self, node: str) -> list[Object]:
        """The pods bound to a node, in the order in which they were bound."""
        return [*self._by_node.get(node, {}).values()]

    def kinds(self) -> Iterable[Kind]:
        """The kinds that have been asked for or written so far."""
        return self._shelves.keys()

    def stem(self, kind: Kind) -> Kind:
        """The kind that stored objects of a kind have."""
        return self._shelf(kind).kind

    def log(self, kind: Kind) -> Log:
        """The shared log of a kind."""
        return self._shelf(kind).log

    # --- writing

    def put(self, kind: Kind, meta: ObjectMeta, sections: dict[str, Section]) -> Object:
        """Store a new version under the next revision and tell the listeners. The key is the metadata's."""
        self.revision += 1
        meta = msgspec.structs.replace(meta, resource_version=str(self.revision))
        shelf = self._shelf(kind)
        new = Object(shelf.kind, meta, sections, self.revision)
        objects = shelf.by_namespace.get(meta.namespace)
        if objects is None:
            objects = shelf.by_namespace[meta.namespace] = {}
        old = objects.get(meta.name)
        objects[meta.name] = new
        if old is None:
            shelf.count += 1
            shelf.sorted_names.pop(meta.namespace, None)
        self._index(new, old)
        self._record(shelf, Change(ChangeType.ADDED if old is None else ChangeType.MODIFIED, new, old))
        return new

    def remove(self, kind: Kind, namespace: str, name: str, last: Object | None = None) -> Object:
        """Take an object out. Its last state, as it was or as given, gets a revision of its own. Raises KeyError."""
        shelf = self._shelf(kind)
        old = shelf.by_namespace[namespace].pop(name)
        if not shelf.by_namespace[namespace]:
            del shelf.by_namespace[namespace]
        shelf.sorted_names.pop(namespace, None)
        shelf.count -= 1
        self._unindex(old)
        self.revision += 1
        final = old if last is None else last
        meta = msgspec.structs.replace(final.meta, resource_version=str(self.revision))
        last = Object(shelf.kind, meta, final.sections, self.revision)
        self._record(shelf, Change(ChangeType.DELETED, last, old))
        return last

    def compact(self, revision: int | None = None) -> None:
        """Forget the history up to a revision, by default all of it."""
        self._compacted = self.revision if revision is None else revision
        for shelf in self._shelves.values():
            shelf.log.compact(self._compacted)

    def _record(self, shelf: _Shelf, change: Change) -> None:
        shelf.log.append(change)
        for listener in self.listeners:
            listener(change)

    # --- indexes

    def _index(self, new: Object, old: Object | None) -> None:
        owners, key = new.meta.owner_references, new.key
        if old is not None and old.meta.owner_references != owners:
            self._drop_owners(old)
        for owner in owners:
            self._by_owner.setdefault(owner.uid, {})[new.kind, key] = new
        if new.kind in _ADOPTABLE:
            self._index_orphan(new)
        if new.kind is POD:
            self._index_node(new, key, old)

    def _index_node(self, new: Object, key: Key, old: Object | None) -> None:
        """A pod that is bound stays where it is, and its spec is read when it comes to be."""
        node = self._node_of.get(key)
        if node is None or old is None or old.sections["spec"] is not new.sections["spec"]:
            node = _node_name(new.sections["spec"])
            if not node:
                return
            self._node_of[key] = node
        self._by_node.setdefault(node, {})[key] = new

    def _index_orphan(self, new: Object) -> None:
        place = (new.kind, new.namespace)
        if new.meta.controller is None:
            self._orphans.setdefault(place, {})[new.name] = new
        elif place in self._orphans:
            self._orphans[place].pop(new.name, None)

    def _unindex(self, old: Object) -> None:
        self._drop_owners(old)
        self._orphans.get((old.kind, old.namespace), {}).pop(old.name, None)
        if old.kind is POD:
            node = self._node_of.pop(old.key, None)
            if node is not None:
                del self._by_node[node][old.key]

    def _drop_owners(self, old: Object) -> None:
        for owner in old.meta.owner_references:
            owned = self._by_owner.get(owner.uid)
            if owned is not None:
                owned.pop((old.kind, old.key), None)
                if not owned:
                    del self._by_owner[owner.uid]
