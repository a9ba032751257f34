"""Says when nodes come and go.

The key carries what happened and to which uid, so there is nothing to remember.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.cluster.embedded.controllers.contract import Concern, Emit, Outcome, View
from bayplan.cluster.embedded.controllers.node_lifecycle import COMPONENT
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import NODE, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant
from bayplan.model.meta import ObjectMeta

_SAID = {
    ChangeType.ADDED.value: ("RegisteredNode", "Registered Node {name} in Controller"),
    ChangeType.DELETED.value: ("RemovingNode", "Removing Node {name} from Controller"),
}


def _came_or_went(change: Change, _view: View) -> Iterable[Key]:
    if change.type is ChangeType.MODIFIED:
        return ()
    return ((f"{change.type.value}/{change.new.uid}", change.new.name),)


class NodeRegistry:
    """Emits RegisteredNode and RemovingNode."""

    name = "node-registry"
    watches: Mapping[Kind, Concern] = {NODE: _came_or_went}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:  # noqa: ARG002 - the contract's signature
        what, _, uid = key[0].partition("/")
        name = key[1]
        reason, text = _SAID[what]
        about = Object(NODE, ObjectMeta(name=name, uid=uid), {}, 0)  # a node that is gone has no more than that
        message = f"Node {name} event: {text.format(name=name)}"
        return Outcome([Emit(about, "Normal", reason, message, COMPONENT)])
