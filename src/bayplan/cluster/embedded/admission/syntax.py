"""What a name, a label, a port or an address may look like.

Each check takes a value and returns what is wrong with it, in upstream's words; an empty list is a good value. The
lists are shared between calls and not to be changed: most values repeat, so the answers are kept.

Source of truth: apimachinery pkg/util/validation and pkg/api/validate/content. The two packages word lengths
differently ("characters", "bytes"), and so do this module and `model.label_rules`. Lengths count bytes, as Go does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from ipaddress import AddressValueError, IPv4Address, IPv6Address, NetmaskValueError, ip_network

from bayplan.model.label_rules import label_key_problems, label_value_problems

IPAddress = IPv4Address | IPv6Address

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORED = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"

_cached = lru_cache(maxsize=8192)


def too_long(most: int) -> str:
    """The text for a value of more than `most` bytes."""
    return f"must be no more than {most} characters"


def between(low: int, high: int) -> str:
    """The text for a number out of range."""
    return f"must be between {low} and {high}, inclusive"


def size(text: str) -> int:
    """The length in bytes."""
    return len(text) if text.isascii() else len(text.encode())


def regex_text(message: str, pattern: str, *examples: str) -> str:
    """`message` with its examples and pattern; the odd comma before "or" is upstream's."""
    if not examples:
        return f"{message} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


class _Pattern:
    """A pattern, the longest match allowed (0: any), and the text for what does not match."""

    def __init__(self, pattern: str, message: str, *examples: str, most: int = 0) -> None:
        self.matches = re.compile(pattern).fullmatch
        self.text = regex_text(message, pattern, *examples)
        self.most = most

    def faults(self, value: str) -> list[str]:
        faults = [too_long(self.most)] if self.most and size(value) > self.most else []
        if not self.matches(value):
            faults.append(self.text)
        return faults


