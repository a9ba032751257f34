"""metadata.managedFields: who owns which fields since when, kept true through every write that is not an apply.

An owner is one manager with one operation on one subresource; updaters also by apiVersion. A write takes the fields
that it changes or adds from all others and nobody keeps what it removes; a write that changes nothing takes nothing.
Source of truth: apimachinery pkg/util/managedfields/internal and structured-merge-diff v6 merge/update.go.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.patch.fieldsets import (
    FieldSet,
    decode,
    difference,
    encode,
    field_set,
    union,
    within_trees,
    without_trees,
)
from bayplan.cluster.embedded.patch.shapes import shape_of
from bayplan.cluster.embedded.patch.typed import Changes, ItemError, compare
from bayplan.cluster.embedded.schema.walk import zero

MOST_UPDATERS = 10
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_SERVER_FIELDS = field_set(
    "apiVersion",
    "kind",
    "metadata",
    *(f"metadata.{name}" for name in ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName")),
    *(f"metadata.{name}" for name in ("generation", "managedFields", "resourceVersion")),
)
_RESET = {"": field_set("status"), "status": field_set("spec"), "finalize": field_set("status")}
"""What a write to each subresource cannot change, and therefore never owns."""
_RESET_OF_KIND = {
    ("Deployment", "status"): field_set("spec", "metadata.labels"),
    ("Pod", "status"): field_set("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
    ("ResourceClaim", "status"): field_set("spec", "metadata"),
}
_RESIZED = field_set(
    *(f"spec.{of}.*.{what}" for of in ("containers", "initContainers") for what in ("resources", "resizePolicy"))
)


class Owner(msgspec.Struct, frozen=True):
    """One entry of managedFields."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""
    fields: FieldSet = {}
    time: str | None = None

    @property
    def identity(self) -> str:
        """What tells owners apart; an applier stays the same in every version. Owners are sorted by it."""
        parts = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version if self.operation == "Update" else "",
            "subresource": self.subresource,
        }
        return json.dumps({key: part for key, part in parts.items() if part}, separators=(",", ":"), ensure_ascii=False)


Owners = dict[str, Owner]
"""Owners by identity."""


