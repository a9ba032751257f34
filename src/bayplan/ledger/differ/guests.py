"""Pods without GPUs on nodes that have some: all that matters of them is what they take of the CPU and memory there.

Which nodes have GPUs may be told after the pods: the device plugin itself is such a pod. So what every pod takes is
known from its binding on, and stored as soon as its node has GPUs. Of most versions it is enough to see that the spec
is the one that was counted. What was bound before this run to a node that had
none then is not known, and neither is that node's room (`nodes.py`): a sum without them would be too small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from bayplan.cluster.live.reflector_core import Key, Known
from bayplan.cluster.objects import Object
from bayplan.cluster.salvage import UNREADABLE
from bayplan.ledger.differ.facts import TERMINAL, pod_facts
from bayplan.ledger.differ.life import Life, live_on, seen_end
from bayplan.ledger.differ.periods import Step, closed, roomed
from bayplan.ledger.differ.reading import identity, version
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.rows import PodRoomPeriod, Rows

_BOUND = b'"nodeName"'
_RESIZES = b'"PodResize'
"""Conditions of a pod that is being resized: what it takes does not follow from its spec alone."""
_ENDED = tuple(f'"phase":"{phase}"'.encode() for phase in sorted(TERMINAL))


class _Phase(msgspec.Struct):
    phase: str = ""


_READ_PHASE = msgspec.json.Decoder(_Phase)


class Guests:
    """Those of a cluster that have not ended."""

    def __init__(self, kept: Iterable[PodRoomPeriod], has_gpus: Callable[[str], bool]) -> None:
        """`kept`: their open periods; `has_gpus` of a node, as far as it is known."""
        self._open = {period.pod_uid: period for period in kept}
        self._has_gpus = has_gpus
        self._counted: dict[str, int] = {}
        """By pod, the hash of the spec that it was counted by at first sight; of one that was resized there is none."""
        self._waiting: dict[str, set[str]] = {}
        """Those whose periods are not stored, by node."""

    def known(self) -> dict[Key, Known]:
        """What a reflector must be told, so that it tells of those that are gone by now."""
        return {(each.namespace, each.name): (each.pod_uid, str(each.resource_version)) for each in self._open.values()}

    def changed(self, obj: Object, seen: Seen, rows: Rows) -> None:
        """Add what a version brings."""
        uid = identity(obj)
        held = self._open.get(uid)
        if held is None and not _is_new_guest(obj):
            return
        if held is not None and (version(obj) <= held.resource_version or self._goes_on(uid, obj)):
            return
        facts = pod_facts(obj, seen.vendors, seen.people)
        lived = Life(held.start_at, held.start_at) if held is not None else None
        step = Step(facts, live_on(lived, None, facts, seen), seen, lived, {})
        stored = self._has_gpus(facts.node) if held is None else self._is_stored(held)
        now = roomed(held, step, rows if stored else Rows())
        if now is None:
            self.forget(uid)
            return
        if held is None:
            self._counted[uid] = _spec_hash(obj)
        else:
            self._counted.pop(uid, None)
        self._open[uid] = now
        if not stored:
            self._waiting.setdefault(facts.node, set()).add(uid)

    def gone(self, uid: str, obj: Object, seen: Seen, rows: Rows) -> None:
        """Add what a disappearance brings."""
        held = self._open.get(uid)
        if held is None:
            return
        if self._is_stored(held):
            rows.add(closed(held, seen_end(seen), max(held.resource_version, version(obj))))
        self.forget(uid)

    def got_gpus(self, node: str, rows: Rows) -> None:
        """Add what its guests have taken so far of a node that has GPUs from now on."""
        rows.add(*(self._open[uid] for uid in sorted(self._waiting.pop(node, ()))))

    def _is_stored(self, held: PodRoomPeriod) -> bool:
        return held.pod_uid not in self._waiting.get(held.node_name, ())

    def _goes_on(self, uid: str, obj: Object) -> bool:
        """Whether a version changes nothing: it runs on with the spec that was counted."""
        if self._counted.get(uid) != _spec_hash(obj):
            return False
        status = obj.sections.get("status")
        if status is None or _RESIZES in status.raw:
            return False
        try:
            return _READ_PHASE.decode(status.raw).phase not in TERMINAL
        except UNREADABLE:
            return False  # what can be read of it all the same, the long way tells

    def forget(self, uid: str) -> None:
        """It is none any more; its period stays as it is."""
        held = self._open.pop(uid, None)
        self._counted.pop(uid, None)
        if held is not None and (waiting := self._waiting.get(held.node_name)):
            waiting.discard(uid)
            if not waiting:
                del self._waiting[held.node_name]


def _spec_hash(obj: Object) -> int:
    spec = obj.sections.get("spec")
    return hash(b"" if spec is None else spec.raw)


def _is_new_guest(obj: Object) -> bool:
    """Whether a pod that is not known is bound, and has not ended; told without decoding it."""
    spec, status = obj.sections.get("spec"), obj.sections.get("status")
    if spec is None or _BOUND not in spec.raw:
        return False
    return status is None or not any(ended in status.raw for ended in _ENDED)
