"""Which changes may help a pod, by the plugin that refused it: the table of kube-scheduler 1.36's default plugins, and
NodeTopology.

Left out: DefaultPreemption, which upstream lists only to hold pods back while their evictions are being sent; here they
are sent before the pod is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.arguments import NodeAffinityArgs
from bayplan.scheduling.queue.events import NODE, POD, Action
from bayplan.scheduling.queue.hints import neighbours, nodes, own, volumes
from bayplan.scheduling.queue.hints.contract import ALWAYS, NEVER, Hint, Hints, Interest, Judge, ask

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ALWAYS", "NEVER", "Hint", "Hints", "Interest", "Judge", "ask", "default_interests"]

_ADD, _UPDATE, _DELETE, _LABEL = Action.ADD, Action.UPDATE, Action.DELETE, Action.NODE_LABEL
_NOTHING_ADDED = NodeAffinityArgs()
_CLAIM, _VOLUME, _CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass"


def default_interests(affinity: NodeAffinityArgs = _NOTHING_ADDED) -> Mapping[str, tuple[Interest, ...]]:
    """The interests of each plugin that may refuse a pod and does not care for every change."""
    toleration = Action.POD_TOLERATION
    return {
        "SchedulingGates": (Interest(POD, Action.POD_GATES_ELIMINATED, own.itself),),
        "NodeName": (Interest(NODE, _ADD),),
        "NodeUnschedulable": (
            Interest(NODE, _ADD | Action.NODE_TAINT, nodes.uncordoned),
            Interest(POD, toleration, own.tolerates_cordon),
        ),
        "TaintToleration": (
            Interest(NODE, _ADD | Action.NODE_TAINT, nodes.tolerated),
            Interest(POD, toleration, own.itself),
        ),
        "NodeAffinity": (Interest(NODE, _ADD | _LABEL, nodes.selected(affinity)),),
        "NodePorts": (Interest(POD, _DELETE, nodes.freed_ports), Interest(NODE, _ADD)),
        "NodeResourcesFit": (
            Interest(POD, _DELETE | Action.POD_SCALE_DOWN, nodes.freed_resources),
            Interest(NODE, _ADD | Action.NODE_ALLOCATABLE, nodes.more_resources),
            Interest("DeviceClass", _ADD | _UPDATE, nodes.device_class),
        ),
        "NodeDeclaredFeatures": (
            Interest(NODE, _ADD | Action.NODE_DECLARED_FEATURE, nodes.declared),
            Interest(POD, _UPDATE, own.needs_otherwise),
        ),
        "NodeTopology": (
            Interest(POD, _DELETE | _UPDATE, nodes.given_back),
            Interest(NODE, _ADD | Action.NODE_ANNOTATION, nodes.re_equipped),
        ),
        "PodTopologySpread": (
            Interest(POD, _ADD | Action.POD_LABEL | toleration | _DELETE, neighbours.counted),
            Interest(NODE, _ADD | _DELETE | _LABEL | Action.NODE_TAINT, neighbours.spread_over),
        ),
        "InterPodAffinity": (
            Interest(POD, _ADD | Action.POD_LABEL | _DELETE, neighbours.neighbour),
            Interest(NODE, _ADD | _LABEL, neighbours.near),
        ),
        "VolumeRestrictions": (
            Interest(POD, _DELETE, volumes.freed_volume),
            Interest(NODE, _ADD),
            Interest(_CLAIM, _ADD, volumes.named_claim),
        ),
        "NodeVolumeLimits": (
            Interest("CSINode", _ADD),
            Interest("CSINode", _UPDATE, volumes.more_attachments),
            Interest(POD, _DELETE, volumes.freed_attachment),
            Interest(_CLAIM, _ADD, volumes.own_claim),
            Interest("VolumeAttachment", _DELETE, volumes.uses_claims),
        ),
        "VolumeBinding": (
            Interest(_CLASS, _ADD | _UPDATE, volumes.other_topologies),
            Interest(_CLAIM, _ADD | _UPDATE, volumes.own_claim),
            Interest(_VOLUME, _ADD | _UPDATE),
            Interest(NODE, _ADD | _LABEL),
            Interest("CSINode", _ADD | _UPDATE, volumes.migrated),
            Interest("CSIDriver", _UPDATE, volumes.capacity_ignored),
            Interest("CSIStorageCapacity", _ADD | _UPDATE, volumes.more_space),
        ),
        "VolumeZone": (
            Interest(_CLASS, _ADD, volumes.late_binding),
            Interest(NODE, _ADD | _LABEL),
            Interest(_CLAIM, _ADD | _UPDATE, volumes.named_claim),
            Interest(_VOLUME, _ADD | _UPDATE, volumes.relocated),
        ),
        "DynamicResources": (
            Interest(NODE, _ADD | _LABEL | Action.NODE_ALLOCATABLE),
            Interest("ResourceClaim", _ADD | _UPDATE),
            Interest("DeviceClass", _ADD | _UPDATE),
            Interest("ResourceSlice", _ADD | _UPDATE),
        ),
    }
