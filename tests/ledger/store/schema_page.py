"""Writes docs/ledger-schema.md from ledger/rows: `python -m tests.ledger.store.schema_page`. A test compares."""

from __future__ import annotations

import ast
import inspect
import itertools
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bayplan.ledger.rows import ROWS, Row, Sort
from bayplan.ledger.store.schema import TABLES

PAGE = Path(__file__).parents[3] / "docs" / "ledger-schema.md"

_HEAD = """\
# The ledger's tables

Written from `src/bayplan/ledger/rows/`; a test keeps this page and all three databases in step with it.

Every table starts with the cluster's id, so several clusters share a database. Times are microseconds since 1970 (UTC),
GPUs thousandths: `gpu_allocated = 8000` is eight. A period or an object without an end has `end_at` NULL.

| sort | how a row meets one with its key that is there already |
|---|---|
| state | the newer `resource_version` wins; of equal ones the later said |
| fact | it happened once: what is there stays |
| period | as a state; but a closed one is opened again only by a newer version |

Types: `name` is up to 253 characters, `word` up to 63, both compared by their bytes; what is longer is cut. `text` and
`data` have no bound worth a name (LONGTEXT and LONGBLOB on MySQL and MariaDB). NUL and lone surrogates, which not every
database can hold, become U+FFFD; the snapshots keep the object as it was.

A pod as it was: the `pod_snapshots` row (`state`: all but the specification) and the `spec_blobs` row of its
`spec_hash`, both zstd with the dictionary whose number is in the frame; `bayplan.ledger.snapshots.unpack` joins them.

Rights: on PostgreSQL CREATE on the schema to migrate, then SELECT, INSERT, UPDATE, DELETE on the tables and TEMPORARY
on the database (large batches are copied to a temporary table first); on MySQL and MariaDB CREATE, ALTER and INDEX to
migrate, then SELECT, INSERT, UPDATE, DELETE.

The schema's version is in `bayplan_ledger_version`. A database with a newer one, or with somebody else's tables, is
refused before anything is written.
"""


def _remarks(kind: type[Row]) -> dict[str, str]:
    """What the source says below each field."""
    said: dict[str, str] = {}
    for cls in (each for each in kind.__mro__ if issubclass(each, Row)):
        (tree,) = ast.parse(inspect.getsource(cls)).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for before, after in itertools.pairwise(body):
            match before, after:
                case ast.AnnAssign(target=ast.Name(id=field)), ast.Expr(value=ast.Constant(value=str(text))):
                    said[field] = " ".join(text.split())
    return said


def _type(column: sa.Column[object]) -> str:
    kind: Any = column.type
    words = {sa.Text: "text", sa.BigInteger: "integer", sa.Boolean: "boolean", sa.Double: "real"}
    if isinstance(kind, sa.LargeBinary):
        word = "data" if kind.length is None else f"{kind.length} bytes"
    else:
        word = words.get(type(kind)) or ("name" if kind.length == 253 else "word")
    return f"{word}, or NULL" if column.nullable else word


def rendered() -> str:
    """The page."""
    parts = [_HEAD]
    for kind in ROWS:
        remarks = _remarks(kind)
        about = " ".join((kind.__doc__ or "").split())
        indexes = "".join(f"; index ({', '.join(each)})" for each in kind.indexes)
        parts.append(f"\n## {kind.table}\n\n{about} A {Sort(kind.sort).value}, by ({', '.join(kind.key)}){indexes}.\n")
        parts.append("\n| column | type | |\n|---|---|---|\n")
        lines = (f"| {c.name} | {_type(c)} | {remarks.get(c.name, '')} |\n" for c in TABLES[kind].columns)
        parts += (line.replace("|  |", "| |") for line in lines)
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(rendered())
