"""A hint: NUMA nodes that would do for a resource, and whether they are the best one could wish for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bayplan.node.sets import NodeSet


class Hint(NamedTuple):
    """`nodes` None: any will do."""

    nodes: NodeSet | None
    preferred: bool


Hints = Mapping[str, Sequence[Hint] | None] | None
"""A provider's hints by resource. None, or None for a resource: no opinion. Empty for a resource: nothing will do."""

NO_HINT = Hint(None, False)
"""What is in force where no affinity was ever decided."""