_ALNUM_ENDS = "and must start and end with an alphanumeric character"
_LABEL_RULE = _Pattern(
    _LABEL,
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ALNUM_ENDS}",
    "my-name",
    "123-abc",
    most=63,
)
_SUBDOMAIN_RULE = _Pattern(
    _SUBDOMAIN,
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ALNUM_ENDS}",
    "example.com",
    most=253,
)
_DNS_1035_RULE = _Pattern(
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    "my-name",
    "abc-123",
    most=63,
)
_UNDERSCORED_RULE = _Pattern(
    rf"{_UNDERSCORED}(\.{_UNDERSCORED})*",
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    + _ALNUM_ENDS,
    "example.com",
    most=253,
)
_CONFIG_KEY_RULE = _Pattern(
    "[-._a-zA-Z0-9]+",
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "key.name",
    "KEY_NAME",
    "key-name",
    most=253,
)
_PERCENT_RULE = _Pattern(
    "[0-9]+%", "a valid percent string must be a numeric string followed by an ending '%'", "1%", "93%"
)
_HEADER_RULE = _Pattern(
    "[-A-Za-z0-9]+", "a valid HTTP header must consist of alphanumeric characters or '-'", "X-Header-Name"
)
_PATH_RULE = _Pattern(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", "Invalid path")

dns1035_label = _cached(_DNS_1035_RULE.faults)
dns1123_subdomain = _cached(_SUBDOMAIN_RULE.faults)
dns1123_subdomain_with_underscore = _cached(_UNDERSCORED_RULE.faults)
percent = _cached(_PERCENT_RULE.faults)
http_header_name = _cached(_HEADER_RULE.faults)
http_path = _cached(_PATH_RULE.faults)


@_cached
def dns1123_label(value: str) -> list[str]:
    """A DNS label: a subdomain without dots, at most 63 bytes."""
    faults = _LABEL_RULE.faults(value)
    if faults and faults[-1] is _LABEL_RULE.text and _SUBDOMAIN_RULE.matches(value):
        faults[-1] = "must not contain dots"
    return faults


@_cached
def qualified_name(value: str) -> list[str]:
    """A label key: a name with an optional DNS subdomain before a slash."""
    return [*label_key_problems(value)]


@_cached
def label_value(value: str) -> list[str]:
    """The value of a label."""
    return [*label_value_problems(value)]


def port_number(value: int) -> list[str]:
    """A port that something can listen on."""
    return [] if 1 <= value <= 65535 else [between(1, 65535)]


def in_range(value: int, low: int, high: int) -> list[str]:
    """A number between two others, both allowed."""
    return [] if low <= value <= high else [between(low, high)]


def user_id(value: int) -> list[str]:
    """A Unix user or group id."""
    return in_range(value, 0, 2**31 - 1)


_PORT_CHARACTERS = re.compile("[-a-z0-9]+").fullmatch
_PORT_LETTER = re.compile("[a-z]").search


@_cached
def port_name(value: str) -> list[str]:
    """An IANA service name, lower case only."""
    checks = (
        (size(value) > 15, too_long(15)),
        (not _PORT_CHARACTERS(value), "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
        (not _PORT_LETTER(value), "must contain at least one letter (a-z)"),
        ("--" in value, "must not contain consecutive hyphens"),
        (value.startswith("-") or value.endswith("-"), "must not begin or end with a hyphen"),
    )
    return [text for wrong, text in checks if wrong]


def _climbs(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []


@_cached
def relaxed_env_var_name(value: str) -> list[str]:
    """The name of an environment variable: printable ASCII without `=`."""
    if not value:
        return ["environment variable name must be non-empty"]
    if value.isascii() and value.isprintable() and "=" not in value:
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


@_cached
def config_map_key(value: str) -> list[str]:
    """A key of a ConfigMap or Secret, which becomes a file name."""
    return _CONFIG_KEY_RULE.faults(value) + _climbs(value)


def _decimal(text: str) -> int:
    """A short run of digits as a number; -1 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text.lstrip("0")) <= 3 else -1


def parse_ip(value: str) -> IPAddress | None:
    """An address as Go's older parser reads it: leading zeros in IPv4 are decimal, zones are refused."""
    if ":" in value:
        try:
            return IPv6Address(value) if "%" not in value else None
        except AddressValueError:
            return None
    octets = [_decimal(octet) for octet in value.split(".")]
    return IPv4Address(bytes(octets)) if len(octets) == 4 and all(0 <= octet < 256 for octet in octets) else None


def go_ip(address: IPAddress) -> str:
    """An address as Go prints it: IPv4-mapped ones as IPv4."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def _leading_zeros(value: str) -> bool:
    quad = value.rpartition(":")[2] if "." in value else ""
    return any(len(octet) > 1 and octet[0] == "0" for octet in quad.split("."))


@_cached
def ip_address(value: str) -> list[str]:
    """An address in any of its spellings (upstream: IsValidIPForLegacyField with StrictIPCIDRValidation)."""
    address = parse_ip(value)
    if address is None:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    if _leading_zeros(value):
        return ["must not have leading 0s"]
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return ["must not be an IPv4-mapped IPv6 address"]
    return []


def parse_cidr(value: str) -> tuple[IPAddress, int] | None:
    """Address and prefix length of `a/n`, read as leniently as `parse_ip` reads addresses."""
    text, slash, length = value.partition("/")
    address, bits = parse_ip(text), _decimal(length)
    return (address, bits) if slash and address is not None and 0 <= bits <= address.max_prefixlen else None


@_cached
def cidr(value: str) -> list[str]:
    """An address block in any of its spellings (upstream: IsValidCIDRForLegacyField, strict)."""
    block = parse_cidr(value)
    if block is None:
        return ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
    text, _, length = value.partition("/")
    if _leading_zeros(text) or (len(length) > 1 and length[0] == "0"):
        return ["must not have leading 0s in IP or prefix length"]
    address, bits = block
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return ["must not have an IPv4-mapped IPv6 address"]
    try:
        ip_network((address, bits))
    except (ValueError, NetmaskValueError):
        return ["must not have bits set beyond the prefix length"]
    return []


# Names of objects: upstream's ValidateNameFunc. A rule takes the name and whether more characters will follow.


def _masked(name: str) -> str:
    """A prefix made checkable as a name: its final dash, with the character before it, gives way to a letter."""
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name


def _named(check: Callable[[str], list[str]], name: str, prefix: bool) -> list[str]:
    return check(_masked(name) if prefix else name)


subdomain_name = partial(_named, dns1123_subdomain)
"""Most kinds: a DNS subdomain."""

label_name = partial(_named, dns1123_label)
"""Namespace, Service, StatefulSet: a DNS label."""


def path_segment_name(name: str, prefix: bool = False) -> list[str]:
    """Kinds without a rule of their own (PodDisruptionBudget, Event): whatever a URL path can carry."""
    if name in (".", "..") and not prefix:
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]
