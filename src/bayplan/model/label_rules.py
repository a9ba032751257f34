"""What a label key and a label value may look like, and the API server's words when they do not.

Source of truth: k8s.io/apimachinery 0.36 pkg/api/validate/content.
"""

from __future__ import annotations

import functools
import re

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME_RE = re.compile(_NAME)
_SUBDOMAIN_RE = re.compile(_SUBDOMAIN)
_CHARACTERS = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_BAD_NAME = (
    f"must consist of {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME}')"
)
_BAD_VALUE = (
    f"a valid label must be an empty string or consist of {_CHARACTERS} (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '({_NAME})?')"
)
_BAD_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LONGEST_NAME = 63
_LONGEST_SUBDOMAIN = 253


@functools.lru_cache(maxsize=4096)
def label_key_problems(key: str) -> tuple[str, ...]:
    """What is wrong with a label key (also: any qualified name); nothing if it is well formed."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (
            f"a valid label key {_BAD_NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    found: list[str] = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found += [f"prefix part {problem}" for problem in subdomain_problems(prefix)]
    if not name:
        found.append("name part must be non-empty")
    elif _bytes(name) > _LONGEST_NAME:
        found.append(f"name part must be no more than {_LONGEST_NAME} bytes")
    if not _NAME_RE.fullmatch(name):
        found.append(f"name part {_BAD_NAME}")
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def label_value_problems(value: str) -> tuple[str, ...]:
    """What is wrong with a label value; nothing if it is well formed."""
    found = []
    if _bytes(value) > _LONGEST_NAME:
        found.append(f"must be no more than {_LONGEST_NAME} bytes")
    if value and not _NAME_RE.fullmatch(value):
        found.append(_BAD_VALUE)
    return tuple(found)


def subdomain_problems(value: str) -> tuple[str, ...]:
    """What is wrong with a DNS subdomain, the form of most names; nothing if it is well formed."""
    found = []
    if _bytes(value) > _LONGEST_SUBDOMAIN:
        found.append(f"must be no more than {_LONGEST_SUBDOMAIN} bytes")
    if not _SUBDOMAIN_RE.fullmatch(value):
        found.append(_BAD_SUBDOMAIN)
    return tuple(found)


def _bytes(text: str) -> int:
    return len(text.encode())
