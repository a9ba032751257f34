"""Who hangs below whom, by uid: one parent each, children indexed, cycles walked once and cut.

Pods and workloads stand in the same graph: the leader of a LeaderWorkerSet is a pod that controls a StatefulSet.
"""

from __future__ import annotations

from collections.abc import Iterator


class Chains:
    """Links from objects to their controllers. A link may lead to a uid of which nothing else is known."""

    __slots__ = ("_children", "_parent")

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._children: dict[str, dict[str, None]] = {}  # ordered, so that what comes out is the same in every run

    def link(self, uid: str, parent: str) -> bool:
        """Hang one below another ('': below nobody); whether that changed anything."""
        old = self._parent.get(uid, "")
        if old == parent:
            return False
        self._unlink(uid, old)
        if parent:
            self._parent[uid] = parent
            self._children.setdefault(parent, {})[uid] = None
        return True

    def drop(self, uid: str) -> str:
        """Take one out that nothing hangs below; its parent, or ''."""
        parent = self._parent.get(uid, "")
        self._unlink(uid, parent)
        return parent

    def _unlink(self, uid: str, parent: str) -> None:
        if parent:
            del self._parent[uid]
            siblings = self._children[parent]
            del siblings[uid]
            if not siblings:
                del self._children[parent]

    def parent(self, uid: str) -> str:
        """Its controller; '' at the top."""
        return self._parent.get(uid, "")

    def has_below(self, uid: str) -> bool:
        """Whether anything hangs directly below."""
        return uid in self._children

    def above(self, uid: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Its controllers, nearest first, each once; and the cycle that the chain runs into, if it does."""
        chain: dict[str, None] = {uid: None}
        at = self._parent.get(uid, "")
        while at and at not in chain:
            chain[at] = None
            at = self._parent.get(at, "")
        walked = tuple(chain)
        return walked[1:], walked[walked.index(at) :] if at else ()

    def below(self, uid: str) -> Iterator[str]:
        """It and everything below it, each once."""
        met = {uid}
        waiting = [uid]
        while waiting:
            yield (at := waiting.pop())
            fresh = [child for child in self._children.get(at, ()) if child not in met]
            met.update(fresh)
            waiting += fresh
