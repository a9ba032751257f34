"""Addresses that are legal but badly written, and what to write instead.

Source of truth: apimachinery pkg/util/validation/ip.go, GetWarningsForIP and GetWarningsForCIDR.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_network

from bayplan.cluster.embedded.admission.syntax import cidr, go_ip, ip_address, parse_cidr, parse_ip


def ip_warnings(path: str, value: str) -> list[str]:
    """Warnings on an address; none if it is no address at all, which is a fault."""
    address = parse_ip(value)
    if address is None:
        return []
    right = go_ip(address)
    if ip_address(value):
        return [f'{path}: non-standard IP address "{value}" is invalid: use "{right}"']
    if right != value:
        return [f'{path}: IPv6 address "{value}" should be in RFC 5952 canonical format ("{right}")']
    return []


def cidr_warnings(path: str, value: str) -> list[str]:
    """Warnings on an address block; none if it is no block at all, which is a fault."""
    block = parse_cidr(value)
    if block is None:
        return []
    address, bits = block
    mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    network = ip_network((address, bits), strict=False)
    right = f"{go_ip(network.network_address)}/{bits - 96 if mapped and bits >= 96 else bits}"
    warnings = []
    if network.network_address != address:
        single = f"{go_ip(address)}/{address.max_prefixlen}"
        warnings.append(
            f'{path}: CIDR value "{value}" is ambiguous in this context (should be "{right}" or "{single}"?)'
        )
    if mapped or any("leading 0s" in fault for fault in cidr(value)):
        warnings.append(f'{path}: non-standard CIDR value "{value}" is invalid: use "{right}"')
    if not warnings and right != value:
        warnings.append(f'{path}: IPv6 CIDR value "{value}" should be in RFC 5952 canonical format ("{right}")')
    return warnings
