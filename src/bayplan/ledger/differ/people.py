"""Whose a pod is: the first of a configured label, annotation or the object's creator that says something.

The creator is the manager of the oldest entry in managedFields: `kubectl-create`, a controller, a notebook server. The
API server stores no more about it than that.
"""

from __future__ import annotations

import msgspec

from bayplan.ledger.differ.reading import fit
from bayplan.model.meta import ObjectMeta

UNKNOWN = "unknown"


class UserRule(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod's user is written. Keys are tried in their order, labels before annotations."""

    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    creator: bool = False


class _Manager(msgspec.Struct, frozen=True):
    manager: str = ""
    time: str = ""


_MANAGERS = msgspec.json.Decoder(tuple[_Manager, ...])


def user_of(meta: ObjectMeta, rule: UserRule) -> str:
    """The user of an object."""
    for keys, said in ((rule.labels, meta.labels), (rule.annotations, meta.annotations)):
        for key in keys:
            if user := said.get(key):
                return fit(user)
    return (rule.creator and fit(_creator(meta))) or UNKNOWN


def _creator(meta: ObjectMeta) -> str:
    try:
        managers = _MANAGERS.decode(meta.managed_fields)
    except msgspec.DecodeError:  # left out, or not what it should be: then nobody is named
        return ""
    return min(managers, key=lambda entry: entry.time).manager if managers else ""
