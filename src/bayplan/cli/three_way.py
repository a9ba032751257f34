"""What `apply` sends: all that the file says now, and the removal of what it said last time and says no longer.

What it said last time is in an annotation of the object, kubectl's own, so that both may be used in turns. Lists with a
merge key merge by it; which they are, the schema table says. Fields that others set are left alone.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from bayplan.cli.printers import ordered
from bayplan.cluster.embedded.schema.table import TABLE, Field, fields_of

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

Doc = dict[str, Any]


def annotated(document: Doc) -> Doc:
    """The document with itself as an annotation, in kubectl's form."""
    whole = copy.deepcopy(document)
    meta = whole.setdefault("metadata", {})
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key != ANNOTATION}
    meta["annotations"] = annotations
    text = msgspec.json.encode(ordered(whole)).decode() + "\n"
    meta["annotations"] = {**annotations, ANNOTATION: text}
    return whole


def last_applied(document: Doc) -> Doc:
    """What the file said last time; {} if nobody knows."""
    text = ((document.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    try:
        said = msgspec.json.decode(text) if text else {}
    except msgspec.DecodeError:
        return {}
    return said if isinstance(said, dict) else {}


def three_way(said: Doc, says: Doc, type_name: str = "") -> Doc:
    """The patch; strategic where the type is known, else a merge patch in which every list is one piece."""
    patch: Doc = {key: None for key in said if key not in says}
    fields = fields_of(type_name) if type_name in TABLE.types else {}
    for key, new in says.items():
        field, old = fields.get(key), said.get(key)
        if isinstance(new, dict):
            patch[key] = _map(old if isinstance(old, dict) else {}, new, field)
        elif isinstance(new, list) and field is not None and "merge" in field.patch:
            patch |= _merging_list(key, old if isinstance(old, list) else [], new, field)
        else:
            patch[key] = new
    return patch


def _map(old: Doc, new: Doc, field: Field | None) -> Doc:
    patch = three_way(old, new, _inner(field))
    if field is not None and "retainKeys" in field.patch:
        patch["$retainKeys"] = [*new]
    return patch


def _merging_list(key: str, old: list[Any], new: list[Any], field: Field) -> Doc:
    """A list that the server merges: its items, those to go, and the order."""
    by = field.merge_key
    if not by:
        gone = [each for each in old if each not in new]
        return {key: new, **({f"$deleteFromPrimitiveList/{key}": gone} if gone else {})}
    before = {each.get(by): each for each in old if isinstance(each, dict)}
    now = {each.get(by) for each in new if isinstance(each, dict)}
    items = [_map(before.get(each.get(by), {}), each, field) for each in new]
    gone = [{by: each, "$patch": "delete"} for each in before if each not in now]
    order = {f"$setElementOrder/{key}": [{by: each.get(by)} for each in new]} if new else {}  # an empty one is refused
    return {key: items + gone, **order}


def _inner(field: Field | None) -> str:
    """The type within a pointer, a list or a map."""
    return field.type.lstrip("*").removeprefix("[]").removeprefix("map ").lstrip("*") if field else ""
