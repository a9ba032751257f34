"""Cluster addresses and node ports of Services: given out here, or refused when somebody else has them.

Upstream allocates before it prepares and validates an object, so this is a mutating plugin, the last one: what is
refused here hides every other fault. The cluster is IPv4 only. What is free is read off the stored Services; of that,
the lowest is given above a band kept for those who ask by number, so the outcome depends on nothing else.

Source of truth: registry/core/service/storage (alloc.go, storage.go), ipallocator, portallocator.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from itertools import chain

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc, Errors, quoted
from bayplan.cluster.embedded.admission.kinds.carry import put
from bayplan.cluster.embedded.admission.kinds.service_families import (
    HEADLESS,
    family_of,
    is_external_name,
    validate_families,
)
from bayplan.cluster.embedded.admission.kinds.service_rules import needs_health_check
from bayplan.cluster.embedded.admission.pipeline import invalid
from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.cluster.embedded.admission.syntax import go_ip, parse_ip, path_segment_name
from bayplan.cluster.kinds import SERVICE
from bayplan.model.errors import Cause, Details, ServerError

ADDRESSES = IPv4Network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)
_STATIC_ADDRESSES = 256
_STATIC_PORTS = len(NODE_PORTS) // 32
_FAMILY = "IPv4"
_POLICY = "spec.ipFamilyPolicy"
_PORT_TAKEN = "provided port is already allocated"
_PORT_RANGE = f"provided port is not in the valid range. The range of valid ports is {NODE_PORTS[0]}-{NODE_PORTS[-1]}"


class InternalError(ServerError):
    """What upstream calls its own fault: a health check port that is not to be had, or nothing left to give."""

    reason = "InternalError"

    def __init__(self, what: str) -> None:
        super().__init__(f"Internal error occurred: {what}", details=Details(causes=(Cause(message=what),)))


class InUse(msgspec.Struct):
    """What the stored Services hold. Allocation adds to it."""

    addresses: set[IPv4Address | IPv6Address]
    ports: set[int]
    dry_run: bool = False

    @classmethod
    def of(cls, services: Iterable[Doc], *, dry_run: bool = False) -> InUse:
        """Everything that these Services have been given."""
        specs = [service["spec"] for service in services]
        parsed = {parse_ip(address) for spec in specs for address in spec.get("clusterIPs", ())}
        ports = {port.get("nodePort", 0) for spec in specs for port in spec.get("ports", ())}
        ports |= {spec.get("healthCheckNodePort", 0) for spec in specs}
        return cls({address for address in parsed if address is not None}, ports - {0}, dry_run)

    def next_port(self) -> int:
        """A free node port, from now on taken. Raises InternalError when there is none."""
        for port in chain(NODE_PORTS[_STATIC_PORTS:], NODE_PORTS[:_STATIC_PORTS]):
            if port not in self.ports:
                self.ports.add(port)
                return port
        raise InternalError("failed to allocate a nodePort: range is full")

    def take_port(self, port: int) -> str:
        """Take a certain node port; why not, if not. A dry run does not look at the range."""
        if port not in NODE_PORTS and not self.dry_run:
            return _PORT_RANGE
        if port in self.ports:
            return _PORT_TAKEN
        self.ports.add(port)
        return ""

    def next_address(self, name: str) -> IPv4Address:
        """A free address, from now on taken. Raises InternalError when there is none."""
        first, last = int(ADDRESSES[1]), int(ADDRESSES[-2])
        for number in chain(range(first + _STATIC_ADDRESSES, last + 1), range(first, first + _STATIC_ADDRESSES)):
            address = IPv4Address(number)
            if address not in self.addresses:
                self.addresses.add(address)
                return address
        raise InternalError(f'failed to allocate a serviceIP for Service "{name}": range is full')

    def take_address(self, address: IPv4Address | IPv6Address, name: str) -> str:
        """Take a certain address; why not, if not. A dry run does not look at who has it."""
        if address not in ADDRESSES or address in (ADDRESSES[0], ADDRESSES[-1]):
            if not self.dry_run:
                return "the provided network does not match the current range"
            valid = f"The range of valid IPs is {ADDRESSES}"
            return f"the provided IP ({address}) is not in the valid range. {valid}"
        if self.dry_run:
            return ""
        if address in self.addresses:
            return "provided IP is already allocated"
        self.addresses.add(address)
        return _holder_fault(name, address)


def _holder_fault(name: str, address: IPv4Address | IPv6Address) -> str:
    """Why the record of who holds an address cannot be written: it wants a name that a path can carry."""
    faults = [f"Invalid value: {quoted(name)}: {fault}" for fault in path_segment_name(name)]
    told = [f"spec.parentRef.name: {fault}" for fault in (faults if name else ["Required value"])]
    if not told:
        return ""
    text = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    return f'IPAddress.networking.k8s.io "{address}" is invalid: {text}'


class ServiceAllocation:
    """The plugin: every write of a Service passes through `allocate`."""

    name = "ServiceAllocation"

    def wants(self, request: Request) -> bool:
        """Creates and updates of Services, but not of their status."""
        return request.kind is SERVICE and request.operation != "DELETE" and not request.subresource

    def mutate(self, request: Request, state: State) -> None:
        """Give the Service what it needs. Raises Invalid, InternalError."""
        errors = Errors()
        allocate(request.doc, request.old, InUse.of(state.list(SERVICE), dry_run=request.dry_run), errors)
        if errors:
            raise invalid(SERVICE, request.doc["metadata"].get("name", ""), errors)

    def validate(self, request: Request, state: State) -> None:
        """Nothing is left to refuse."""


def allocate(new: Doc, old: Doc | None, in_use: InUse, errors: Errors) -> None:
    """Fill in addresses and ports of `new`, defaulted and not yet validated; `in_use` includes what `old` has.

    Stops at the first step that fails, for the later ones rest on it.
    """
    spec, was = new["spec"], old["spec"] if old else None
    if was is None:
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
    else:
        _patch_from(spec, was)
        _align_addresses(spec, was)
    if not _prefers_as_before(spec, was):
        _init_families(spec, was, errors)
        if not errors:
            _allocate_addresses(spec, was, new["metadata"].get("name", ""), in_use, errors)
    if not errors:
        _allocate_ports(spec, was, in_use, errors)


def _patch_from(spec: Doc, was: Doc) -> None:
    """Values that a client need not repeat: addresses, node ports by the name of the port, the health check port."""
    if not is_external_name(spec) and not is_external_name(was):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field):
                put(spec, field, was.get(field))
    if _allocates_ports(spec) and _allocates_ports(was):
        known = {port.get("name", ""): port.get("nodePort", 0) for port in was.get("ports", ())}
        kept = {port.get("nodePort", 0) for port in spec.get("ports", ())}
        for port in spec.get("ports", ()):
            before = known.get(port.get("name", ""), 0)
            if not port.get("nodePort") and before and before not in kept:
                port["nodePort"] = before
    if needs_health_check(spec) and needs_health_check(was) and not spec.get("healthCheckNodePort"):
        put(spec, "healthCheckNodePort", was.get("healthCheckNodePort"))


def _allocates_ports(spec: Doc) -> bool:
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True))


def _align_addresses(spec: Doc, was: Doc) -> None:
    """clusterIP is the older field; a client that knows only it must not be tripped up by clusterIPs."""
    first, before = spec.get("clusterIP", ""), was.get("clusterIP", "")
    if first == before:
        if not spec.get("clusterIPs"):
            put(spec, "clusterIPs", was.get("clusterIPs"))
    elif spec.get("clusterIPs", []) == was.get("clusterIPs", []):
        put(spec, "clusterIPs", None if before and not first else [first])


def _prefers_as_before(spec: Doc, was: Doc | None) -> bool:
    """Services that prefer two families are left alone unless something about them changes."""
    same = ("type", "clusterIPs", "ipFamilies")
    return (
        was is not None
        and spec.get("ipFamilyPolicy") == "PreferDualStack" == was.get("ipFamilyPolicy", "PreferDualStack")
        and spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")
        and all(spec.get(field) == was.get(field) for field in same)
    )


def _init_families(spec: Doc, was: Doc | None, errors: Errors) -> None:
    if is_external_name(spec):
        return
    open_ended = spec.get("clusterIP") == HEADLESS and not spec.get("selector")  # its endpoints may be of any family
    if "ipFamilyPolicy" not in spec:
        usual = "RequireDualStack" if open_ended else "SingleStack"
        spec["ipFamilyPolicy"] = (was or {}).get("ipFamilyPolicy", usual)
    validate_families(spec, was, errors)
    if not errors:
        _shrink(spec, was, errors)
        _infer_families(spec, errors)
    if errors:
        return
    if open_ended:
        families = spec.get("ipFamilies") or [_FAMILY]
        if len(families) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
            families = [*families, "IPv6" if families[0] == "IPv4" else "IPv4"]
        spec["ipFamilies"] = families
    else:
        _fit_cluster(spec, errors)


def _fit_cluster(spec: Doc, errors: Errors) -> None:
    """What is asked for is one family, the one that the cluster has."""
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        errors.invalid(_POLICY, "RequireDualStack", "this cluster is not configured for dual-stack services")
    for i, family in enumerate(spec.get("ipFamilies", ())):
        if family != _FAMILY:
            errors.invalid(f"spec.ipFamilies[{i}]", family, "not configured on this cluster")
    if not errors:
        spec["ipFamilies"] = spec.get("ipFamilies") or [_FAMILY]


def _shrink(spec: Doc, was: Doc | None, errors: Errors) -> None:
    """A second address or family fits only a policy for two; asking for one takes the second away."""
    policy = spec["ipFamilyPolicy"]
    for field, one, many in (("clusterIPs", "cluster IP", "cluster IPs"), ("ipFamilies", "IP family", "IP families")):
        given, before = spec.get(field, []), (was or {}).get(field, [])
        if policy != "SingleStack":
            if given and len(given) < len(before):
                errors.invalid(_POLICY, policy, f"must be 'SingleStack' to release the secondary {one}")
        elif was is not None and given == before and len(given) > 1:
            spec[field] = given[:1]
        elif len(given) == 2:
            detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {many} are specified"
            errors.invalid(_POLICY, policy, detail)


def _infer_families(spec: Doc, errors: Errors) -> None:
    addresses, families = spec.get("clusterIPs", []), spec.get("ipFamilies", [])
    for i, address in enumerate(addresses):
        if address == HEADLESS:
            break
        if i < len(families):
            continue
        if family_of(address) != _FAMILY:
            errors.invalid(
                f"spec.clusterIPs[{i}]", addresses, f"{family_of(address)} is not configured on this cluster"
            )
        else:
            families = spec["ipFamilies"] = [*families, _FAMILY]


def _allocate_addresses(spec: Doc, was: Doc | None, name: str, in_use: InUse, errors: Errors) -> None:
    """One address a family, for a new Service or one that was an ExternalName."""
    addresses = spec.get("clusterIPs", [])
    if is_external_name(spec) or addresses[:1] == [HEADLESS] or (was is not None and not is_external_name(was)):
        return
    asked = addresses[0] if addresses else ""
    if asked:
        address = parse_ip(asked)
        assert address is not None, "validated above"
        fault = in_use.take_address(ip_address(go_ip(address)), name)
    else:
        free = in_use.next_address(name)
        fault = "" if in_use.dry_run else _holder_fault(name, free)
        spec["clusterIP"], spec["clusterIPs"] = str(free), [str(free)]
    if fault:
        tried = f"failed to allocate IP {asked}" if asked else "failed to allocate IP"
        errors.invalid("spec.clusterIPs", addresses or [""], f"{tried}: {fault}")


def _allocate_ports(spec: Doc, was: Doc | None, in_use: InUse, errors: Errors) -> None:
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        if was is None:
            _give_ports(spec, in_use, errors)
        else:
            _update_ports(spec, was, in_use, errors)
    if not errors and needs_health_check(spec) and not (was and needs_health_check(was)):
        port = spec.get("healthCheckNodePort", 0)
        if not port:
            spec["healthCheckNodePort"] = in_use.next_port()
        elif fault := in_use.take_port(port):
            raise InternalError(f"failed to allocate requested HealthCheck NodePort {port}: {fault}")


def _give_ports(spec: Doc, in_use: InUse, errors: Errors) -> None:
    """Ports of a new Service: the same number under two protocols shares one node port."""
    given: dict[int, int] = {}
    asked: dict[int, int] = {}
    for port in spec.get("ports", ()):
        if port.get("nodePort"):
            asked.setdefault(port["port"], port["nodePort"])
    for i, port in enumerate(spec.get("ports", ())):
        number, node_port = port["port"], port.get("nodePort", 0)
        if not node_port and not _allocates_ports(spec):
            continue
        if number in given:
            node_port = node_port or given[number]
            fault = in_use.take_port(node_port) if node_port != given[number] else ""
        else:
            node_port = asked.get(number, 0)
            fault = in_use.take_port(node_port) if node_port else ""
            node_port = given[number] = node_port or in_use.next_port()
        if fault:
            errors.invalid(f"spec.ports[{i}].nodePort", node_port, fault)
            return
        port["nodePort"] = node_port


def _update_ports(spec: Doc, was: Doc, in_use: InUse, errors: Errors) -> None:
    mine = {port.get("nodePort", 0) for port in was.get("ports", ())}
    seen: set[tuple[str, int]] = set()
    for i, port in enumerate(spec.get("ports", ())):
        node_port = port.get("nodePort", 0)
        if not node_port and not _allocates_ports(spec):
            continue
        if not node_port:
            node_port = port["nodePort"] = in_use.next_port()
        elif node_port not in mine and (fault := in_use.take_port(node_port)):
            errors.invalid(f"spec.ports[{i}].nodePort", node_port, fault)
            return
        mine.add(node_port)
        if (port.get("protocol", ""), node_port) in seen:
            raise ServerError(f"duplicate nodePort: {{{port.get('protocol', '')} {node_port}}}")
        seen.add((port.get("protocol", ""), node_port))
