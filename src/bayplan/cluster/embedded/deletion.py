"""What a delete does: remove at once, wait for the kubelet, or wait for finalizers.

Source of truth: apiserver registry/rest BeforeDelete and registry/generic Store.Delete; pods alone have a grace period.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from bayplan.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, POD, REPLICATION_CONTROLLER, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, parse_rfc3339, rfc3339
from bayplan.model.meta import ObjectMeta
from bayplan.model.pods import Pod

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
CUSTOM_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Keeps a definition until the objects that it defines are gone."""
Propagation = Literal["Orphan", "Background", "Foreground"]


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may ask of a delete."""

    grace: int | None = None
    """Seconds; None leaves it to the object."""
    uid: str = ""
    version: str = ""
    """Preconditions: the object's uid and resourceVersion, where given."""
    propagation: Propagation | None = None
    dry_run: bool = False


BY_DEFAULT = DeleteOptions()


def terminating(item: Object) -> bool:
    """Whether a namespace still has its own finalizers, which keep it until its content is gone."""
    return item.kind is NAMESPACE and bool(item.sections["spec"].plain().get("finalizers"))


def begin(item: Object, options: DeleteOptions, now: Instant) -> ObjectMeta | None:
    """The metadata of an object that stays for now, marked as being deleted; None when it goes at once.

    Asking again never lengthens the grace; a shorter one counts.
    """
    meta = item.meta
    finalizers = _finalizers(meta.finalizers, item.kind, options.propagation)
    grace = _grace(item, options)
    was = meta.deletion_grace_period_seconds
    if meta.deletion_timestamp is not None and was is not None and grace >= was > 0:
        return msgspec.structs.replace(meta, finalizers=finalizers)  # asked again: nothing shorter
    if not grace and not finalizers and not terminating(item):
        return None
    generation = meta.generation
    if meta.deletion_timestamp is None:
        generation += bool(generation)
        at = rfc3339(Instant(now + grace * SECOND))
    else:  # an earlier end, counted from the same beginning
        began = parse_rfc3339(meta.deletion_timestamp) - (was or 0) * SECOND
        at = rfc3339(Instant(max(began + grace * SECOND, now))) if grace else min(rfc3339(now), meta.deletion_timestamp)
    return msgspec.structs.replace(
        meta,
        generation=generation,
        deletion_timestamp=at,
        deletion_grace_period_seconds=None if terminating(item) else grace,
        finalizers=finalizers,
    )


def finished(item: Object) -> bool:
    """Whether nothing holds a deleted object any more."""
    meta = item.meta
    if meta.deletion_timestamp is None or meta.finalizers or meta.deletion_grace_period_seconds:
        return False
    return not terminating(item)


def _grace(item: Object, options: DeleteOptions) -> int:
    if item.kind is not POD:
        return 0
    pod = item.view(Pod)
    if not pod.spec.node_name or pod.status.phase in ("Succeeded", "Failed"):
        return 0
    asked = pod.spec.termination_grace_period_seconds if options.grace is None else options.grace
    return 1 if asked < 0 else asked


def _finalizers(present: tuple[str, ...], kind: Kind, propagation: Propagation | None) -> tuple[str, ...]:
    if kind is CUSTOM_RESOURCE_DEFINITION:
        return present if CUSTOM_CLEANUP in present else (*present, CUSTOM_CLEANUP)
    if propagation is None and (ORPHAN in present or FOREGROUND in present):
        return present
    kept = tuple(each for each in present if each not in (ORPHAN, FOREGROUND))
    if propagation is None and kind is REPLICATION_CONTROLLER:
        propagation = "Orphan"
    added = {"Orphan": (ORPHAN,), "Foreground": (FOREGROUND,)}.get(propagation or "", ())
    return kept + added
