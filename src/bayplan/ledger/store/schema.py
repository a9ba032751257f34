"""The tables, derived from the structs of ledger/rows: a field is a column, its type says which.

Nothing here is written to a database: the migrations are explicit, and a test compares them with this on all three.

Keys hold names of 253 characters, and MySQL bounds a key at 3,072 bytes: `cluster`, which bayplan's own settings give,
is ASCII there, all else has four bytes a character. Texts compare by their bytes everywhere (no case, no padding).
"""

from __future__ import annotations

import types
import typing
from typing import Annotated, Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from bayplan.ledger.rows import ROWS, Row
from bayplan.model.clock import Instant

VERSION_TABLE = "bayplan_ledger_version"
"""Alembic's, under a name of our own: the database may be shared with a program that uses Alembic too."""


def _width(annotation: Any) -> int:
    (meta,) = (each for each in annotation.__metadata__ if isinstance(each, msgspec.Meta))
    assert meta.max_length is not None
    return meta.max_length


def _bounded(annotation: Any) -> sa.types.TypeEngine[Any]:
    width = _width(annotation)
    if typing.get_args(annotation)[0] is bytes:
        return sa.LargeBinary(width).with_variant(mysql.VARBINARY(width), "mysql", "mariadb")
    return sa.String(width)


_PLAIN: dict[Any, sa.types.TypeEngine[Any]] = {
    str: sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb"),
    int: sa.BigInteger(),
    Instant: sa.BigInteger(),
    bool: sa.Boolean(),
    float: sa.Double(),
    bytes: sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb"),
}


def _column(name: str, annotation: Any, key: bool) -> sa.Column[Any]:
    nullable = typing.get_origin(annotation) in (types.UnionType, typing.Union)
    if nullable:
        (annotation,) = (each for each in typing.get_args(annotation) if each is not types.NoneType)
    is_bounded = typing.get_origin(annotation) is Annotated
    kind = _bounded(annotation) if is_bounded else _PLAIN[annotation]
    return sa.Column(name, kind, primary_key=key, nullable=nullable, autoincrement=False)


def index_name(kind: type[Row], columns: tuple[str, ...]) -> str:
    """What an index is called."""
    return f"ix_{kind.table}_{'_'.join(columns[1:])}"


def _table(kind: type[Row], metadata: sa.MetaData) -> sa.Table:
    hints = typing.get_type_hints(kind, include_extras=True)
    columns = [_column(name, hints[name], name in kind.key) for name in kind.__struct_fields__]
    key = sa.PrimaryKeyConstraint(*kind.key)
    indexes = [sa.Index(index_name(kind, each), *each) for each in kind.indexes]
    return sa.Table(kind.table, metadata, *columns, key, *indexes)


METADATA = sa.MetaData()
TABLES: dict[type[Row], sa.Table] = {kind: _table(kind, METADATA) for kind in ROWS}
"""Each row class's table, for queries in SQLAlchemy Core."""
KINDS: dict[str, type[Row]] = {kind.table: kind for kind in ROWS}


def widths(kind: type[Row]) -> dict[int, int | None]:
    """The columns that hold text, by position, each with the most characters that it takes."""
    columns = enumerate(TABLES[kind].columns)
    return {i: column.type.length for i, column in columns if isinstance(column.type, sa.String)}
