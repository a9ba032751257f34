"""Secrets: bytes under keys, with the keys that a well-known type asks for.

Source of truth: core/validation, ValidateSecret and ValidateSecretUpdate; core/v1/conversion.go folds `stringData` into
`data`; the warning on certificates is crypto/tls's X509KeyPair, as far as the PEM blocks go.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.config_map import MOST_BYTES, byte_count, validate_frozen
from bayplan.cluster.embedded.admission.metadata import IMMUTABLE
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import config_map_key, subdomain_name
from bayplan.cluster.kinds import SECRET

_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_TLS = "kubernetes.io/tls"
_JSON_TYPES = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def _default(doc: Doc) -> None:
    doc.setdefault("type", "Opaque")
    if plain := doc.pop("stringData", None):
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
        doc["data"] = doc.get("data", {}) | encoded


def _validate(doc: Doc, errors: Errors) -> None:
    data = doc.get("data", {})
    for key in data:
        for fault in config_map_key(key):
            errors.invalid(f"data[{key}]", key, fault)
    if sum(map(byte_count, data.values())) > MOST_BYTES:
        errors.too_long("data", MOST_BYTES)
    if rule := _TYPE_RULES.get(doc.get("type", "")):
        rule(doc, data, errors)


def _validate_token(doc: Doc, _data: Mapping[str, str], errors: Errors) -> None:
    if not doc["metadata"].get("annotations", {}).get(_ACCOUNT_NAME):
        errors.required(f"metadata.annotations[{_ACCOUNT_NAME}]")


def _validate_basic_auth(_doc: Doc, data: Mapping[str, str], errors: Errors) -> None:
    if "username" not in data and "password" not in data:
        errors.required("data[username]")
        errors.required("data[password]")


def _validate_ssh_auth(_doc: Doc, data: Mapping[str, str], errors: Errors) -> None:
    if not data.get("ssh-privatekey"):
        errors.required("data[ssh-privatekey]")


def _validate_tls(_doc: Doc, data: Mapping[str, str], errors: Errors) -> None:
    for key in ("tls.crt", "tls.key"):
        if key not in data:
            errors.required(f"data[{key}]")


def _holds_json(key: str) -> Callable[[Doc, Mapping[str, str], Errors], None]:
    def rule(_doc: Doc, data: Mapping[str, str], errors: Errors) -> None:
        if key not in data:
            errors.required(f"data[{key}]")
        elif fault := _json_object_fault(base64.b64decode(data[key])):
            errors.invalid(f"data[{key}]", "<secret contents redacted>", fault)

    return rule


def _json_object_fault(content: bytes) -> str:
    """Why Go would not read these bytes as a JSON object; empty if it would."""
    text = content.decode(errors="replace")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()):
            return "unexpected end of JSON input"
        return f"invalid character '{text[error.pos]}' looking for beginning of value"
    if value is None or isinstance(value, dict):
        return ""
    return f"json: cannot unmarshal {_JSON_TYPES[type(value)]} into Go value of type map[string]interface {{}}"


_TYPE_RULES = {
    "kubernetes.io/service-account-token": _validate_token,
    "kubernetes.io/dockercfg": _holds_json(".dockercfg"),
    "kubernetes.io/dockerconfigjson": _holds_json(".dockerconfigjson"),
    "kubernetes.io/basic-auth": _validate_basic_auth,
    "kubernetes.io/ssh-auth": _validate_ssh_auth,
    _TLS: _validate_tls,
}


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    if new.get("type", "") != old.get("type", ""):
        errors.invalid("type", new.get("type", ""), IMMUTABLE)
    validate_frozen(new, old, ("data",), errors)
    _validate(new, errors)


_PEM_BLOCK = re.compile(rb"-----BEGIN ([^\n]*?)-----\s.*?-----END \1-----", re.DOTALL)


def _warn(new: Doc, _old: Doc | None) -> list[str]:
    if new.get("type") != _TLS:
        return []
    fault = _certificate_fault(_blocks(new, "tls.crt")) or _key_fault(_blocks(new, "tls.key"))
    return [f"tls: {fault}"] if fault else []


def _blocks(doc: Doc, key: str) -> list[str]:
    """The types of the PEM blocks under a key, in their order."""
    content = base64.b64decode(doc.get("data", {}).get(key, ""))
    return [kind.decode(errors="replace") for kind in _PEM_BLOCK.findall(content)]


def _certificate_fault(blocks: list[str]) -> str:
    if "CERTIFICATE" in blocks:
        return ""
    if not blocks:
        return "failed to find any PEM data in certificate input"
    if len(blocks) == 1 and blocks[0].endswith("PRIVATE KEY"):
        return (
            "failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    skipped = " ".join(blocks)
    return (
        'failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: '
        f"[{skipped}]"
    )


def _key_fault(blocks: list[str]) -> str:
    if any(block == "PRIVATE KEY" or block.endswith(" PRIVATE KEY") for block in blocks):
        return ""
    if not blocks:
        return "failed to find any PEM data in key input"
    if blocks == ["CERTIFICATE"]:
        return "found a certificate rather than a key in the PEM for the private key"
    skipped = " ".join(blocks)
    return (
        'failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the '
        f"following types: [{skipped}]"
    )


STRATEGY = Strategy(
    kind=SECRET,
    name_rule=subdomain_name,
    default=_default,
    validate=_validate,
    validate_update=_validate_update,
    warn=_warn,
)
