"""Deployments: one ReplicaSet for each template, the newest growing while the others shrink.

One step a look: what it changes brings the next look. Source of truth: pkg/controller/deployment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.cluster.embedded.controllers import deployment_status as statuses
from bayplan.cluster.embedded.controllers.conditions import Conditions, status_body
from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Delete,
    Emit,
    Outcome,
    Patch,
    SetStatus,
    View,
    Write,
    itself,
    owner_of,
)
from bayplan.cluster.embedded.controllers.deployment_parts import (
    REVISION,
    Parts,
    Resize,
    active,
    is_rolling,
    is_scaled,
    rescaled,
    shrunk,
    size_of_new,
    split,
    surplus,
)
from bayplan.cluster.embedded.controllers.deployment_revisions import (
    COMPONENT,
    create_part,
    new_part,
    next_revision,
    renewal,
    replicas_annotations,
)
from bayplan.cluster.embedded.controllers.ownership import controlled, parted
from bayplan.cluster.embedded.controllers.stamping import is_ending
from bayplan.cluster.embedded.store import Key
from bayplan.cluster.kinds import DEPLOYMENT, POD, REPLICA_SET, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant
from bayplan.model.meta import condition
from bayplan.model.pods import Pod
from bayplan.model.workloads import Deployment, DeploymentStatus, ReplicaSet


class DeploymentController:
    """Rolls templates out."""

    name = COMPONENT
    watches: Mapping[Kind, Concern] = {DEPLOYMENT: itself, REPLICA_SET: owner_of(DEPLOYMENT)}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(DEPLOYMENT, *key)
        if item is None:
            return NOTHING
        owned, released = parted(item, controlled(view, item, REPLICA_SET))
        if released:
            return Outcome(released)  # they count no more at the next look
        return _Look(item, owned, view, now).step()


class _Look:
    """One look at one Deployment: what every step needs to know."""

    def __init__(self, item: Object, owned: Iterable[Object], view: View, now: Instant) -> None:
        self.item = item
        self.wanted = item.view(Deployment)
        self.items = {one.name: one for one in owned}
        self.parts = split(self.wanted, [one.view(ReplicaSet) for one in self.items.values()])
        self.view = view
        self.now = now

    def step(self) -> Outcome:
        wanted, parts = self.wanted, self.parts
        if wanted.metadata.deletion_timestamp is not None:
            return self._settled((), statuses.counted(wanted, parts, wanted.status.conditions, self.now))
        if parts.new is not None and (patch := renewal(wanted, parts, parts.new)):
            return Outcome([Patch(self.items[parts.new.metadata.name], patch)])
        conditions = self._found(statuses.pausing(wanted, self.now))
        if wanted.spec.paused or is_scaled(wanted, parts):
            writes = self._resized(rescaled(wanted, parts))
            if wanted.spec.paused:
                writes += self._cleaned()
            return self._settled(writes, statuses.counted(wanted, parts, conditions, self.now))
        return self._rolled(conditions)

    def _rolled(self, conditions: Conditions) -> Outcome:
        wanted, parts = self.wanted, self.parts
        if not is_rolling(wanted) and self._old_ones_run():
            writes = self._resized([Resize(one, 0) for one in active(parts.old)])
        elif parts.new is None:
            return self._started(conditions)
        else:
            size = size_of_new(wanted, parts)
            resizes = [Resize(parts.new, size)] if size != parts.new.spec.replicas else []
            if not resizes and is_rolling(wanted):
                resizes = shrunk(wanted, parts, parts.new)
            writes = self._resized(resizes)
            if not writes and statuses.is_complete(wanted, wanted.status):
                writes = self._cleaned()
        status = statuses.rolled(wanted, parts, conditions, self.now)
        return self._settled(writes, status, again=statuses.next_check(wanted, status))

    def _old_ones_run(self) -> bool:
        """Whether anything of the old ReplicaSets is left, or still to be told to go: recreation waits for it."""
        old = self.parts.old
        if any(one.spec.replicas or one.status.replicas for one in old):
            return True
        pods = (pod for one in old for pod in controlled(self.view, self.items[one.metadata.name], POD))
        return any(not pod.view(Pod).is_terminal for pod in pods)

    def _started(self, conditions: Conditions) -> Outcome:
        """The first step of a rollout: its ReplicaSet."""
        wanted = self.wanted
        if is_ending(self.view, self.item.namespace):
            return NOTHING
        part = new_part(wanted, self.parts)
        name = part.metadata.name
        if self.view.get(REPLICA_SET, self.item.namespace, name) is not None:  # of another template, or not ours
            status = msgspec.structs.replace(wanted.status, collision_count=(wanted.status.collision_count or 0) + 1)
            return self._settled((), status)
        create = create_part(self.item, wanted, self.parts, part)
        grown = Parts(part, self.parts.old)
        conditions = statuses.noted(
            conditions, wanted, "NewReplicaSetCreated", f'Created new replica set "{name}"', self.now
        )
        status = statuses.rolled(wanted, grown, conditions, self.now)
        writes = [create, *self._revised(str(next_revision(self.parts.old)))]
        return self._settled(writes, status, again=statuses.next_check(wanted, status))

    def _found(self, conditions: Conditions) -> Conditions:
        new = self.parts.new
        if new is None or condition(conditions, statuses.PROGRESSING) is not None:
            return conditions
        text = f'Found new replica set "{new.metadata.name}"'
        return statuses.noted(conditions, self.wanted, "FoundNewReplicaSet", text, self.now)

    def _resized(self, resizes: Sequence[Resize]) -> list[Write]:
        """ReplicaSets of another size, each with its Event; what each knows of the whole is renewed with it."""
        annotations = replicas_annotations(self.wanted)
        writes: list[Write] = []
        sizes = {name: one.view(ReplicaSet).spec.replicas for name, one in self.items.items()}
        for resize in resizes:
            name, size = resize.part.metadata.name, resize.size
            before, sizes[name] = sizes[name], size
            if before == size and annotations.items() <= resize.part.metadata.annotations.items():
                continue
            patch: dict[str, Any] = {"metadata": {"annotations": annotations}, "spec": {"replicas": size}}
            writes.append(Patch(self.items[name], patch))
            if before != size:
                text = f"Scaled {'up' if size > before else 'down'} replica set {name} from {before} to {size}"
                writes.append(Emit(self.item, "Normal", "ScalingReplicaSet", text, COMPONENT))
        return writes

    def _cleaned(self) -> list[Write]:
        return [Delete(self.items[one.metadata.name]) for one in surplus(self.wanted, self.parts.old)]

    def _revised(self, revision: str) -> list[Write]:
        """The turn, told on the Deployment as well; by way of its status, since any other change makes a generation."""
        if self.wanted.metadata.annotations.get(REVISION) == revision:
            return []
        return [Patch(self.item, {"metadata": {"annotations": {REVISION: revision}}}, "status")]

    def _settled(self, writes: Sequence[Write], status: DeploymentStatus, again: Instant | None = None) -> Outcome:
        """The step's writes, then the revision of the new ReplicaSet, then the status."""
        done = [*writes]
        if self.parts.new is not None:
            done += self._revised(self.parts.new.metadata.annotations.get(REVISION, ""))
        if status != self.wanted.status:
            done.append(SetStatus(self.item, status_body(status)))
        return Outcome(done, again)
