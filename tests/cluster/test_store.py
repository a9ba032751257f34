"""The store against a plain model: what is there, in which order, who owns what, and the history from any revision."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bayplan.cluster.embedded.store import Change, ChangeType, Store
from bayplan.cluster.kinds import CONFIG_MAP, NODE, POD, Kind
from bayplan.cluster.objects import Object, Section
from bayplan.model.errors import Expired
from bayplan.model.meta import ObjectMeta, OwnerReference

Where = tuple[Kind, str, str]

KINDS = st.sampled_from([POD, CONFIG_MAP])
NAMESPACES = st.sampled_from(["a", "b-1", "b"])
NAMES = st.sampled_from(["x", "y", "y-1", "y.1", "z0"])
OWNERS = st.lists(st.sampled_from(["uid-1", "uid-2", "uid-3"]), unique=True, max_size=2)
NODES = st.sampled_from(["", "node-1", "node-2"])
KEEP = 5


def meta(namespace: str, name: str, *owners: str, **labels: str) -> ObjectMeta:
    references = tuple(OwnerReference(api_version="v1", kind="Job", name=uid, uid=uid) for uid in owners)
    return ObjectMeta(name=name, namespace=namespace, owner_references=references, labels=labels)


def sections(node: str = "") -> dict[str, Section]:
    spec = f'{{"nodeName":"{node}"}}' if node else "{}"
    return {"spec": Section(spec.encode())}


class StoreMachine(RuleBasedStateMachine):
    """Random writes on the store and on dicts; after each, every question has the same answer."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(history=KEEP)
        self.present: dict[Where, Object] = {}
        self.owners: dict[Where, list[str]] = {}
        self.nodes: dict[Where, str] = {}
        self.history: list[tuple[int, str, Where, int | None]] = []
        self.heard: list[Change] = []
        self.forgotten = 0
        self.store.listeners.append(self.heard.append)

    @rule(kind=KINDS, namespace=NAMESPACES, name=NAMES, owners=OWNERS, node=NODES)
    def put(self, kind: Kind, namespace: str, name: str, owners: list[str], node: str) -> None:
        where = (kind, namespace, name)
        old = self.present.get(where)
        node = self.nodes.get(where) or node if kind is POD else ""  # a pod is bound once
        new = self.store.put(kind, meta(namespace, name, *owners), sections(node))
        assert new.meta.resource_version == str(new.version) == str(self.store.revision)
        self.history.append((new.version, "MODIFIED" if old else "ADDED", where, old.version if old else None))
        self.present[where], self.owners[where], self.nodes[where] = new, owners, node

    @precondition(lambda self: self.present)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        where = data.draw(st.sampled_from(sorted(self.present, key=str)))
        old = self.present.pop(where)
        last = self.store.remove(*where)
        assert last.version == self.store.revision > old.version
        assert (last.sections, last.uid, last.key) == (old.sections, old.uid, old.key)
        self.history.append((last.version, "DELETED", where, old.version))
        del self.owners[where], self.nodes[where]

    @rule(kind=KINDS, namespace=NAMESPACES)
    def remove_what_is_not_there(self, kind: Kind, namespace: str) -> None:
        revision = self.store.revision
        with pytest.raises(KeyError):
            self.store.remove(kind, namespace, "never")
        assert self.store.revision == revision

    @rule(back=st.integers(0, 4))
    def compact(self, back: int) -> None:
        self.forgotten = max(self.forgotten, self.store.revision - back)
        self.store.compact(max(0, self.store.revision - back))

    @invariant()
    def reads_agree(self) -> None:
        for kind in (POD, CONFIG_MAP):
            mine = sorted((where[1:], item) for where, item in self.present.items() if where[0] is kind)
            assert [*self.store.objects(kind)] == [item for _, item in mine]
            assert self.store.count(kind) == len(mine)
            for namespace in ("a", "b", "b-1", "none"):
                here = [item for (home, _), item in mine if home == namespace]
                assert [*self.store.objects(kind, namespace)] == here
                assert self.store.count(kind, namespace) == len(here)
        for where, item in self.present.items():
            assert self.store.get(*where) is item
        assert self.store.get(POD, "a", "never") is None

    @invariant()
    def indexes_agree(self) -> None:
        for uid in ("uid-1", "uid-2", "uid-3"):
            mine = {where for where, owners in self.owners.items() if uid in owners}
            assert {(item.kind, *item.key) for item in self.store.owned_by(uid)} == mine
            assert {item.version for item in self.store.owned_by(uid)} == {self.present[each].version for each in mine}
            pods = {(namespace, name) for kind, namespace, name in mine if kind is POD}
            assert {item.key for item in self.store.owned_by(uid, POD)} == pods
        for node in ("node-1", "node-2"):
            bound = {self.present[where] for where, its in self.nodes.items() if its == node}
            assert set(self.store.pods_on(node)) == bound

    @invariant()
    def the_log_of_any_revision_is_the_history_or_expired(self) -> None:
        for kind in (POD, CONFIG_MAP):
            log = self.store.log(kind)
            mine = [entry for entry in self.history if entry[2][0] is kind]
            for since in range(self.store.revision + 1):
                later = [entry for entry in mine if entry[0] > since]
                try:
                    told = log.read(log.after(since), 1000)
                except Expired:
                    assert since < self.forgotten or len(later) > KEEP
                else:
                    assert [entry(change) for change in told] == later

    @invariant()
    def listeners_heard_everything(self) -> None:
        assert [entry(change) for change in self.heard] == self.history


