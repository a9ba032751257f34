"""Reading what a client sent: media type, JSON or YAML, the right kind, strict or lenient about unknown fields."""

from __future__ import annotations

import re

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.schema.decode import DecodeError, clean_document, decode
from bayplan.cluster.embedded.schema.document import MalformedBodyError, plain, read_json
from bayplan.cluster.embedded.schema.protobuf import MEDIA as PROTOBUF
from bayplan.cluster.embedded.schema.protobuf import read_protobuf
from bayplan.cluster.embedded.schema.table import TABLE
from bayplan.cluster.embedded.schema.yaml_body import read_yaml
from bayplan.cluster.kinds import KINDS, Kind
from bayplan.model.errors import BadRequest, UnsupportedMediaType

JSON = "application/json"
YAML = "application/yaml"
_GROUP_VERSION = re.compile(r"[^/]+(/[^/]*)?")


def read_object(
    kind: Kind, body: bytes, *, content_type: str = JSON, validation: str = "Warn"
) -> tuple[Doc, list[str]]:
    """The clean document and the warnings. Raises BadRequest, UnsupportedMediaType."""
    media = content_type.partition(";")[0].strip() or JSON
    type_name = TABLE.kinds[kind.name]
    problems: list[str]
    try:
        if media == JSON:
            doc, problems = decode(type_name, body)
        elif media == YAML:
            value, repeats = read_yaml(body)
            doc, problems = decode(type_name, msgspec.json.encode(value))
            if repeats:
                problems.insert(0, "yaml: unmarshal errors:\n  " + "\n  ".join(repeats))
        elif media == PROTOBUF:
            doc, problems = decode(type_name, msgspec.json.encode(read_protobuf(type_name, body)))
        else:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor"
            )
    except MalformedBodyError as error:
        raise unrecognized(kind, body, f"couldn't get version/kind; json parse error: {error}") from None
    except DecodeError as error:
        _check_type(kind, body, media)
        raise bad_document(kind, kind.name, kind.version, str(error)) from None
    check_kind(kind, doc.get("apiVersion") or kind.api_version, doc.get("kind") or kind.name, body)
    doc["apiVersion"], doc["kind"] = kind.api_version, kind.name
    if problems and validation == "Strict":
        raise bad_document(kind, kind.name, kind.version, "strict decoding error: " + ", ".join(problems))
    return doc, [] if validation == "Ignore" else problems


_SPLIT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_PEEKED = {"apiVersion": b'"v1"', "kind": b'"Pod"'}
_PARTS = {*_PEEKED, "metadata", "spec"}
_METADATA = "meta.v1.ObjectMeta"
_QUOTE = b'"'


def _count(*parts: bytes) -> int:
    """The quotes of a body with these two parts and what is peeked at, each key once."""
    return sum(part.count(_QUOTE) for part in parts) + 2 * (len(parts) + 2 * len(_PEEKED))


def split_pod(body: bytes) -> tuple[bytes, bytes]:
    """The bytes of a plain Pod's metadata and spec; (b"", b"") for a body that is anything else."""
    try:
        parts = _SPLIT.decode(body)
        spec, meta = bytes(parts.pop("spec")), bytes(parts.pop("metadata"))
    except (msgspec.MsgspecError, KeyError, RecursionError):
        return b"", b""
    given = {name: bytes(part) for name, part in parts.items()}
    if given != _PEEKED or b"\\u" in body or body.count(_QUOTE) != _count(meta, spec):
        return b"", b""  # a repeated key, a status, another kind: the long way has the words for it
    return meta, spec


def part_pod(doc: Doc) -> tuple[Doc, bytes]:
    """The same of a document: its metadata, and the bytes of its spec; ({}, b"") for one that is anything else."""
    if doc.keys() != _PARTS or doc["apiVersion"] != "v1" or doc["kind"] != "Pod":
        return {}, b""
    return doc["metadata"], msgspec.json.encode(doc["spec"])


def read_metadata(given: bytes | Doc) -> Doc | None:
    """Clean metadata; None when there is anything to say of it."""
    try:
        meta, problems = decode(_METADATA, given) if isinstance(given, bytes) else clean_document(_METADATA, given)
    except (DecodeError, RecursionError):
        return None
    return None if problems else meta


def _check_type(kind: Kind, body: bytes, media: str) -> None:
    """A body that does not decode may be of another kind, or no object at all: that is told first."""
    value = plain(read_json(body)) if media == JSON else read_yaml(body)[0] if media == YAML else {}
    if not isinstance(value, dict):
        sort = {list: "array", str: "string", bool: "bool"}.get(type(value), "number")
        text = f"couldn't get version/kind; json parse error: json: cannot unmarshal {sort} into Go value"
        raise unrecognized(kind, body, text)
    api_version, name = (value.get(key) for key in ("apiVersion", "kind"))
    check_kind(
        kind,
        api_version if isinstance(api_version, str) and api_version else kind.api_version,
        name if isinstance(name, str) and name else kind.name,
        body,
    )


def check_kind(kind: Kind, api_version: str, name: str, body: bytes) -> None:
    """What a body says of its type must be what the request is about. Raises BadRequest."""
    if api_version == kind.api_version and name == kind.name:
        return
    if not _GROUP_VERSION.fullmatch(api_version):
        raise unrecognized(kind, body, f"unexpected GroupVersion string: {api_version}")
    raise bad_document(kind, name, api_version.rpartition("/")[2], kind_mismatch(kind, api_version, name))


def kind_mismatch(kind: Kind, api_version: str, name: str) -> str:
    """Why a document of this type cannot be read as that kind; empty when it can."""
    if api_version == kind.api_version and name == kind.name:
        return ""
    other = KINDS.get(name)
    if other is not None and other.api_version == api_version:
        return f"converting ({other.version}.{other.name}) to ({kind.group or 'core'}.{kind.name}): unknown conversion"
    return f'no kind "{name}" is registered for version "{api_version}"'


def bad_document(kind: Kind, name: str, version: str, text: str) -> BadRequest:
    """An object that cannot be read as what it says it is."""
    return BadRequest(f'{name} in version "{version}" cannot be handled as a {kind.name}: {text}')


def unrecognized(kind: Kind, body: bytes, text: str) -> BadRequest:
    """A body that is no object at all."""
    return BadRequest(f"the object provided is unrecognized (must be of type {kind.name}): {text} ({_summary(body)})")


def _summary(body: bytes, most: int = 30) -> str:
    """The beginning of a body, as upstream quotes it: text if it looks like JSON, hexadecimal otherwise."""
    if not body:
        return "<empty>"
    shown = body[:most]
    text = shown.decode("utf-8", errors="replace") if body[:1] == b"{" else shown.hex()
    return f"{text} ..." if len(body) > most else text
