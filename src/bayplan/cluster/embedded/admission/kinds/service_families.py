"""A Service's own addresses: clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy, four fields that must agree.

Source of truth: core/validation, ValidateServiceClusterIPsRelatedFields and the two upgrade/downgrade checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.syntax import ip_address, parse_ip

HEADLESS = "None"
FAMILIES = ("IPv4", "IPv6")
POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_FIXED = "may not change once set"


def is_headless(spec: Doc) -> bool:
    """A Service without an address of its own."""
    return bool(spec.get("clusterIPs") == [HEADLESS])


def is_external_name(spec: Doc) -> bool:
    """A Service that is another name for something outside: no addresses, no ports to allocate."""
    return bool(spec.get("type") == "ExternalName")


def family_of(address: str) -> str:
    """IPv6 for what parses so, IPv4 otherwise."""
    return "IPv6" if isinstance(parse_ip(address), IPv6Address) else "IPv4"


def validate_families(spec: Doc, was: Doc | None, errors: Errors) -> None:
    """The four fields against each other. Also run by the allocator, before anything is allocated."""
    if is_external_name(spec):
        return
    addresses, families = spec.get("clusterIPs", []), spec.get("ipFamilies", [])
    _validate_first(spec.get("clusterIP", ""), addresses, errors)
    for i, family in enumerate(families):
        if family not in FAMILIES:
            errors.not_supported(f"spec.ipFamilies[{i}]", family, FAMILIES)
        if family in families[:i]:
            errors.duplicate(f"spec.ipFamilies[{i}]", family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in POLICIES:
        errors.not_supported("spec.ipFamilyPolicy", policy, POLICIES)
    well_formed = _validate_addresses(addresses, (was or {}).get("clusterIPs", ()), errors)
    if len(addresses) > 2:
        errors.invalid("spec.clusterIPs", addresses, "may only hold up to 2 values")
    if well_formed:
        _validate_pairs(addresses, families, errors)


def _validate_first(first: str, addresses: Sequence[str], errors: Errors) -> None:
    if not first and addresses:
        errors.invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified")
    elif first and not addresses:
        errors.required("spec.clusterIPs")
    elif first and addresses[0] != first:
        errors.invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`")


def _validate_addresses(addresses: Sequence[str], known: Sequence[str], errors: Errors) -> bool:
    before = len(errors)
    for i, address in enumerate(addresses):
        if i == 0 and address == HEADLESS:
            if len(addresses) > 1:
                errors.invalid("spec.clusterIPs", addresses, "'None' must be the first and only value")
        elif address not in known:
            for fault in ip_address(address):
                errors.invalid(f"spec.clusterIPs[{i}]", address, fault)
    return len(errors) == before


def _validate_pairs(addresses: Sequence[str], families: Sequence[str], errors: Errors) -> None:
    if len(addresses) > 1 and len({family_of(address) for address in addresses}) < 2:
        errors.invalid("spec.clusterIPs", addresses, "may specify no more than one IP for each IP family")
    if list(addresses) == [HEADLESS]:
        return
    for i, (address, family) in enumerate(zip(addresses, families, strict=False)):
        if family in FAMILIES and family_of(address) != family:
            detail = f"expected an {family} value as indicated by `ipFamilies[{i}]`"
            errors.invalid(f"spec.clusterIPs[{i}]", address, detail)


def validate_families_change(spec: Doc, was: Doc, errors: Errors) -> None:
    """The first address and family stay; a second may come, and go if the policy says SingleStack."""
    if is_external_name(spec) or is_external_name(was):
        return
    if not (is_headless(spec) and is_headless(was)):
        _validate_addresses_change(spec, was, errors)
    if not is_headless(spec) and not is_headless(was):
        _validate_list_change(spec, was, errors)


def _validate_addresses_change(spec: Doc, was: Doc, errors: Errors) -> None:
    new, old = spec.get("clusterIPs", []), was.get("clusterIPs", [])
    compared = len(old) if len(old) == len(new) else 1
    for i, (address, before) in enumerate(list(zip(new, old, strict=False))[:compared]):
        if address != before:
            errors.invalid(f"spec.clusterIPs[{i}]", new, _FIXED)
    if len(old) > len(new):
        if not new:
            errors.invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset")
        _validate_release(spec, len(new), "clusterIP", errors)


def _validate_list_change(spec: Doc, was: Doc, errors: Errors) -> None:
    new, old, addresses = spec.get("ipFamilies", []), was.get("ipFamilies", []), spec.get("clusterIPs")
    path = "spec.ipFamilies[0]"
    if len(old) == len(new):
        if new != old:
            errors.invalid(path, new, _FIXED)
        return
    if len(old) > len(new) and not addresses:
        errors.invalid(path, new or None, "primary ipFamily can not be unset")
    if new and old and new[0] != old[0]:
        errors.invalid(path, addresses, _FIXED)  # upstream shows the addresses, not the families
    if len(old) > len(new):
        _validate_release(spec, len(new), "ipFamily", errors)


def _validate_release(spec: Doc, left: int, what: str, errors: Errors) -> None:
    policy = spec.get("ipFamilyPolicy")
    if left == 1 and policy != "SingleStack":
        detail = f"must be set to 'SingleStack' when releasing the secondary {what}"
        errors.invalid("spec.ipFamilyPolicy", policy, detail)
