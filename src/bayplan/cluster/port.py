"""The port: everything bayplan ever asks of a cluster, whichever stands behind it.

`embedded` answers from memory, `live` from any Kubernetes API server. One contract suite judges all of them, so each
method says what it promises in the words of the one who calls it. Errors are those of `bayplan.model.errors`, as the
API server gives them; every method may also raise ServerError (temporary) and Forbidden (permanent).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any, Literal, Protocol

import msgspec

from bayplan.cluster.kinds import Kind
from bayplan.cluster.objects import Object

Propagation = Literal["Orphan", "Background", "Foreground"]
Body = bytes | dict[str, Any]
"""A document to send: JSON bytes, or plain values that will be encoded."""
Operations = list[Any]
"""A JSON patch."""


class PatchType(Enum):
    """How a patch is to be read; the value is its media type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Page(msgspec.Struct, frozen=True):
    """A part of a list. All pages of one list show the cluster at the same revision."""

    items: tuple[Object, ...]
    revision: str
    """The resourceVersion of the list: watch from here to miss nothing."""
    next: str = ""
    """Hand it to the next call as `after`; empty on the last page."""
    remaining: int = 0


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One event of a watch: ADDED, MODIFIED, DELETED with the object's last state, or BOOKMARK with none."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    revision: str
    object: Object | None = None


class Cluster(Protocol):
    """A Kubernetes cluster. `namespace` is '' for cluster-scoped kinds; None in list and watch means all namespaces."""

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        after: str = "",
    ) -> Page:
        """The objects of a kind that match both selectors, ordered by namespace and name.

        With `limit`, at most that many; `after` continues where a page ended, showing the same revision whatever has
        changed since. Raises Expired when that revision is gone (list anew), BadRequest for a selector or token that
        cannot be read.
        """
        ...

    def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        since: str = "",
        labels: str = "",
        fields: str = "",
        bookmarks: bool = False,
        timeout: float | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """What happens to matching objects after revision `since`, each change once and in order.

        Without `since` the present objects come first, as ADDED. An object that comes to match is ADDED, one that
        ceases to is DELETED. With `bookmarks`, BOOKMARK events tell from time to time how far the stream has come.
        Ends after `timeout` seconds, else only when closed. Raises Expired, at once or later, when changes that were
        still to be told are gone from history: list again and watch from there.
        """
        ...

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object:
        """One object as it is now. Raises NotFound."""
        ...

    async def create(
        self,
        kind: Kind,
        body: Body,
        namespace: str = "",
        *,
        dry_run: bool = False,
        manager: str = "",
        strict: bool = False,
    ) -> Object:
        """Store a new object; the answer is what was stored, defaults included.

        A name may be left to the server with metadata.generateName. Raises AlreadyExists; Invalid with one Cause for
        every broken rule; BadRequest for a body that cannot be read, and with `strict` for unknown fields (else they
        are dropped with a warning); Forbidden by quota or policy; NotFound when the namespace is missing. When it
        raises, nothing was stored.
        """
        ...

    async def update(
        self,
        kind: Kind,
        body: Body,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        dry_run: bool = False,
        manager: str = "",
    ) -> Object:
        """Replace an object, or with `subresource="status"` its status alone.

        When the body names a resourceVersion that is not the present one, raises Conflict: read anew and try again.
        Without one, the present version is replaced. An update that changes nothing makes no new version. Raises
        NotFound, Invalid.
        """
        ...

    async def patch(
        self,
        kind: Kind,
        body: Body | Operations,
        name: str,
        namespace: str = "",
        *,
        type: PatchType = PatchType.MERGE,  # noqa: A002 - the word every Kubernetes client has for it
        subresource: str = "",
        dry_run: bool = False,
        manager: str = "",
        force: bool = False,
    ) -> Object:
        """Change an object by a patch. Concurrent changes do not matter unless the patch names a resourceVersion.

        APPLY needs `manager`, creates the object when it is missing, and raises Conflict naming the owner of each field
        that another manager owns and the patch would change; `force` takes those fields over. Raises NotFound, Invalid.
        """
        ...

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        grace: int | None = None,
        uid: str = "",
        version: str = "",
        propagation: Propagation | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Begin an object's deletion; the answer is its last known state.

        Returns once the deletion is accepted: the object may stay for its grace period or until its finalizers are
        gone. Dependents go later (Background, the default), first (Foreground) or stay (Orphan). Raises NotFound;
        Conflict when `uid` or `version` is not the object's.
        """
        ...

    async def bind(self, pod: str, node: str, namespace: str, *, uid: str = "") -> None:
        """Assign a pending pod to a node. Raises Conflict when it is bound, gated, going, or not that uid; NotFound."""
        ...

    async def evict(
        self, pod: str, namespace: str, *, grace: int | None = None, uid: str = "", dry_run: bool = False
    ) -> None:
        """Ask for a pod's removal, honouring its disruption budgets.

        Returns once the deletion is accepted, not once the pod is gone. Raises TooManyRequests with the budget's name
        when the budget forbids it now (temporary: try again), NotFound when the pod is gone already, Conflict when
        `uid` no longer matches.
        """
        ...

    async def scale(self, kind: Kind, name: str, namespace: str, replicas: int) -> None:
        """Set how many replicas an object wants, and nothing else. Raises NotFound, Invalid when negative."""
        ...

    async def logs(
        self, pod: str, namespace: str, *, container: str = "", previous: bool = False, tail: int | None = None
    ) -> str:
        """What a container has written so far, or with `previous` the instance before its last restart.

        Raises NotFound; BadRequest when the container is unknown, has not started, or is one of several and not named.
        """
        ...
