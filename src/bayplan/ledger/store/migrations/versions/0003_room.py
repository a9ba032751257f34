"""What nodes with GPUs have for pods beside them, and what pods take of it: which idle GPUs are stranded."""

from __future__ import annotations

from bayplan.ledger.store.migrations.tables import make_tables

revision = "0003"
down_revision = "0002"

_PERIOD = "start_at number, resource_version number, end_at number?, end_inferred flag, end_after number?, "

TABLES: dict[str, str] = {
    "node_room_periods": (
        _PERIOD + "node_uid name, node_name name, cpu number, memory number, pods number, hurdle word"
    ),
    "pod_room_periods": (
        _PERIOD + "pod_uid name, namespace name, name name, node_name name, cpu number, memory number"
    ),
}
KEYS = {"node_room_periods": "node_uid start_at", "pod_room_periods": "pod_uid start_at"}
INDEXES: dict[str, tuple[str, ...]] = {"node_room_periods": ("end_at",), "pod_room_periods": ("end_at",)}


def upgrade() -> None:
    """Make the tables; the time before stays unknown."""
    make_tables(TABLES, KEYS, INDEXES)