class BadEntryError(ValueError):
    """An entry of managedFields that cannot be read; the message is upstream's."""


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes what, where and when: the same for every step of one request."""

    manager: str
    kind_type: str
    api_version: str
    subresource: str = ""
    now: str

    def owner(self, operation: str, fields: FieldSet, time: str | None) -> Owner:
        """The entry of this writer."""
        return Owner(self.manager or "unknown", operation, self.api_version, self.subresource, fields, time)

    def ownable(self, fields: FieldSet) -> FieldSet:
        """The set without what a write to this subresource cannot change."""
        if self.subresource == "resize":
            return within_trees(fields, _RESIZED)
        kind = self.kind_type.rpartition(".")[2]
        reset = _RESET_OF_KIND.get((kind, self.subresource)) or _RESET.get(self.subresource, {})
        return without_trees(fields, reset)


def read_owners(entries: list[Doc]) -> Owners:
    """The owners that an object records. Raises BadEntryError."""
    owners = [_read(index, entry) for index, entry in enumerate(entries)]
    return {owner.identity: owner for owner in owners}


def _read(index: int, entry: Doc) -> Owner:
    operation, fields_type = entry.get("operation", ""), entry.get("fieldsType", "")
    if operation not in ("Apply", "Update"):
        raise BadEntryError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise BadEntryError("apiVersion must not be empty")
    if not fields_type:
        raise BadEntryError(f"missing fieldsType in managed fields entry {index}")
    if fields_type != "FieldsV1":
        raise BadEntryError(f'invalid fieldsType "{fields_type}" in managed fields entry {index}')
    try:
        fields = decode(entry.get("fieldsV1") or {})
    except ValueError as error:
        raise BadEntryError(f"error decoding fields of managed fields entry {index}: {error}") from None
    time = entry.get("time")
    return Owner(entry.get("manager", ""), operation, entry["apiVersion"], entry.get("subresource", ""), fields, time)


def write_owners(owners: Owners) -> list[Doc]:
    """The entries to store: appliers first, then by time and name."""
    ordered = sorted(
        owners.values(), key=lambda o: (o.operation, o.time or "", o.manager, o.api_version, o.subresource)
    )
    return [_entry(owner) for owner in ordered]


def _entry(owner: Owner) -> Doc:
    entry = {"manager": owner.manager, "operation": owner.operation, "apiVersion": owner.api_version}
    if owner.time is not None:
        entry["time"] = owner.time
    written: Doc = {**entry, "fieldsType": "FieldsV1", "fieldsV1": encode(owner.fields)}
    return {**written, "subresource": owner.subresource} if owner.subresource else written


def update(
    old: Doc | None,
    new: Doc,
    managed: list[Doc],
    *,
    sent: list[Doc] | None = None,
    manager: str,
    api_version: str,
    subresource: str,
    now: str,
    kind_type: str,
) -> list[Doc]:
    """managedFields after a create, update or patch of any type but apply.

    `new` is the object as decoded and defaulted, before admission; `old` is None for a create. `managed` are the stored
    entries; those of `new` replace them, or reset them with `[{}]`. So does `[]`, which decoding drops: `sent` are the
    entries of the undecoded document, for callers that have it. An object without entries stays so.
    """
    owners = _carried(managed, (new.get("metadata") or {}).get("managedFields") if sent is None else sent, subresource)
    if not owners and old is not None:
        return []
    write = Write(manager=manager, kind_type=kind_type, api_version=api_version, subresource=subresource, now=now)
    before = zero(kind_type) if old is None else without_entries(old)
    try:
        return write_owners(track(before, without_entries(new), owners, write))
    except ItemError:  # a list item without any of its keys: as upstream, the write passes and ownership is forgotten
        return []


def _carried(stored: list[Doc], sent: list[Doc] | None, subresource: str) -> Owners:
    """The owners to start from: what the request says of them counts, if it is readable and says anything."""
    if not subresource and sent is not None:
        if sent in ([], [{}]):
            return {}
        try:
            return read_owners(sent)
        except BadEntryError:
            pass
    try:
        return read_owners(stored)
    except BadEntryError:
        return {}


def without_entries(doc: Doc) -> Doc:
    """The object without its managedFields, which nobody owns."""
    if "managedFields" not in (doc.get("metadata") or {}):
        return doc
    metadata = {key: value for key, value in doc["metadata"].items() if key != "managedFields"}
    return {**doc, "metadata": metadata}


def ownable_changes(old: Doc, new: Doc, write: Write) -> Changes:
    """What the write changes of what it may."""
    changes = compare(old, new, shape_of(write.kind_type))
    return Changes(write.ownable(changes.removed), write.ownable(changes.modified), write.ownable(changes.added))


def strip(fields: FieldSet) -> FieldSet:
    """The set without the fields that belong to the server."""
    return difference(fields, _SERVER_FIELDS)


def track(old: Doc, new: Doc, owners: Owners, write: Write) -> Owners:
    """The owners after a write that made `new` of `old`."""
    changes = ownable_changes(old, new, write)
    taken = union(changes.modified, changes.added)
    kept = {key: give_up(owner, union(taken, changes.removed)) for key, owner in owners.items()}
    result = {key: owner for key, owner in kept.items() if owner.fields}
    if mine := strip(taken):
        me = write.owner("Update", mine, write.now)
        previous = result.get(me.identity)
        fields = union(mine, previous.fields) if previous is not None else mine
        result[me.identity] = msgspec.structs.replace(me, fields=fields)
    return _capped(result)


def give_up(owner: Owner, fields: FieldSet) -> Owner:
    """The owner without some fields."""
    return msgspec.structs.replace(owner, fields=difference(owner.fields, fields))


def _capped(owners: Owners) -> Owners:
    """At most ten updaters: the oldest are put together, a bucket for each apiVersion."""
    updaters = [key for key, owner in owners.items() if owner.operation == "Update"]
    excess = len(updaters) - MOST_UPDATERS
    if excess <= 0:
        return owners
    result, first = dict(owners), dict[str, str]()
    for key in sorted(updaters, key=lambda key: (owners[key].time or "", key)):
        if excess <= 0:
            break
        owner = owners[key]
        if owner.api_version not in first:
            first[owner.api_version] = key
            continue
        bucket = Owner("ancient-changes", "Update", owner.api_version, "", owner.fields, owner.time)
        earlier = result.get(bucket.identity) or result.pop(first[owner.api_version])
        result.pop(key, None)
        result[bucket.identity] = msgspec.structs.replace(bucket, fields=union(owner.fields, earlier.fields))
        excess -= 1
    return result


def last_applied(doc: Doc) -> Any:
    """The configuration that a client-side `kubectl apply` left in an annotation, or None."""
    text = ((doc.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED, "")
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
