"""How a patch becomes an update: read it, apply it to the stored object, and let admission judge the result."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.body import kind_mismatch
from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.metadata import validate_field_manager
from bayplan.cluster.embedded.forms import Form
from bayplan.cluster.embedded.patch.apply import apply
from bayplan.cluster.embedded.patch.body import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Body,
    patch_type,
    read_patch,
)
from bayplan.cluster.embedded.patch.json_patch import json_patch
from bayplan.cluster.embedded.patch.merge import merge_patch
from bayplan.cluster.embedded.patch.strategic import strategic_merge
from bayplan.cluster.embedded.refusals import conflict, not_found
from bayplan.cluster.embedded.schema.decode import DecodeError
from bayplan.cluster.kinds import Kind
from bayplan.cluster.objects import Object
from bayplan.model.errors import BadRequest, Cause, Details, Invalid, UnsupportedMediaType

PATCH_OPTIONS = "PatchOptions"


def check_patch_options(type_: str, manager: str, force: bool | None) -> None:
    """What a patch's query may say. Raises Invalid."""
    errors = Errors()
    if type_ == APPLY_PATCH:
        if not manager:
            errors.required("fieldManager", "is required for apply patch")
    elif force is not None:
        errors.forbidden("force", "may not be specified for non-apply patch")
    validate_field_manager(manager, "fieldManager", errors)
    if errors:
        told = [f"{cause.field}: {cause.message}" for cause in errors]
        text = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
        details = Details(group="meta.k8s.io", kind=PATCH_OPTIONS, causes=tuple(errors))
        raise Invalid(f'{PATCH_OPTIONS}.meta.k8s.io "" is invalid: {text}', details=details)


def check_patchable(type_: str, form: Form) -> None:
    """A kind that the table does not have has no strategic merge. Raises UnsupportedMediaType."""
    if type_ == STRATEGIC_PATCH and not form.typed:
        known = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
        text = "the body of the request was in an unknown format - accepted media types include: "
        raise UnsupportedMediaType(text + ", ".join(known))


def patched(form: Form, old: Object, body: Body) -> Any:
    """What a JSON, merge or strategic merge patch makes of an object, not yet decoded. Raises ApiError."""
    document = old.doc()
    if body.type == JSON_PATCH:
        return json_patch(document, body.patch)
    if body.type == MERGE_PATCH:
        return merge_patch(document, body.patch)
    return strategic_merge(document, body.patch, form.type_name)


def read_result(kind: Kind, form: Form, result: Any, body: Body, validation: str) -> tuple[Doc, list[str]]:
    """The patched document, clean, with its warnings. Raises Invalid, BadRequest for what does not decode."""
    try:
        doc, problems = form.clean(result)
        mismatch = kind_mismatch(kind, doc.get("apiVersion", ""), doc.get("kind", ""))
        if mismatch:
            raise DecodeError(mismatch)
        told = [*body.problems, *problems]
        if told and validation == "Strict":
            if body.type == APPLY_PATCH:
                lines = "".join(f"\n  {problem}" for problem in told)
                text = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:"
                raise BadRequest(text + lines)
            raise DecodeError("strict decoding error: " + ", ".join(told))
    except DecodeError as error:
        cause = Cause("patch", "FieldValueInvalid", f'Invalid value: "...": {error}')
        raise Invalid(f' "" is invalid: patch: {cause.message}', details=Details(causes=(cause,))) from None
    return doc, [] if validation == "Ignore" else told


def applied(
    kind: Kind,
    form: Form,
    name: str,
    old: Object | None,
    config: Doc,
    *,
    manager: str,
    force: bool,
    subresource: str,
    now: str,
) -> tuple[Doc, list[Doc]]:
    """The document after a server-side apply, not yet decoded, and its managedFields. Raises ApiError."""
    if old is None:
        if subresource:
            raise not_found(kind, name)
        said = config.get("metadata")
        uid = said.get("uid") if isinstance(said, dict) else None
        if uid:
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(kind, name, why)
    result, managed = apply(
        None if old is None else old.doc(),
        managed_fields(old),
        config,
        manager=manager,
        force=force,
        kind_type=form.type_name,
        api_version=kind.api_version,
        subresource=subresource,
        now=now,
    )
    if old is None:
        meta: dict[str, Any] = result.setdefault("metadata", {})
        meta.setdefault("name", name)
        meta.pop("resourceVersion", None)
    return result, managed


def managed_fields(item: Object | None) -> list[Doc]:
    """The managedFields of an object as plain values."""
    raw = b"" if item is None else bytes(item.meta.managed_fields)
    entries: list[Doc] = msgspec.json.decode(raw) if raw else []
    return entries


def same_owners(left: list[Doc], right: list[Doc]) -> bool:
    """Whether two managedFields differ in nothing but their times."""
    return [_timeless(entry) for entry in left] == [_timeless(entry) for entry in right]


def _timeless(entry: Doc) -> Doc:
    return {key: value for key, value in entry.items() if key != "time"}


__all__ = [
    "APPLY_PATCH",
    "applied",
    "check_patch_options",
    "check_patchable",
    "managed_fields",
    "patch_type",
    "patched",
    "read_patch",
    "read_result",
    "same_owners",
]
