"""What a recording keeps of what is over: nothing, however many come and go."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import pytest

from bayplan.cluster.kinds import DEPLOYMENT, POD, REPLICA_SET, Kind
from bayplan.cluster.live.reflector_core import Change
from bayplan.cluster.objects import Object
from bayplan.ledger import recording as module
from bayplan.ledger.owners.owners import GRACE
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import Rows, WorkloadSnapshot
from bayplan.model.clock import Instant
from tests.ledger.differ.lives import at, pod
from tests.ledger.owners.builders import reference, workload
from tests.ledger.shell.scenes import CLUSTER

_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType)


def held(thing: object) -> Iterator[object]:
    """Everything that hangs on a thing, each once, but for code."""
    met, waiting = {id(thing)}, [thing]
    while waiting:
        yield (one := waiting.pop())
        fresh = [each for each in gc.get_referents(one) if id(each) not in met and not isinstance(each, _SHARED)]
        met.update(map(id, fresh))
        waiting += fresh


class Story:
    """Deployments one after another, each with a ReplicaSet, of which metadata alone are told, and a pod."""

    def __init__(self) -> None:
        self.recording = Recording(CLUSTER)
        self._now = at(0)

    def round(self, number: int) -> list[list[str]]:
        """From the first to the last of one; the workloads that were met, by batch."""
        above = [reference(f"web-{number}", "Deployment")]
        owners: list[dict[str, Any]] = [reference(f"web-{number}-a", "ReplicaSet")]
        objects = {
            DEPLOYMENT: workload(f"web-{number}", "Deployment", spec={"replicas": 1}),
            REPLICA_SET: workload(f"web-{number}-a", "ReplicaSet", owners=above),
            POD: pod(1, "Running", node="a", uid=f"pod-{number}", meta={"ownerReferences": owners}),
        }
        met = [self._told(kind, Change("ADDED", obj)) for kind, obj in objects.items()]
        met += [self._told(kind, Change("DELETED", obj)) for kind, obj in reversed(objects.items())]
        for _ in range(4):
            self._now = Instant(self._now + GRACE)
            self.recording.collect(self._now)
            self.recording.settle(self._now, Rows())
        return met

    def _told(self, kind: Kind, change: Change) -> list[str]:
        rows = Rows()
        self.recording.take(kind, [change], When(self._now), rows)
        self.recording.settle(self._now, rows)
        assert (WorkloadSnapshot in rows.by_type) is (kind is DEPLOYMENT and change.type == "DELETED")
        return [row.name for row in self.recording.met]


def test_rounds_of_deployments_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 1)  # pods gone lately: kept on purpose, up to a bound
    story = Story()
    sizes = []
    for number in range(10, 20):
        assert story.round(number) == [[], [], [f"web-{number}-a", f"web-{number}"], [], [], []]
        sizes.append(sum(isinstance(each, str | bytes | Object) for each in held(story.recording)))
    assert sizes[2:] == [sizes[2]] * 8
