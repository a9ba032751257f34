"""Rows with everything filled in but what a test speaks of."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from bayplan.ledger.rows import GpuPeriod, GpuPod, GpuPodsEvent, PodSnapshot, Row, Rows, SpecBlob
from bayplan.ledger.snapshots import pack
from bayplan.model.clock import Instant
from bayplan.testing import pod as pod_manifest


def pod(cluster: str, uid: str = "a", version: int = 1, **more: Any) -> GpuPod:
    """A pod's state."""
    given: dict[str, Any] = {
        "namespace": "vision",
        "name": uid,
        "created_at": Instant(0),
        "updated_at": Instant(version),
    } | more
    return GpuPod(cluster=cluster, uid=uid, resource_version=version, **given)


def event(cluster: str, uid: str = "a", version: int = 1, **more: Any) -> GpuPodsEvent:
    """A transition."""
    given: dict[str, Any] = {"event_type": "Phase", "at": Instant(version), "observed_at": Instant(version)} | more
    return GpuPodsEvent(cluster=cluster, pod_uid=uid, resource_version=version, **given)


def period(cluster: str, uid: str = "a", version: int = 1, end: int | None = None, **more: Any) -> GpuPeriod:
    """A time with GPUs."""
    given: dict[str, Any] = {
        "start_at": Instant(0),
        "resource": "nvidia.com/gpu",
        "gpus": 8000,
        "node_name": "n",
    } | more
    ends = None if end is None else Instant(end)
    return GpuPeriod(cluster=cluster, pod_uid=uid, resource_version=version, end_at=ends, **given)


def snapshot(
    cluster: str, uid: str = "a", version: int = 1, at: int = 1, gpus: int = 1, **more: Any
) -> tuple[SpecBlob, PodSnapshot]:
    """A version, whole, with its specification."""
    document = pod_manifest(uid).requests(gpu=gpus).labelled(version=str(version)).document()
    packed = pack(Object.from_raw(POD, msgspec.json.encode(document)))
    row = PodSnapshot(
        cluster=cluster,
        pod_uid=uid,
        resource_version=version,
        namespace="vision",
        name=uid,
        observed_at=Instant(at),
        spec_hash=packed.spec_hash,
        state=packed.state,
        dictionary=packed.dictionary,
        **more,
    )
    return packed.blob(cluster, Instant(at)), row


def batch(*rows: Row) -> Rows:
    """Rows for one transaction."""
    made = Rows()
    made.add(*rows)
    return made
