"""The rules of a Service: ports, affinity, addresses from outside, traffic policies.

Source of truth: core/validation, validateService and what it calls; api/service/util.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from bayplan.cluster.embedded.admission import syntax
from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.service_families import (
    is_external_name,
    is_headless,
    validate_families,
    validate_families_change,
)
from bayplan.cluster.embedded.admission.labels import validate_labels
from bayplan.cluster.embedded.admission.pods.scheduling import STRUCT

SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_SCOPES = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_RANGES_PATH = "spec.LoadBalancerSourceRanges"  # the capital is upstream's
_MOST_AFFINITY = 86400
_ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'"


def _networks(*texts: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(text) for text in texts)


_SPECIAL = (
    (_networks("127.0.0.0/8", "::1/128"), "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
    (_networks("169.254.0.0/16", "fe80::/10"), "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
    (
        _networks("224.0.0.0/24", "ff02::/16"),
        "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
    ),
)


def is_external(spec: Doc) -> bool:
    """Whether the Service can be reached from outside the cluster."""
    return spec.get("type") in ("LoadBalancer", "NodePort") or (
        spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs"))
    )


def needs_health_check(spec: Doc) -> bool:
    """Whether a load balancer must ask each node if it has endpoints."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def validate(doc: Doc, errors: Errors) -> None:
    """A new Service."""
    _validate(doc, None, errors)


def validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    """A changed Service; addresses that it had already are not checked again."""
    spec, was = new["spec"], old["spec"]
    validate_families_change(spec, was, errors)
    if spec.get("type") == was.get("type") == "LoadBalancer":
        if spec.get("loadBalancerClass") != was.get("loadBalancerClass"):
            errors.invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), "may not change once set")
        ports = spec.get("healthCheckNodePort"), was.get("healthCheckNodePort")
        if needs_health_check(spec) and needs_health_check(was) and ports[0] != ports[1]:
            errors.forbidden("spec.healthCheckNodePort", "field is immutable")
    _validate(new, old, errors)


def _validate(doc: Doc, old: Doc | None, errors: Errors) -> None:
    spec, was = doc["spec"], old["spec"] if old else None
    _validate_topology(doc["metadata"].get("annotations", {}), errors)
    _validate_type(spec, errors)
    _validate_ports(spec, errors)
    if selector := spec.get("selector"):
        validate_labels(selector, "spec.selector", errors)
    _validate_affinity(spec, errors)
    validate_families(spec, was, errors)
    _validate_external_ips(spec, was or {}, errors)
    _validate_source_ranges(doc, old, errors)
    _validate_balancer(spec, errors)
    _validate_traffic(spec, errors)


def _validate_topology(annotations: dict[str, str], errors: Errors) -> None:
    mode, hints = annotations.get(TOPOLOGY_MODE), annotations.get(TOPOLOGY_HINTS)
    if mode is not None and hints is not None and mode != hints:
        detail = f"must match annotations[{TOPOLOGY_HINTS}] when both are specified"
        errors.invalid(f"metadata.annotations[{TOPOLOGY_MODE}]", mode, detail)


def _validate_type(spec: Doc, errors: Errors) -> None:
    kind = spec.get("type", "")
    if not spec.get("ports") and not is_headless(spec) and kind != "ExternalName":
        errors.required("spec.ports")
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        errors.invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind not in TYPES:
        errors.not_supported("spec.type", kind, TYPES)
    if not is_external_name(spec):
        return
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field) or (field == "ipFamilyPolicy" and field in spec):
            errors.forbidden(f"spec.{field}", "may not be set for ExternalName services")
    name = spec.get("externalName", "").removesuffix(".")
    if not name:
        errors.required("spec.externalName")
    else:
        for fault in syntax.dns1123_subdomain(name):
            errors.invalid("spec.externalName", name, fault)


def _validate_ports(spec: Doc, errors: Errors) -> None:
    ports: Sequence[Doc] = spec.get("ports", ())
    names: set[str] = set()
    numbers: set[tuple[str, int]] = set()
    node_ports: set[tuple[str, int]] = set()
    for i, port in enumerate(ports):
        path, name, protocol = f"spec.ports[{i}]", port.get("name", ""), port.get("protocol", "")
        if name in names:
            errors.duplicate(f"{path}.name", name)
        elif name:
            names.add(name)
        elif len(ports) > 1:
            errors.required(f"{path}.name")
        _validate_port(port, path, errors)
        if (protocol, port["port"]) in numbers:
            errors.duplicate(path, STRUCT)
        numbers.add((protocol, port["port"]))
        if node_port := port.get("nodePort", 0):
            if (protocol, node_port) in node_ports:
                errors.duplicate(f"{path}.nodePort", node_port)
            node_ports.add((protocol, node_port))
            if spec.get("type") == "ClusterIP":
                errors.forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'")


def _validate_port(port: Doc, path: str, errors: Errors) -> None:
    name, protocol, target = port.get("name", ""), port.get("protocol", ""), port.get("targetPort", 0)
    checks = [
        ("name", name, syntax.dns1123_label(name) if name else []),
        ("port", port["port"], syntax.port_number(port["port"])),
        ("targetPort", target, syntax.port_number(target) if isinstance(target, int) else syntax.port_name(target)),
    ]
    if "appProtocol" in port:
        checks.append(("appProtocol", port["appProtocol"], syntax.qualified_name(port["appProtocol"])))
    for field, value, faults in checks:
        for fault in faults:
            errors.invalid(f"{path}.{field}", value, fault)
    if protocol not in _PROTOCOLS:
        errors.not_supported(f"{path}.protocol", protocol, _PROTOCOLS)


