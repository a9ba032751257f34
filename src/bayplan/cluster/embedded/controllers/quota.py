"""What a namespace uses of its quotas, added up anew.

Admission charges a quota at once when something is made, so only what frees something brings a look: an object that is
deleted, a pod that ends, a change that admission lets pass uncharged. What a pod counts for is read off its spec, and
pods of one template share that, so a namespace of many like pods is added up quickly.

Source of truth: pkg/controller/resourcequota.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugins.quota_usage import evaluator_of, kinds_counted_in, usage
from bayplan.cluster.embedded.controllers.contract import NOTHING, Concern, Outcome, SetStatus, View, itself
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import KINDS, PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_CLAIM, RESOURCE_QUOTA, SERVICE, Kind
from bayplan.cluster.objects import Object, Section
from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.pods import Pod

_RECHARGED = frozenset({SERVICE, PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM})
"""Kinds of which any change may change what they count for."""


def _freed(change: Change, view: View) -> Iterable[Key]:
    if change.type is ChangeType.DELETED or (change.type is ChangeType.MODIFIED and _recharged(change)):
        return [quota.key for quota in view.objects(RESOURCE_QUOTA, change.new.namespace)]
    return ()


def _recharged(change: Change) -> bool:
    new, old = change.new, change.old
    if new.kind is not POD or old is None:
        return new.kind in _RECHARGED
    if new.view(Pod).is_terminal != old.view(Pod).is_terminal:
        return True
    return new.meta.deletion_timestamp != old.meta.deletion_timestamp or _resized(new, old)


def _resized(new: Object, old: Object) -> bool:
    mine, before = new.view(Pod).spec, old.view(Pod).spec
    return mine is not before and [one.resources for one in mine.containers] != [
        one.resources for one in before.containers
    ]


class QuotaController:
    """Keeps `status.used` right."""

    name = "resourcequota-controller"
    watches: Mapping[Kind, Concern] = {
        **{kind: _freed for kind in KINDS.values() if evaluator_of(kind) is not None},
        RESOURCE_QUOTA: itself,
    }

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(RESOURCE_QUOTA, *key)
        if item is None:
            return NOTHING
        quota = item.doc()
        counted = {name: _documents(view, KINDS[name], item.namespace) for name in kinds_counted_in(quota)}
        hard, used = quota.get("spec", {}).get("hard", {}), usage(quota, counted, now)
        status = {"hard": _in_order(hard), "used": _in_order(used)}
        writes = [SetStatus(item, status)] if quota.get("status") != status else []
        return Outcome(writes, _next_overdue(counted.get(POD.name, ()), now))


def _documents(view: View, kind: Kind, namespace: str) -> list[Doc]:
    items = view.objects(kind, namespace)
    return [_pod_document(item) for item in items] if kind is POD else [item.doc() for item in items]


def _pod_document(item: Object) -> Doc:
    """As much of a pod as counts: decoding each whole would cost more than all the rest."""
    pod, meta = item.view(Pod), item.meta
    status: dict[str, Any] = {"phase": pod.status.phase, "qosClass": pod.status.qos_class}
    if any(one.resources is not None for one in pod.status.container_statuses):
        status = item.sections["status"].plain()
    times = {
        "deletionTimestamp": meta.deletion_timestamp,
        "deletionGracePeriodSeconds": meta.deletion_grace_period_seconds,
    }
    return {"metadata": times, "spec": _plain(item.sections["spec"]), "status": status}


@functools.lru_cache(maxsize=1024)
def _plain(section: Section) -> Doc:
    """A spec as plain values, shared by the pods that share it: not to be changed."""
    spec: Doc = section.plain()
    return spec


def _next_overdue(pods: Iterable[Doc], now: Instant) -> Instant | None:
    """When the next pod has been stuck in deletion for so long that it ceases to count."""
    times = [
        parse_rfc3339(meta["deletionTimestamp"]) + (meta["deletionGracePeriodSeconds"] or 0) * SECOND + 1
        for pod in pods
        if (meta := pod["metadata"])["deletionTimestamp"] is not None
    ]
    return min((Instant(at) for at in times if at > now), default=None)


def _in_order(amounts: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(amounts.items()))
