"""Server-side apply: a manager says what it wants of some fields; the rest of the object is left alone.

The configuration is laid over the live object. Fields that the manager applied before and leaves out now go, unless
another manager owns them. A field of another manager that would change is a conflict, which `force` resolves by taking
the field over; a field with the same value is shared. Source of truth: structured-merge-diff v6 merge/update.go and
apimachinery pkg/util/managedfields/internal.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc, quoted
from bayplan.cluster.embedded.patch.convert import ConversionError, converted
from bayplan.cluster.embedded.patch.fieldsets import (
    FieldSet,
    difference,
    intersection,
    path_text,
    paths,
    union,
)
from bayplan.cluster.embedded.patch.json_patch import same
from bayplan.cluster.embedded.patch.managed_fields import (
    LAST_APPLIED,
    BadEntryError,
    Owner,
    Owners,
    Write,
    give_up,
    last_applied,
    ownable_changes,
    read_owners,
    strip,
    track,
    without_entries,
    write_owners,
)
from bayplan.cluster.embedded.patch.shapes import shape_of
from bayplan.cluster.embedded.patch.typed import ItemError, compare, faults, named_fields
from bayplan.cluster.embedded.patch.weave import merged, removed, with_structs
from bayplan.cluster.embedded.schema.walk import zero
from bayplan.model.errors import BadRequest, Cause, Conflict, Details, ServerError

_KUBECTL = "kubectl"


class _ClashError(Exception):
    """Fields of other managers that the apply would change, by the identity of their owner."""

    def __init__(self, conflicts: dict[str, FieldSet], owners: Owners) -> None:
        super().__init__(conflicts)
        self.conflicts = conflicts
        self.owners = owners


def apply(
    live: Doc | None,
    managed: list[Doc],
    config: Doc,
    *,
    manager: str,
    force: bool,
    kind_type: str,
    api_version: str,
    subresource: str,
    now: str,
) -> tuple[Doc, list[Doc]]:
    """The object after the apply (not yet decoded and defaulted) and its managedFields.

    `live` is None where nothing exists, `managed` are its entries, `config` is the body as sent. The object itself is
    returned where nothing but ownership changes. Raises BadRequest, Conflict, ServerError.
    """
    write = Write(manager=manager, kind_type=kind_type, api_version=api_version, subresource=subresource, now=now)
    _check(config, write)
    try:
        owners = read_owners(managed)
    except BadEntryError as error:
        raise ServerError(f"failed to decode managed fields: {error}") from None
    base = zero(kind_type) if live is None else without_entries(live)
    try:
        if not owners:
            first = msgspec.structs.replace(write, manager="before-first-apply")
            owners = track(zero(kind_type), base, {}, first)
        result, owners = _applied(base, config, owners, write, force=force)
    except _ClashError as clash:
        result, owners = _client_side_upgrade(base, config, owners, write, clash)
    except ItemError as error:
        raise ServerError(f"failed to create typed live object ({_name_of(base)}): {error}") from None
    return _annotated(result, config, write), write_owners(owners)


def _version_kind(config: Doc) -> str:
    """The group, version and kind of a body as Go prints them: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`."""
    api_version, kind = config.get("apiVersion"), config.get("kind")
    text = api_version if isinstance(api_version, str) and api_version.count("/") < 2 else ""
    return f"{text if '/' in text else f'/{text}'}, Kind={kind if isinstance(kind, str) else ''}"


def _name_of(config: Doc) -> str:
    metadata = config.get("metadata")
    parts = (metadata.get(key) if isinstance(metadata, dict) else None for key in ("namespace", "name"))
    names = "/".join(part if isinstance(part, str) else "" for part in parts)
    return f"{names}; {_version_kind(config)}"


def _check(config: Doc, write: Write) -> None:
    kind = write.kind_type.rpartition(".")[2]
    if (config.get("apiVersion"), config.get("kind")) != (write.api_version, kind):
        raise BadRequest(f"invalid object type: {_version_kind(config)}")
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
        raise BadRequest("metadata.managedFields must be nil")
    found = [f"{path}: {words}" if path else words for path, words in faults(config, shape_of(write.kind_type))]
    if found:
        text = found[0] if len(found) == 1 else "\n  ".join(["errors:", *found])
        raise ServerError(f"failed to create typed patch object ({_name_of(config)}): {text}")


def _applied(live: Doc, config: Doc, owners: Owners, write: Write, *, force: bool) -> tuple[Doc, Owners]:
    shape = shape_of(write.kind_type)
    me = write.owner("Apply", write.ownable(named_fields(config, shape)), None)
    before = owners.get(me.identity)
    owners = {**owners, me.identity: me}
    result = _pruned(merged(live, config, shape), owners, before, write)
    changes = ownable_changes(live, result, write)
    changed = union(changes.modified, changes.added)
    others = {key: owner for key, owner in owners.items() if key != me.identity}
    conflicts = {key: both for key, owner in others.items() if (both := intersection(owner.fields, changed))}
    if conflicts and not force:
        raise _ClashError(conflicts, owners)
    rest = {key: give_up(owner, union(changed, changes.removed)) for key, owner in others.items()}
    unchanged = same(live, result)
    time = before.time if unchanged and before is not None else None if unchanged else write.now
    rest[me.identity] = msgspec.structs.replace(me, fields=strip(me.fields), time=time)
    owners = {key: owner for key, owner in rest.items() if owner.fields}
    return live if unchanged else _convertible(result, config, write), owners


def _convertible(result: Doc, config: Doc, write: Write) -> Doc:
    try:
        document: Doc = converted(result, write.kind_type)
    except ConversionError as error:
        kind = _version_kind(config)
        raise ServerError(
            f"failed to convert new object ({_name_of(config)}) to proper version: "
            f"unable to convert unstructured object to {kind}: {error}"
        ) from None
    return document


def _pruned(result: Any, owners: Owners, before: Owner | None, write: Write) -> Doc:
    """The merged object without what its manager applied before, does not now, and nobody else owns."""
    document: Doc = result
    if before is None or not before.fields:
        return document
    shape = shape_of(write.kind_type)
    last = with_structs(before.fields, shape)
    everything = with_structs(named_fields(document, shape), shape)
    left = with_structs(named_fields(removed(document, last, shape), shape), shape)
    owned: FieldSet = {}
    for owner in owners.values():
        owned = union(owned, owner.fields)
    kept = removed(document, difference(everything, union(left, with_structs(owned, shape))), shape)
    gone = difference(everything, with_structs(named_fields(kept, shape), shape))
    return removed(document, intersection(gone, last), shape) or {}


def _client_side_upgrade(
    live: Doc, config: Doc, owners: Owners, write: Write, clash: _ClashError
) -> tuple[Doc, Owners]:
    """kubectl's move from client-side apply: what its annotation says it owns is no conflict."""
    conflicts = clash.conflicts
    document = last_applied(live) if write.manager == _KUBECTL else None
    if isinstance(document, dict) and document.get("apiVersion") == write.api_version:
        allowed = _still_true(document, live, write)
        conflicts = {key: rest for key, both in conflicts.items() if (rest := difference(both, allowed))}
        if not conflicts:
            return _applied(live, config, owners, write, force=True)
    raise _conflict({key: list(map(path_text, paths(both))) for key, both in conflicts.items()}, clash.owners) from None


def _still_true(document: Doc, live: Doc, write: Write) -> FieldSet:
    """The fields of the annotation that the live object still has with the same value."""
    shape = shape_of(write.kind_type)
    if faults(document, shape):
        return {}
    changes = compare(document, live, shape)
    changed = union(changes.modified, union(changes.added, changes.removed))
    return difference(named_fields(document, shape), changed)


def _annotated(result: Doc, config: Doc, write: Write) -> Doc:
    """kubectl's annotation of client-side apply is kept up to date where there is one."""
    if write.manager != _KUBECTL or last_applied(result) is None:
        return result
    metadata = dict(config.get("metadata") or {})
    annotations = {key: text for key, text in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED}
    document = {**config, "metadata": {**metadata, "annotations": annotations}}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    mine = result["metadata"]
    return {**result, "metadata": {**mine, "annotations": {**mine["annotations"], LAST_APPLIED: text}}}


def _shown(owner: Owner) -> str:
    text = quoted(owner.manager)
    if owner.subresource:
        text += f" with subresource {quoted(owner.subresource)}"
    return f"{text} using {owner.api_version}" if owner.operation == "Update" else text


def _conflict(conflicts: dict[str, list[str]], owners: Owners) -> Conflict:
    by_owner = [(_shown(owners[key]), fields) for key, fields in sorted(conflicts.items())]
    causes = [
        Cause(field, "FieldManagerConflict", f"conflict with {name}") for name, fields in by_owner for field in fields
    ]
    if len(causes) == 1:
        text = f"1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        listed = (
            line for name, fields in by_owner for line in (f"conflicts with {name}:", *(f"- {f}" for f in fields))
        )
        text = f"{len(causes)} conflicts: " + "\n".join(listed)
    return Conflict(f"Apply failed with {text}", details=Details(causes=tuple(causes)))
