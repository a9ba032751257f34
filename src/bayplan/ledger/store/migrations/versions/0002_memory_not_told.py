"""Memory in use that nobody told is NULL; it was 0, which a device may really have in use."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Let it be NULL; of the zeros that are there nobody knows which were measured."""
    with op.batch_alter_table("gpu_use") as table:
        table.alter_column("memory_used", existing_type=sa.BigInteger(), nullable=True)
    use = sa.table("gpu_use", sa.column("memory_used"))
    op.execute(sa.update(use).where(use.c.memory_used == 0).values(memory_used=None))
