"""The first schema: every table of the ledger."""

from __future__ import annotations

from bayplan.ledger.store.migrations.tables import make_tables

revision = "0001"
down_revision = None

TABLES: dict[str, str] = {
    "spec_blobs": "hash digest, data data, first_seen number",
    "gpu_nodes": (
        "uid name, resource_version number, name name, gpu_model name, gpu_capacity number, ready flag, "
        "schedulable flag, labels text, kubelet_version name, created_at number, updated_at number, "
        "end_at number?, end_inferred flag, end_after number?"
    ),
    "node_periods": (
        "start_at number, resource_version number, end_at number?, end_inferred flag, end_after number?, "
        "node_uid name, node_name name, resource name, gpus number, gpu_model name"
    ),
    "gpu_workloads": (
        "uid name, resource_version number, group_version name, kind name, namespace name, name name, "
        "parent_uid name, gpu_request number, status word, status_reason text, labels text, "
        "annotations text, user name, created_at number, updated_at number, end_at number?, "
        "end_inferred flag, end_after number?"
    ),
    "workload_snapshots": (
        "workload_uid name, resource_version number, observed_at number, spec_hash digest, state data, "
        "dictionary number, gone flag"
    ),
    "gpu_pods": (
        "uid name, resource_version number, namespace name, name name, node_name name, gpu_allocated number, "
        "phase word, reason text, running flag, deleted flag, owner_uid name, root_uid name, user name, "
        "labels text, ip name, container_image text, priority number, restarts number, created_at number, "
        "updated_at number, bound_at number?, started_at number?, end_at number?, end_inferred flag, "
        "end_after number?, gone_at number?"
    ),
    "pod_resources": (
        "uid name, resource name, resource_version number, gpu_model name, gpu_allocated number, "
        "created_at number, end_at number?"
    ),
    "pod_snapshots": (
        "pod_uid name, resource_version number, namespace name, name name, observed_at number, "
        "spec_hash digest, state data, dictionary number, gone flag"
    ),
    "gpu_pods_events": (
        "pod_uid name, resource_version number, event_type word, subject name, pod_phase word, value name, "
        "before name, reason text, message text, restart_count number, exit_code number?, at number, "
        "observed_at number"
    ),
    "workload_pod_references": "workload_uid name, pod_uid name, depth number, created_at number",
    "gpu_periods": (
        "start_at number, resource_version number, end_at number?, end_inferred flag, end_after number?, "
        "pod_uid name, resource name, gpus number, gpu_model name, node_name name"
    ),
    "pod_running_periods": (
        "start_at number, resource_version number, end_at number?, end_inferred flag, end_after number?, "
        "pod_uid name, gpus number"
    ),
    "pending_periods": (
        "start_at number, resource_version number, end_at number?, end_inferred flag, end_after number?, "
        "pod_uid name, reason name, message text"
    ),
    "pod_disruptions": "pod_uid name, rule name, at number, by name, for_pod name, message text",
    "gpu_use": "pod_uid name, device name, at number, utilisation real, memory_used number",
    "ledger_gaps": (
        "kind name, from_at number, to_at number, after_revision name, up_to_revision name, dropped number, why text"
    ),
    "ledger_streams": "kind name, resource_version number, revision name, at number",
}

KEYS: dict[str, str] = {
    "spec_blobs": "hash",
    "gpu_nodes": "uid",
    "node_periods": "node_uid resource start_at",
    "gpu_workloads": "uid",
    "workload_snapshots": "workload_uid resource_version",
    "gpu_pods": "uid",
    "pod_resources": "uid resource",
    "pod_snapshots": "pod_uid resource_version",
    "gpu_pods_events": "pod_uid resource_version event_type subject",
    "workload_pod_references": "workload_uid pod_uid",
    "gpu_periods": "pod_uid resource start_at",
    "pod_running_periods": "pod_uid start_at",
    "pending_periods": "pod_uid start_at",
    "pod_disruptions": "pod_uid rule at",
    "gpu_use": "pod_uid device at",
    "ledger_gaps": "kind from_at",
    "ledger_streams": "kind",
}

INDEXES: dict[str, tuple[str, ...]] = {
    "workload_snapshots": ("observed_at",),
    "gpu_nodes": ("name",),
    "node_periods": ("end_at",),
    "gpu_workloads": (
        "namespace name",
        "parent_uid",
        "end_at",
    ),
    "gpu_pods": (
        "namespace name",
        "node_name",
        "end_at",
        "owner_uid",
        "gone_at created_at uid",
    ),
    "pod_snapshots": (
        "pod_uid observed_at resource_version",
        "observed_at",
    ),
    "gpu_pods_events": ("at",),
    "workload_pod_references": ("pod_uid",),
    "gpu_periods": (
        "end_at",
        "start_at",
    ),
    "pod_running_periods": ("end_at",),
    "pending_periods": ("end_at",),
    "gpu_use": ("at",),
}


def upgrade() -> None:
    """Make the tables."""
    make_tables(TABLES, KEYS, INDEXES)
