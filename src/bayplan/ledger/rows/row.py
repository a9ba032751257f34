"""What a row is, and what its columns are made of."""

from __future__ import annotations

import enum
from typing import Annotated, ClassVar

import msgspec

Name = Annotated[str, msgspec.Meta(max_length=253)]
"""Names, kinds, uids, labels of nodes: what Kubernetes bounds at 253 characters."""
Word = Annotated[str, msgspec.Meta(max_length=63)]
Hash = Annotated[bytes, msgspec.Meta(max_length=16)]
MILLI = 1000


class Sort(enum.Enum):
    """How a row meets one that is there already."""

    STATE = "state"
    FACT = "fact"
    PERIOD = "period"


class Row(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A row of a table; the class says which, and what identifies it."""

    table: ClassVar[str]
    key: ClassVar[tuple[str, ...]]
    sort: ClassVar[Sort]
    indexes: ClassVar[tuple[tuple[str, ...], ...]] = ()

    cluster: Name
