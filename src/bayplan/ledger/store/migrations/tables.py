"""Tables as the migrations write them down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

_MYSQL = ("mysql", "mariadb")
_PLAIN: dict[str, sa.types.TypeEngine[Any]] = {
    "number": sa.BigInteger(),
    "flag": sa.Boolean(),
    "real": sa.Double(),
    "digest": sa.LargeBinary().with_variant(mysql.VARBINARY(16), *_MYSQL),
    "data": sa.LargeBinary().with_variant(mysql.LONGBLOB(), *_MYSQL),
}


def _types() -> dict[str, sa.types.TypeEngine[Any]]:
    """Texts compare by their bytes, trailing spaces too: each server has its own name for that."""
    dialect: Any = op.get_bind().dialect
    bytewise = "utf8mb4_nopad_bin" if getattr(dialect, "is_mariadb", False) else "utf8mb4_0900_bin"

    def text(width: int, charset: str = "utf8mb4", collation: str = bytewise) -> sa.types.TypeEngine[Any]:
        bounded = mysql.VARCHAR(width, charset=charset, collation=collation)
        return sa.String(width).with_variant(bounded, *_MYSQL).with_variant(sa.String(width, "C"), "postgresql")

    long = mysql.LONGTEXT(charset="utf8mb4", collation=bytewise)
    return _PLAIN | {
        "name": text(253),
        "word": text(63),
        "text": sa.Text().with_variant(long, *_MYSQL),
        "cluster": text(253, "ascii", "ascii_bin"),
    }


def make_tables(tables: Mapping[str, str], keys: Mapping[str, str], indexes: Mapping[str, Sequence[str]]) -> None:
    """Make tables. Of each the columns, in order, `name type` each: `?` says that it may be NULL. The first column, and
    the first of each key and index, is always the cluster's id.
    """
    types = _types()
    for table, said in tables.items():
        columns = [sa.Column("cluster", types["cluster"], nullable=False, autoincrement=False)]
        for name, kind in (each.split(" ") for each in said.split(", ")):
            nullable = kind.endswith("?")
            columns.append(sa.Column(name, types[kind.rstrip("?")], nullable=nullable, autoincrement=False))
        key = sa.PrimaryKeyConstraint("cluster", *keys[table].split(" "))
        # Room on a PostgreSQL page for a row's next version spares its indexes: half the cost of updating a pod.
        room = 50 if "resource_version number" in said and "resource_version" not in keys[table] else 100
        op.create_table(table, *columns, key, mysql_engine="InnoDB", postgresql_with={"fillfactor": room})
        for index in indexes.get(table, ()):
            names = index.split(" ")
            op.create_index(f"ix_{table}_{'_'.join(names)}", table, ["cluster", *names])
