"""Admission remembered: most pods have a spec that was admitted before, byte for byte.

Defaulting and validating a spec is a pure function of its bytes and of a few rarely changing objects, so its outcome is
kept: the spec as stored and the status it starts with. The next pod with the same bytes in the same namespace needs
only its metadata checked, and shares the stored bytes. That is what makes stamping from a template cheap.

Not remembered, because the outcome depends on more: specs that read the pod's own metadata or a node's, annotations
that admission reads, namespaces with quotas or limit ranges, and anything that led to a warning.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Sequence

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.store import Change, Store
from bayplan.cluster.kinds import LIMIT_RANGE, NAMESPACE, PRIORITY_CLASS, RESOURCE_QUOTA, RUNTIME_CLASS
from bayplan.cluster.objects import Section

_MOST = 4096
"""Specs remembered at a time."""
_MOST_BYTES = 64 * 1024
"""A larger spec is not worth remembering."""
_WATCHED = frozenset((NAMESPACE, LIMIT_RANGE, RESOURCE_QUOTA, PRIORITY_CLASS, RUNTIME_CLASS))
_SPECIAL_FIELDS = (b'"matchLabelKeys"', b'"mismatchLabelKeys"', b'"schedulingGates"', b'"ephemeral"', b'"nodeName"')
_SPECIAL_ANNOTATIONS = (
    "apparmor",
    "seccomp",
    "sysctls",
    "config.mirror",
    "critical-pod",
    "init-container",
    "pod-deletion-cost",
)

Sections = dict[str, Section]


class Recall:
    """The outcomes of admitting pod specs, by namespace and bytes; forgotten when what they rest on changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, bytes], Sections] = OrderedDict()
        store.listeners.append(self._forget)

    def _forget(self, change: Change) -> None:
        if change.new.kind in _WATCHED:
            self._known.clear()

    def knows(self, namespace: str, spec: bytes) -> bool:
        """Whether a pod with this spec was admitted before."""
        return (namespace, spec) in self._known

    def find(self, namespace: str, spec: bytes, meta: Doc) -> Sections | None:
        """The stored sections of an earlier pod with this spec, if they would be this one's too."""
        found = self._known.get((namespace, spec))
        return found if found is not None and _plain(meta) else None

    def keep(self, namespace: str, spec: bytes, meta: Doc, sections: Sections, warnings: Sequence[str]) -> None:
        """Remember what became of a spec, if that rests on nothing else."""
        if (
            warnings
            or len(spec) > _MOST_BYTES
            or any(word in sections["spec"].raw for word in _SPECIAL_FIELDS)  # as stored: no escapes to hide behind
            or not _plain(meta)
            or self._store.count(RESOURCE_QUOTA, namespace)
            or self._store.count(LIMIT_RANGE, namespace)
        ):
            return
        self._known[(namespace, spec)] = {"spec": sections["spec"], "status": sections["status"]}
        if len(self._known) > _MOST:
            self._known.popitem(last=False)


def _plain(meta: Doc) -> bool:
    """Whether nothing in the metadata has a say in the spec, or leads to a warning."""
    name = meta.get("name") or meta.get("generateName", "")
    if "." in name or len(name) > 57:
        return False
    return not any(map(_is_special, meta.get("annotations", ())))


@functools.lru_cache(maxsize=1024)
def _is_special(annotation: str) -> bool:
    return any(word in annotation for word in _SPECIAL_ANNOTATIONS)