def entry(change: Change) -> tuple[int, str, Where, int | None]:
    where = (change.kind, *change.new.key)
    return change.revision, change.type.value, where, None if change.old is None else change.old.version


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def fill(store: Store, count: int, kind: Kind = CONFIG_MAP) -> None:
    for number in range(count):
        store.put(kind, meta("a", f"n{number}"), {})


def test_a_position_stays_good_while_others_come_and_go() -> None:
    store = Store(history=3)
    fill(store, 2)
    log = store.log(CONFIG_MAP)
    position = log.after(1)
    fill(store, 2, NODE)
    (change,) = log.read(position, 10)
    assert (change.type, change.revision) == (ChangeType.ADDED, 2)
    assert log.read(position + 1, 10) == []


def test_at_least_the_promised_history_is_kept_and_at_most_twice_as_much() -> None:
    store = Store(history=3)
    log = store.log(CONFIG_MAP)
    for written in range(1, 50):
        fill(store, 1)
        kept = len(log.read(log.after(max(log.compacted, 0)), 100))
        assert min(written, 3) <= kept < 6


def test_a_watcher_that_fell_behind_is_told_so() -> None:
    store = Store(history=2)
    fill(store, 1)
    log = store.log(CONFIG_MAP)
    behind, at_end = log.after(0), log.end
    fill(store, 4)
    with pytest.raises(Expired):
        log.read(behind, 10)
    with pytest.raises(Expired):
        log.read(at_end, 10)
    assert log.read(log.end, 10) == []


def test_compaction_of_nothing_new_keeps_a_watcher_at_the_end() -> None:
    store = Store()
    fill(store, 3)
    log = store.log(CONFIG_MAP)
    position = log.end
    store.compact()
    fill(store, 1)
    assert [change.revision for change in log.read(position, 10)] == [4]


def test_a_kind_first_seen_after_compaction_has_no_older_history() -> None:
    store = Store()
    fill(store, 3)
    store.compact()
    with pytest.raises(Expired):
        store.log(NODE).after(2)
    assert store.log(NODE).after(3) == 0


def test_a_removed_object_may_be_given_its_last_state() -> None:
    store = Store()
    old = store.put(CONFIG_MAP, meta("a", "x", state="old"), {})
    store.remove(CONFIG_MAP, "a", "x", Object(CONFIG_MAP, meta("a", "x", state="last"), {}, old.version))
    log = store.log(CONFIG_MAP)
    change = log.read(log.after(1), 1)[0]
    assert (change.new.meta.labels, change.old) == ({"state": "last"}, old)


@pytest.mark.parametrize("kind", [CONFIG_MAP, POD], ids=lambda kind: kind.name)
def test_the_indexes_hold_nothing_of_what_is_gone(kind: Kind) -> None:
    store: Any = Store()
    for node in ("node-1", "node-2"):
        store.put(kind, meta("a", node, "uid"), sections(node))
        store.remove(kind, "a", node)
    assert store.owned_by("uid") == []
    assert [*store.kinds()] == [kind]
