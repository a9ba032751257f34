"""Whole lists, a page at a time: no server has to put all of a large one into one answer."""

from __future__ import annotations

from collections.abc import AsyncIterator

from bayplan.cluster.kinds import Kind
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Cluster

PAGE = 500
"""Objects, as kubectl asks for them."""


async def all_of(
    cluster: Cluster, kind: Kind, namespace: str | None = None, *, labels: str = ""
) -> AsyncIterator[Object]:
    """The objects that `list` would give, all as of the same revision.

    Raises Expired when that revision is gone before the last page: what was told until then is a part.
    """
    after = ""
    while True:
        page = await cluster.list(kind, namespace, labels=labels, limit=PAGE, after=after)
        for obj in page.items:
            yield obj
        after = page.next
        if not after:
            return
