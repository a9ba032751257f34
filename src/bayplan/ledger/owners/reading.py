"""What of a workload's object is kept, read as far as it can be."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.objects import Object
from bayplan.cluster.salvage import UNREADABLE
from bayplan.ledger.differ.people import UserRule, user_of
from bayplan.ledger.differ.reading import instant, version
from bayplan.ledger.owners.workload import Workload
from bayplan.ledger.status.document import Document
from bayplan.ledger.status.judge import of_object

_ENCODE = msgspec.json.Encoder(order="sorted").encode
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The whole object once more."""


def read(workload: Workload, obj: Object, people: UserRule) -> list[str]:
    """Take over what a version of the object says; what could not be read of it."""
    meta, faults = obj.meta, list[str]()
    workload.api_version, workload.kind = obj.kind.api_version, obj.kind.name
    workload.namespace, workload.name = meta.namespace, meta.name
    workload.version = max(workload.version, version(obj))
    workload.created_at = instant(meta.creation_timestamp)
    workload.deleting = meta.deletion_timestamp is not None
    workload.labels = _text(meta.labels)
    workload.annotations = _text({key: said for key, said in meta.annotations.items() if key != _LAST_APPLIED})
    workload.user = user_of(meta, people)
    document = Document(_section(obj, "spec", faults), _section(obj, "status", faults))
    workload.own = of_object(workload.group_kind, document) if obj.sections else None
    return faults


def _text(said: dict[str, str]) -> str:
    return _ENCODE(said).decode()


def _section(obj: Object, name: str, faults: list[str]) -> Any:
    found = obj.sections.get(name)
    if found is None:
        return None
    try:
        return found.plain()
    except UNREADABLE as error:
        faults.append(f"{name}: {error}")
        return None
