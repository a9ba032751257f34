"""What must never reach a log: passwords, tokens, keys, the data of Secrets. By name in fields, by shape in texts.

`redact` also makes a value plain (JSON's types), so a log line can always be written. It errs on the side of hiding.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

import msgspec

HIDDEN = "[redacted]"

_KEY = r"(?:api|access|private|account|signing|encryption|client)[-_. ]?key"
_WORD = (
    r"(?:(?<![a-z])pass|(?<![a-z])pwd|password|passwd|passphrase|secret|tokens?|authorization|credentials?|cookie|"
    rf"{_KEY}(?:[-_.]?data)?)"
)

# A field's name is looked at word by word: dbPassword, x-api-key and APIKey are db_password, x_api_key and api_key.
_SPLIT = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SECRET_NAME = re.compile(
    rf"(?:^|_)(?:pass|pwd|authorization|credentials?|cookie|tokens|{_KEY})(?:_|$)|"
    r"(?:password|passwd|passphrase|secret|token)(?:_|$)"
)
_HARMLESS = ("_name", "_names", "_namespace", "_ref", "_count", "_kind", "_type")  # secretName tells no secret

# Each keeps what names the secret (group 1) and hides the secret itself.
_SHAPES = (
    re.compile(r"(://[^\s/:@]*:)(?!\d+/)[^\s\"']+(?=@)"),  # scheme://user:PASSWORD@host; digits and a slash are a port
    re.compile(r"(\b(?:bearer|basic)\s+)(?!\[redacted)[\w.~+/=-]{6,}", re.IGNORECASE),
    re.compile(r"()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),  # a JSON web token
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(  # password=..., "token": "...", --api-key ...
        rf"({_WORD}\b\\?[\"']?\s{{0,9}}[=:]\s{{0,9}}|(?<!-)--[\w-]{{0,40}}{_WORD}\s+)"
        r"(?!\[redacted|(?:bearer|basic) +\[redacted)(?:\\?\"(?:[^\"\\]|\\[^\"])*\\?\"|'[^']*'|[^\s,;&\"'}\])]+)",
        re.IGNORECASE,
    ),
)


def scrub(text: str) -> str:
    """The text without the secrets that can be told by their shape."""
    for shape in _SHAPES:
        text = shape.sub(rf"\1{HIDDEN}", text)
    return text


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds something to hide: `token`, `dbPassword`, `x-api-key`."""
    words = "_".join(_SPLIT.findall(name)).lower()
    return _SECRET_NAME.search(words) is not None and not words.endswith(_HARMLESS)


def redact(value: Any, name: str = "") -> Any:
    """The value in JSON's types, without its secrets; `name` is the field it stands under."""
    if value is None or isinstance(value, bool):
        return value
    if is_secret_name(name):
        return HIDDEN
    if isinstance(value, int | float):
        return value
    return _redact_other(value)


def _redact_other(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, bytes):
        return scrub(value.decode(errors="backslashreplace"))
    if isinstance(value, msgspec.Struct):
        return redact(msgspec.structs.asdict(value))
    if isinstance(value, Mapping):
        return _redact_mapping(value)
    if isinstance(value, Sequence | Set):
        return [redact(item) for item in value]
    return scrub(str(value))


def _redact_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    hidden = set()
    if value.get("kind") == "Secret":
        hidden = {"data", "stringData"}
    elif is_secret_name(str(value.get("name", ""))):
        hidden = {"value"}  # a container's environment: {name: DB_PASSWORD, value: ...}
    return {str(k): HIDDEN if k in hidden else redact(v, str(k)) for k, v in value.items()}
