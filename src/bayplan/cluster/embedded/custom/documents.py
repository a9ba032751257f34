"""Reading documents of custom kinds: JSON or YAML, metadata as every object has it, the rest by its schema."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.body import JSON, YAML, bad_document, check_kind, unrecognized
from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.custom.schema import default, prune
from bayplan.cluster.embedded.patch.body import repeated_fields
from bayplan.cluster.embedded.schema.decode import DecodeError, decode
from bayplan.cluster.embedded.schema.document import MalformedBodyError, plain, read_json
from bayplan.cluster.embedded.schema.yaml_body import read_yaml
from bayplan.cluster.kinds import Kind
from bayplan.model.errors import UnsupportedMediaType

_METADATA = "meta.v1.ObjectMeta"


def read_custom(kind: Kind, schema: Doc, body: bytes, content_type: str, validation: str) -> tuple[Doc, list[str]]:
    """The clean document and the warnings. Raises BadRequest, UnsupportedMediaType."""
    media = content_type.partition(";")[0].strip() or JSON
    try:
        if media == JSON:
            tree = read_json(body)
            value, problems = plain(tree), repeated_fields(tree)
        elif media == YAML:
            value, problems = read_yaml(body)
        else:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json, application/yaml"
            )
    except MalformedBodyError as error:
        raise unrecognized(kind, body, f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(value, dict):
        raise unrecognized(kind, body, "couldn't get version/kind; json parse error: it is no object")
    check_kind(kind, value.get("apiVersion") or kind.api_version, value.get("kind") or kind.name, body)
    try:
        doc, more = clean_custom(kind, schema, value)
    except DecodeError as error:
        raise bad_document(kind, kind.name, kind.version, str(error)) from None
    problems = [*problems, *more]
    if problems and validation == "Strict":
        raise bad_document(kind, kind.name, kind.version, "strict decoding error: " + ", ".join(problems))
    return doc, [] if validation == "Ignore" else problems


def clean_custom(kind: Kind, schema: Doc, value: Doc) -> tuple[Doc, list[str]]:
    """The document without unknown fields and with its defaults, and what was unknown. Raises DecodeError."""
    given = value.get("metadata")
    if given is not None and not isinstance(given, dict):
        raise DecodeError("json: cannot unmarshal metadata: it is no object")
    metadata, problems = decode(_METADATA, msgspec.json.encode(given or {}))
    doc: dict[str, Any] = {**value, "apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
    problems = [problem.replace('field "', 'field "metadata.', 1) for problem in problems]
    problems += [f'unknown field "{path}"' for path in prune(doc, schema)]
    default(doc, schema)
    return doc, problems
