"""Services: a name for a set of pods, or for something outside, and the addresses it is reached by.

Source of truth: core/v1/defaults.go, registry/core/service/strategy.go, api/service/warnings.go. The rules are in
`service_rules`; addresses and node ports are given out by `service_allocation`, before the rules are applied.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.kinds import service_rules as rules
from bayplan.cluster.embedded.admission.kinds.addresses import cidr_warnings, ip_warnings
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec
from bayplan.cluster.embedded.admission.kinds.service_families import is_external_name
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import label_name
from bayplan.cluster.kinds import SERVICE

_AFFINITY_SECONDS = 10800


def _default(doc: Doc) -> None:
    spec = doc["spec"]
    spec.setdefault("sessionAffinity", "None")
    _default_affinity(spec)
    spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if port.get("targetPort", 0) in (0, ""):
            port["targetPort"] = port["port"]
    if rules.is_external(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] in ("ClusterIP", "LoadBalancer", "NodePort"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for point in doc["status"].get("loadBalancer", {}).get("ingress", ()):
            if point.get("ip"):
                point.setdefault("ipMode", "VIP")


def _default_affinity(spec: Doc) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}


def _prepare(doc: Doc) -> None:
    doc["status"] = {"loadBalancer": {}}
    _drop_internal_policy(doc["spec"])


def _drop_internal_policy(spec: Doc) -> None:
    """Upstream stores the policy of an ExternalName and never shows it; a wrong one must stay to be refused."""
    if is_external_name(spec) and spec.get("internalTrafficPolicy") in ("Cluster", "Local"):
        del spec["internalTrafficPolicy"]


def _prepare_update(new: Doc, old: Doc) -> None:
    spec = new["spec"]
    new["status"] = old["status"]
    if spec["type"] != "LoadBalancer":
        new["status"] = {**old["status"], "loadBalancer": {}}
    _drop_for_type(spec, old["spec"])
    _drop_internal_policy(spec)


def _drop_for_type(spec: Doc, was: Doc) -> None:
    """Wipe what the new type has no use for, if the client left it as it was; what it changed is for the rules."""
    if _has_node_ports(was) and not _has_node_ports(spec) and _node_ports(spec) <= _node_ports(was):
        for port in spec.get("ports", ()):
            port.pop("nodePort", None)
    same_addresses = all(spec.get(field) == was.get(field) for field in ("clusterIP", "clusterIPs"))
    renamed = is_external_name(spec) and not is_external_name(was)
    unbalanced = was["type"] == "LoadBalancer" != spec["type"]
    useless = {
        "clusterIP": renamed and same_addresses,
        "clusterIPs": renamed and same_addresses,
        "ipFamilies": renamed,
        "ipFamilyPolicy": renamed,
        "allocateLoadBalancerNodePorts": unbalanced,
        "loadBalancerClass": unbalanced,
        "healthCheckNodePort": rules.needs_health_check(was) and not rules.needs_health_check(spec),
        "externalTrafficPolicy": rules.is_external(was) and not rules.is_external(spec),
    }
    for field, drop in useless.items():
        if drop and spec.get(field) == was.get(field):
            spec.pop(field, None)


def _has_node_ports(spec: Doc) -> bool:
    return spec["type"] in ("LoadBalancer", "NodePort")


def _node_ports(spec: Doc) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports", ()) if port.get("nodePort")}


def _warn(new: Doc, _old: Doc | None) -> list[str]:
    spec, warnings = new["spec"], []
    external, balancer = spec.get("externalIPs", []), spec.get("loadBalancerIP", "")
    headless = spec["type"] == "ClusterIP" and spec.get("clusterIP") == "None"
    if rules.TOPOLOGY_HINTS in new["metadata"].get("annotations", {}):
        warnings.append(f"annotation {rules.TOPOLOGY_HINTS} is deprecated, please use {rules.TOPOLOGY_MODE} instead")
    if headless:
        ignored = (
            ("loadBalancerIP", bool(balancer)),
            ("externalIPs", bool(external)),
            ("SessionAffinity", spec["sessionAffinity"] != "None"),
        )
        warnings += [f"spec.{field} is ignored for headless services" for field, given in ignored if given]
    if is_external_name(spec):
        if external:
            warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    elif external and not headless:
        warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("externalName") and not is_external_name(spec):
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        warnings.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return warnings + _address_warnings(spec)


def _address_warnings(spec: Doc) -> list[str]:
    warnings = []
    if spec.get("clusterIP", "None") != "None":
        for i, address in enumerate(spec.get("clusterIPs", ())):
            warnings += ip_warnings(f"spec.clusterIPs[{i}]", address)
    for i, address in enumerate(spec.get("externalIPs", ())):
        warnings += ip_warnings(f"spec.externalIPs[{i}]", address)
    if balancer := spec.get("loadBalancerIP"):
        warnings += ip_warnings("spec.loadBalancerIP", balancer)
    for i, block in enumerate(spec.get("loadBalancerSourceRanges", ())):
        warnings += cidr_warnings(f"spec.loadBalancerSourceRanges[{i}]", block)
    return warnings


STRATEGY = Strategy(
    kind=SERVICE,
    name_rule=label_name,
    default=_default,
    prepare=_prepare,
    validate=rules.validate,
    prepare_update=_prepare_update,
    validate_update=rules.validate_update,
    prepare_status=keep_spec,
    validate_status=rules.validate_balancer_status,
    warn=_warn,
    create_on_update=True,
)
