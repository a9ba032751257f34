"""What a write may say: its options, its answer, and the checks of what a body claims about itself."""

from __future__ import annotations

import msgspec

from bayplan.cluster.embedded.admission.body import JSON
from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pipeline import invalid
from bayplan.cluster.embedded.refusals import modified, options_refused
from bayplan.cluster.kinds import Kind
from bayplan.cluster.objects import Object
from bayplan.model.errors import BadRequest, NotFound, ServerError

_MAX_VERSION = 1 << 64
_MAX_VERSION_DIGITS = 20
_WRITABLE = ("status", "resize", "finalize")


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may ask of a write."""

    dry_run: bool = False
    field_manager: str = ""
    """Who writes. Ownership of fields is tracked for writes that say so, and on objects that have owners already."""
    validation: str = "Warn"
    """Unknown and repeated fields: `Strict` refuses, `Warn` warns, `Ignore` is silent."""
    content_type: str = JSON
    force: bool | None = None
    """Server-side apply only: take fields from their owners."""


class Answer(msgspec.Struct, frozen=True):
    """What a write led to. `status` is the HTTP status it would have: 200, or 201 for something new."""

    object: Object
    status: int = 200
    warnings: tuple[str, ...] = ()


PLAIN = WriteOptions()


def check_name(doc: Doc, name: str) -> None:
    """The name of the body must be the request's. Raises BadRequest."""
    given = doc["metadata"].get("name", "")
    if not given:
        raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if given != name:
        raise BadRequest(f"the name of the object ({given}) does not match the name on the URL ({name})")


def check_version(old: Object, doc: Doc, *, needed: bool) -> None:
    """The resourceVersion of the body must be the present one, if it says any; if not, the present one is filled in.

    Raises Conflict, Invalid where the kind needs one, ServerError for something that is no version.
    """
    meta = doc["metadata"]
    given = meta.get("resourceVersion", "")
    digits = given.isascii() and given.isdigit() and len(given) <= _MAX_VERSION_DIGITS
    if given and not (digits and int(given) < _MAX_VERSION):
        raise ServerError(f'strconv.ParseUint: parsing "{given}": invalid syntax')
    if not int(given or "0"):
        if needed:
            errors = Errors()
            errors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(msgspec.structs.replace(old.kind, name=old.kind.plural), old.name, errors)
        meta["resourceVersion"] = old.meta.resource_version
    elif int(given) != old.version:
        raise modified(old.kind, old.name)


def check_subresource(kind: Kind, subresource: str) -> None:
    """What a write goes to must be there, and take whole objects. Raises NotFound."""
    if subresource and (subresource not in _WRITABLE or subresource not in kind.subresources):
        raise NotFound("the server could not find the requested resource")


def check_options(options: WriteOptions, kind: str) -> None:
    """The query of a write must make sense. Raises Invalid."""
    if options.validation not in ("Strict", "Warn", "Ignore", ""):
        raise options_refused(kind, "fieldValidation", options.validation, ("Ignore", "Strict", "Warn"))
