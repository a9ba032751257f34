"""How a row meets one that is there already: the rule once in Python, for batches, and once in SQL, for the tables.

A batch may hold several rows of one key; a bulk statement may not. So they are folded first, by the rule by which the
database would have taken them one after another. The three bulk forms are in bulk.py; a property test holds both to
the same answer on every database.

What a column cannot hold is made to fit, alike on all databases, because one odd object must not stop the stream: a
text that is too long is cut, NUL and lone surrogates become U+FFFD. The snapshot keeps the object as it was.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from msgspec.structs import astuple

from bayplan.ledger.rows import Row, Sort
from bayplan.ledger.store.schema import widths

Values = tuple[Any, ...]
"""A row's columns, in the order of the table."""


@functools.cache
def supersedes(kind: type[Row]) -> Callable[[Values, Values], bool]:
    """Whether a row (the second) takes the place of one with its key that is there already (the first)."""
    if kind.sort is Sort.FACT:
        return lambda _old, _new: False
    fields = kind.__struct_fields__
    version = fields.index("resource_version")
    if kind.sort is Sort.STATE:
        return lambda old, new: bool(new[version] >= old[version])
    end = fields.index("end_at")

    def is_later(old: Values, new: Values) -> bool:
        reopens = old[end] is not None and new[end] is None
        return bool(new[version] > old[version] or (new[version] == old[version] and not reopens))

    return is_later


def _fit(text: str, width: int | None) -> str:
    text = text.replace("\0", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text[:width]


def _fits(texts: Sequence[str], width: int | None) -> bool:
    """Whether a whole column can be stored as it is: looked at at once, since it nearly always can."""
    if width is not None and max(map(len, texts)) > width:
        return False
    joined = "".join(texts)
    if joined.isascii():
        return "\0" not in joined
    return not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in joined)


def _fitted(kind: type[Row], rows: list[Values]) -> list[Values]:
    columns = list(zip(*rows, strict=True))
    wrong = {i: width for i, width in _widths(kind).items() if not _fits(columns[i], width)}
    for i, width in wrong.items():
        columns[i] = tuple(_fit(text, width) for text in columns[i])
    return list(zip(*columns, strict=True)) if wrong else rows


_widths = functools.cache(widths)


def folded(kind: type[Row], rows: Iterable[Row]) -> list[Values]:
    """What is left to write of a batch's rows of one table: each key once, every value as its column takes it."""
    key_of = itemgetter(*map(kind.__struct_fields__.index, kind.key))
    replaces = supersedes(kind)
    held: dict[Any, Values] = {}
    for row in _fitted(kind, [astuple(row) for row in rows]):
        key = key_of(row)
        old = held.get(key)
        if old is None or replaces(old, row):
            held[key] = row
    return list(held.values())
