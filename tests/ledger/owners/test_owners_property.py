"""Whatever the shape of the chains and the order in which they are told: the end is the truth (L13, L4)."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.objects import Object
from bayplan.ledger.owners import Owners
from bayplan.ledger.owners.owners import GRACE
from bayplan.ledger.rows import GpuWorkload, WorkloadPodReference
from bayplan.model.clock import SECOND, Instant
from tests.ledger.owners.builders import T0, new, owner, pod, reference, workload

ENDS = {"Deleted", "Succeeded", "Failed"}


class Story(NamedTuple):
    """What happens, and to what it must lead."""

    parents: list[int | None]
    """Of each workload; cycles are allowed."""
    owners: list[int | None]
    """Of each pod."""
    deleted: list[bool]
    phases: list[list[str]]
    pods_gone: list[bool]
    order: list[int]
    """Whose next event comes next: workloads first, then pods."""
    flushes: set[int]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    count, pods = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    some = st.none() | st.integers(0, count - 1)
    phases = st.lists(st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]), min_size=1, max_size=3)
    deleted = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    of_pods = draw(st.lists(phases, min_size=pods, max_size=pods))
    gone = draw(st.lists(st.booleans(), min_size=pods, max_size=pods))
    turns = [i for i in range(count) for _ in range(2 + deleted[i])]
    turns += [count + i for i in range(pods) for _ in range(len(of_pods[i]) + gone[i])]
    order = draw(st.permutations(turns))
    return Story(
        parents=draw(st.lists(some, min_size=count, max_size=count)),
        owners=draw(st.lists(some, min_size=pods, max_size=pods)),
        deleted=deleted,
        phases=of_pods,
        pods_gone=gone,
        order=order,
        flushes=draw(st.sets(st.integers(0, len(order)), max_size=6)),
    )


class Database:
    """Takes rows as the store does."""

    def __init__(self) -> None:
        self.workloads: dict[str, GpuWorkload] = {}
        self.references: set[tuple[str, str, int]] = set()
        self.roots: dict[str, str] = {}
        self.cycles: list[str] = []

    def take(self, owners: Owners, at: Instant) -> None:
        told = owners.flush(at)
        for row in told.rows:
            if isinstance(row, GpuWorkload):
                old = self.workloads.get(row.uid)
                if old is None or row.resource_version >= old.resource_version:
                    self.workloads[row.uid] = row
            else:
                assert isinstance(row, WorkloadPodReference)
                reference = (row.pod_uid, row.workload_uid, row.depth)
                assert reference not in self.references, "each reference is told once"
                self.references.add(reference)
        self.roots |= told.roots
        self.cycles += [odd.what for odd in told.odd]


def name(n: int) -> str:
    return f"w{n}"


def obj(story: Story, n: int, version: int) -> Object:
    above = story.parents[n]
    owned_by = [] if above is None else [reference(name(above), f"Kind{above % 3}")]
    return workload(name(n), f"Kind{n % 3}", version=version, owners=owned_by)


def tell(owners: Owners, story: Story, subject: int, turn: int, at: Instant) -> None:
    """The next event of a workload or pod."""
    count = len(story.parents)
    if subject < count:
        if turn == 2:
            owners.gone(obj(story, subject, 3), at)
        else:
            owners.seen(obj(story, subject, turn + 1), at)
        return
    n = subject - count
    if turn == len(story.phases[n]):
        owners.pod_gone(f"p{n}-uid", at)
        return
    above = story.owners[n]
    controller = None if above is None else owner(name(above), f"Kind{above % 3}")
    owners.pod(pod(f"p{n}", controller, gpus=n + 1, phase=story.phases[n][turn]), at)


def play(story: Story, owners: Owners) -> tuple[Database, Instant]:
    database = Database()
    turns: dict[int, int] = {}
    at = T0
    for step, subject in enumerate(story.order):
        at = Instant(T0 + step * SECOND)
        tell(owners, story, subject, turns.get(subject, 0), at)
        turns[subject] = turns.get(subject, 0) + 1
        if step in story.flushes:
            database.take(owners, at)
    database.take(owners, at)
    return database, at


def chain(story: Story, n: int) -> list[int]:
    """The workloads above a pod, each once, by the truth alone."""
    walked: list[int] = []
    above = story.owners[n]
    while above is not None and above not in walked:
        walked.append(above)
        above = story.parents[above]
    return walked


@settings(max_examples=100, deadline=None)
@given(stories())
def test_what_is_stored_at_the_end_is_the_truth(story: Story) -> None:
    owners = new()
    database, _ = play(story, owners)
    chains = [chain(story, n) for n in range(len(story.owners))]
    assert database.references == {
        (f"p{n}-uid", f"{name(w)}-uid", depth) for n, walked in enumerate(chains) for depth, w in enumerate(walked, 1)
    }
    assert database.roots == {f"p{n}-uid": f"{name(walked[-1])}-uid" for n, walked in enumerate(chains) if walked}
    assert database.workloads.keys() == {f"{name(w)}-uid" for walked in chains for w in walked}
    for n, walked in enumerate(chains):
        if walked:
            assert owners.root_of(f"{name(walked[0])}-uid") == database.roots[f"p{n}-uid"]
    for uid, row in database.workloads.items():
        check_row(story, chains, int(uid[1:-4]), row)


def check_row(story: Story, chains: list[list[int]], n: int, row: GpuWorkload) -> None:
    above = story.parents[n]
    assert row.parent_uid == ("" if above is None else f"{name(above)}-uid")
    assert (row.end_at is not None) == story.deleted[n]
    assert (row.status in ENDS and row.end_at is not None) == story.deleted[n]
    if not story.deleted[n]:
        live = [
            p
            for p, walked in enumerate(chains)
            if n in walked and not story.pods_gone[p] and story.phases[p][-1] in ("Pending", "Running")
        ]
        assert row.gpu_request == sum((p + 1) * 1000 for p in live)


@settings(max_examples=50, deadline=None)
@given(stories())
def test_a_cycle_is_reported_once_however_many_pods_run_into_it(story: Story) -> None:
    database, _ = play(story, new())
    cycles: set[frozenset[int]] = set()
    for n in range(len(story.owners)):
        if (walked := chain(story, n)) and (again := story.parents[walked[-1]]) is not None:
            cycles.add(frozenset(walked[walked.index(again) :]))
    assert len(database.cycles) == len(cycles)


@settings(max_examples=50, deadline=None)
@given(stories(), st.data())
def test_a_restart_in_between_changes_nothing_of_the_end(story: Story, data: Any) -> None:
    """What was told before is told again by the reflectors' lists: each object's last state."""
    first, second = new(), new()
    database, at = play(story, first)
    above = {f"{name(w)}-uid" for n, gone in enumerate(story.pods_gone) if not gone for w in chain(story, n)}
    second.remember([row for uid, row in database.workloads.items() if row.end_at is None or uid in above], [])
    again = Database()
    again.workloads = dict(database.workloads)
    count = len(story.parents)
    alive = [i for i in range(count) if not story.deleted[i]]
    alive += [count + i for i in range(len(story.owners)) if not story.pods_gone[i]]
    for subject in data.draw(st.permutations(alive)):
        turn = 1 if subject < count else len(story.phases[subject - count]) - 1
        tell(second, story, subject, turn, at)
    again.take(second, at)
    for uid, row in database.workloads.items():
        now = again.workloads[uid]
        assert (now.gpu_request, now.parent_uid) == (row.gpu_request, row.parent_uid)
        assert (now.status, now.end_at) == (row.status, row.end_at)
    assert again.references <= database.references


@settings(max_examples=50, deadline=None)
@given(stories())
def test_nothing_is_left_in_memory_when_all_is_gone(story: Story) -> None:
    owners = new()
    _, at = play(story, owners)
    for n in range(len(story.parents)):
        owners.gone(obj(story, n, 4), at)
    for n in range(len(story.owners)):
        owners.pod_gone(f"p{n}-uid", at)
    for _ in range(2 * len(story.parents) + 4):
        owners.flush(at)
        at = Instant(at + GRACE)
        owners.collect(at)
    assert len(owners) == 0
    assert owners.kinds() == {}
    assert owners.flush(at).rows.by_type == {}
