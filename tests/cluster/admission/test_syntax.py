"""Names, labels, ports and addresses: what is refused, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.admission import syntax

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
CONFIG_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


@pytest.mark.parametrize(
    ("check", "value", "faults"),
    [
        pytest.param(syntax.dns1123_label, "a-1", [], id="a label of letters, digits and dashes is good"),
        pytest.param(syntax.dns1123_label, "a.b", ["must not contain dots"], id="a label that is a subdomain has dots"),
        pytest.param(
            syntax.dns1123_label, "a..b", [LABEL], id="a label that is no subdomain either breaks the pattern"
        ),
        pytest.param(syntax.dns1123_label, "a" * 64, [syntax.too_long(63)], id="a label counts characters"),
        pytest.param(syntax.dns1123_label, "a\n", [LABEL], id="a line break at the end does not slip through"),
        pytest.param(syntax.dns1123_subdomain, "Bad", [SUBDOMAIN], id="a subdomain is in lower case"),
        pytest.param(syntax.dns1123_subdomain, "a" * 254, [syntax.too_long(253)], id="a subdomain has 253 characters"),
        pytest.param(syntax.qualified_name, "example.com/MyName", [], id="a key may have a prefix"),
        pytest.param(syntax.qualified_name, "/x", ["prefix part must be non-empty"], id="a slash needs a prefix"),
        pytest.param(syntax.qualified_name, "Bad/x", [f"prefix part {SUBDOMAIN}"], id="the prefix is a subdomain"),
        pytest.param(
            syntax.qualified_name,
            "",
            ["name part must be non-empty", f"name part {QUALIFIED}"],
            id="an empty key breaks two rules",
        ),
        pytest.param(
            syntax.qualified_name,
            "a/b/c",
            [
                f"a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/' "
                "(e.g. 'example.com/MyName')"
            ],
            id="a key has one slash at most",
        ),
        pytest.param(
            syntax.qualified_name, "a" * 64, ["name part must be no more than 63 bytes"], id="a key counts bytes"
        ),
        pytest.param(syntax.label_value, "", [], id="a value may be empty"),
        pytest.param(
            syntax.label_value, "\u00e9" * 32, ["must be no more than 63 bytes", VALUE], id="a value is ASCII"
        ),
        pytest.param(syntax.config_map_key, "..", ["must not be '..'"], id="a key is not the directory above"),
        pytest.param(
            syntax.config_map_key, "..a", ["must not start with '..'"], id="a key does not look like it either"
        ),
        pytest.param(syntax.config_map_key, "a b", [CONFIG_KEY], id="a key is a plain file name"),
        pytest.param(syntax.percent, "5", [PERCENT], id="a percentage ends with its sign"),
        pytest.param(syntax.port_name, "http-1", [], id="a port name is a service name"),
        pytest.param(
            syntax.port_name,
            "-1--",
            [
                "must contain at least one letter (a-z)",
                "must not contain consecutive hyphens",
                "must not begin or end with a hyphen",
            ],
            id="a port name reports every rule it breaks",
        ),
        pytest.param(syntax.relaxed_env_var_name, "a b!", [], id="a variable name is any printable ASCII"),
        pytest.param(
            syntax.relaxed_env_var_name, "", ["environment variable name must be non-empty"], id="but not empty"
        ),
        pytest.param(syntax.ip_address, "10.0.0.1", [], id="an address of version 4"),
        pytest.param(syntax.ip_address, "FE80::1", [], id="an address in an unusual spelling is good enough"),
        pytest.param(syntax.ip_address, "010.0.0.1", ["must not have leading 0s"], id="leading zeros mean two things"),
        pytest.param(
            syntax.ip_address,
            "::ffff:1.2.3.4",
            ["must not be an IPv4-mapped IPv6 address"],
            id="a version 4 address inside version 6 is refused",
        ),
        pytest.param(
            syntax.ip_address,
            "fe80::1%eth0",
            ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"],
            id="zones are refused",
        ),
        pytest.param(syntax.cidr, "10.0.0.0/8", [], id="a block of addresses"),
        pytest.param(
            syntax.cidr,
            "10.0.0.1/8",
            ["must not have bits set beyond the prefix length"],
            id="an address inside a block is no block",
        ),
        pytest.param(
            syntax.cidr,
            "10.0.0.0/33",
            ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"],
            id="a prefix is no longer than the address",
        ),
        pytest.param(
            syntax.cidr,
            "10.0.0.0/08",
            ["must not have leading 0s in IP or prefix length"],
            id="a prefix length has no leading zeros",
        ),
        pytest.param(syntax.path_segment_name, "a b", [], id="a path segment may hold spaces"),
        pytest.param(syntax.path_segment_name, "..", ["may not be '..'"], id="a path segment does not climb"),
        pytest.param(
            syntax.path_segment_name, "a/%", ["may not contain '/'", "may not contain '%'"], id="nor split a path"
        ),
    ],
)
def test_a_value_is_refused_in_upstreams_words(
    check: Callable[[str], list[str]], value: str, faults: list[str]
) -> None:
    assert check(value) == faults


@pytest.mark.parametrize(
    ("prefix", "faults"),
    [
        pytest.param("web-", [], id="a prefix may end with a dash"),
        pytest.param("-", [SUBDOMAIN], id="a dash alone is no prefix"),
        pytest.param("gen.", [SUBDOMAIN], id="a final dot is not masked"),
        pytest.param("a_-", [], id="the character before a final dash goes unseen"),
    ],
)
def test_a_generate_name_is_a_name_with_room_for_more(prefix: str, faults: list[str]) -> None:
    assert syntax.subdomain_name(prefix, True) == faults


@given(st.ip_addresses())
def test_every_address_as_printed_is_good(address: IPv4Address | IPv6Address) -> None:
    mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    assert syntax.parse_ip(str(address)) == address
    assert mapped or syntax.ip_address(str(address)) == []


@given(st.text(max_size=70))
def test_a_good_label_is_a_good_subdomain_and_label_value(text: str) -> None:
    if not syntax.dns1123_label(text):
        assert syntax.dns1123_subdomain(text) == syntax.label_value(text) == syntax.qualified_name(text) == []
