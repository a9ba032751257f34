"""ReplicationControllers: ReplicaSets in an older dress, so they are looked at as if they were.

Source of truth: pkg/controller/replication, which wraps the ReplicaSet controller the same way.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.cluster.embedded.controllers.contract import NOTHING, Concern, Outcome, View, itself, owner_of
from bayplan.cluster.embedded.controllers.replica_set import keep_number
from bayplan.cluster.embedded.store import Key
from bayplan.cluster.kinds import POD, REPLICATION_CONTROLLER, Kind
from bayplan.model.clock import Instant
from bayplan.model.meta import LabelSelector
from bayplan.model.workloads import ReplicaSet, ReplicaSetSpec, ReplicationController


class ReplicationControllerController:
    """Keeps the number of pods of ReplicationControllers."""

    name = "replication-controller"
    watches: Mapping[Kind, Concern] = {REPLICATION_CONTROLLER: itself, POD: owner_of(REPLICATION_CONTROLLER)}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(REPLICATION_CONTROLLER, *key)
        if item is None:
            return NOTHING
        return keep_number(item, as_replica_set(item.view(ReplicationController)), view, now, self.name)


def as_replica_set(wanted: ReplicationController) -> ReplicaSet:
    """The ReplicaSet that would do the same."""
    spec = wanted.spec
    same = ReplicaSetSpec(
        replicas=spec.replicas,
        min_ready_seconds=spec.min_ready_seconds,
        selector=LabelSelector(match_labels=spec.selector),
        template=spec.template,
    )
    return ReplicaSet(metadata=wanted.metadata, spec=same, status=wanted.status)