def _validate_affinity(spec: Doc, errors: Errors) -> None:
    affinity, path = spec.get("sessionAffinity", ""), "spec.sessionAffinityConfig"
    if affinity not in ("ClientIP", "None"):
        errors.not_supported("spec.sessionAffinity", affinity, ("ClientIP", "None"))
    if affinity == "ClientIP":
        timeout = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < timeout <= _MOST_AFFINITY:
            detail = f"must be greater than 0 and less than {_MOST_AFFINITY}"
            errors.invalid(f"{path}.clientIP.timeoutSeconds", timeout, detail)
    elif affinity == "None" and "sessionAffinityConfig" in spec:
        errors.forbidden(path, "must not be set when session affinity is None")


def _validate_external_ips(spec: Doc, was: Doc, errors: Errors) -> None:
    known = was.get("externalIPs", ())
    for i, value in enumerate(spec.get("externalIPs", ())):
        faults = [] if value in known else syntax.ip_address(value)
        for fault in faults or _special_faults(value):
            errors.invalid(f"spec.externalIPs[{i}]", value, fault)


def _special_faults(value: str) -> list[str]:
    """Why nobody outside could mean this address."""
    parsed = syntax.parse_ip(value)
    if parsed is None:
        return ["must be a valid IP address"]
    address = ip_address(syntax.go_ip(parsed))
    faults = [text for networks, text in _SPECIAL if any(address in network for network in networks)]
    return [f"may not be unspecified ({value})"] if address.is_unspecified else faults


def _validate_source_ranges(doc: Doc, old: Doc | None, errors: Errors) -> None:
    """Who may use a load balancer: the field or, without it, the annotation it came from. Spaces do not count."""
    path, ranges = _source_ranges(doc)
    before = _source_ranges(old) if old else ("", [])
    if path and doc["spec"].get("type") != "LoadBalancer":
        errors.forbidden(path, _ONLY_BALANCED)
    for i, value in enumerate(ranges):
        if path != before[0] or value not in before[1]:
            where = f"{path}[{i}]" if path == _RANGES_PATH else path
            for fault in syntax.cidr(value):
                errors.invalid(where, value, fault)


def _source_ranges(doc: Doc) -> tuple[str, list[str]]:
    if ranges := doc["spec"].get("loadBalancerSourceRanges"):
        return _RANGES_PATH, [value.strip() for value in ranges]
    annotation = doc["metadata"].get("annotations", {}).get(SOURCE_RANGES)
    if annotation is None:
        return "", []
    listed = annotation.strip().split(",") if annotation.strip() else []
    return f"metadata.annotations[{SOURCE_RANGES}]", [value.strip() for value in listed]


def _validate_balancer(spec: Doc, errors: Errors) -> None:
    balanced, name = spec.get("type") == "LoadBalancer", spec.get("loadBalancerClass")
    if not balanced:
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if field in spec:
                errors.forbidden(f"spec.{field}", _ONLY_BALANCED)
    elif name is not None:
        for fault in syntax.qualified_name(name):
            errors.invalid("spec.loadBalancerClass", name, fault)


def _validate_traffic(spec: Doc, errors: Errors) -> None:
    policy, port = spec.get("externalTrafficPolicy", ""), spec.get("healthCheckNodePort", 0)
    if not is_external(spec):
        if policy:
            errors.invalid("spec.externalTrafficPolicy", policy, "may only be set for externally-accessible services")
    elif policy not in _SCOPES:
        errors.not_supported("spec.externalTrafficPolicy", policy, _SCOPES)
    if needs_health_check(spec):
        for fault in syntax.port_number(port):
            errors.invalid("spec.healthCheckNodePort", port, fault)
    elif port:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.invalid("spec.healthCheckNodePort", port, detail)
    for field, allowed in (("internalTrafficPolicy", _SCOPES), ("trafficDistribution", _DISTRIBUTIONS)):
        if field in spec and spec[field] not in allowed:
            errors.not_supported(f"spec.{field}", spec[field], allowed)


def validate_balancer_status(new: Doc, old: Doc, errors: Errors) -> None:
    """A change of status: the addresses that a load balancer gave."""
    path, ingress = "status.loadBalancer.ingress", new["status"].get("loadBalancer", {}).get("ingress", ())
    if ingress and new["spec"].get("type") != "LoadBalancer":
        errors.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    known = {point.get("ip") for point in old["status"].get("loadBalancer", {}).get("ingress", ())}
    for i, point in enumerate(ingress):
        _validate_ingress(point, known, f"{path}[{i}]", errors)


def _validate_ingress(point: Doc, known: set[str | None], path: str, errors: Errors) -> None:
    address, mode, host = point.get("ip", ""), point.get("ipMode"), point.get("hostname", "")
    for fault in syntax.ip_address(address) if address and address not in known else ():
        errors.invalid(f"{path}.ip", address, fault)
    if mode is None:
        if address:
            errors.required(f"{path}.ipMode", "must be specified when `ip` is set")
    elif not address:
        errors.forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
    elif mode not in ("Proxy", "VIP"):
        errors.not_supported(f"{path}.ipMode", mode, ("Proxy", "VIP"))
    for fault in syntax.dns1123_subdomain(host) if host else ():
        errors.invalid(f"{path}.hostname", host, fault)
    if host and syntax.parse_ip(host) is not None:
        errors.invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address")
