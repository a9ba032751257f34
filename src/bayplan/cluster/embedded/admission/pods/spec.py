"""A pod spec, in a Pod or in a template: which rule applies to which field.

Source of truth: kubernetes 1.36 pkg/apis/core/validation, ValidatePodSpec, with the feature gates' defaults. Two things
differ in a template: nobody knows the pod's name, and what a Pod gets by default may still be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.labels import validate_labels
from bayplan.cluster.embedded.admission.metadata import validate_annotations
from bayplan.cluster.embedded.admission.pods.affinity import validate_affinity
from bayplan.cluster.embedded.admission.pods.annotations import (
    MIRROR,
    validate_pod_annotations,
    validate_profiles_agree,
)
from bayplan.cluster.embedded.admission.pods.containers import validate_containers
from bayplan.cluster.embedded.admission.pods.host import validate_host
from bayplan.cluster.embedded.admission.pods.pod_resources import validate_pod_resources
from bayplan.cluster.embedded.admission.pods.resources import validate_resource_requirements
from bayplan.cluster.embedded.admission.pods.scheduling import (
    validate_readiness_gates,
    validate_resource_claims,
    validate_scheduling_gates,
    validate_spread_constraints,
    validate_tolerations,
)
from bayplan.cluster.embedded.admission.pods.volumes import validate_volumes
from bayplan.cluster.embedded.admission.syntax import (
    between,
    dns1123_label,
    dns1123_subdomain,
    dns1123_subdomain_with_underscore,
    ip_address,
    size,
)

_MOST_INT32 = 2**31 - 1
# Limits of libc's resolver.
_MOST_NAMESERVERS, _MOST_SEARCHES, _MOST_SEARCH_BYTES = 3, 32, 2048


def validate_pod_template(template: Doc, path: str, errors: Errors) -> None:
    """A template that pods are made from. Its labels and annotations are reported without `metadata`."""
    meta, spec = template.get("metadata", {}), template.get("spec", {})
    annotations = meta.get("annotations", {})
    validate_labels(meta.get("labels", {}), f"{path}.labels", errors)
    validate_annotations(annotations, f"{path}.annotations", errors)
    validate_pod_annotations(annotations, spec, f"{path}.annotations", errors)
    validate_pod_spec(spec, meta, f"{path}.spec", errors, template=True)
    validate_profiles_agree(annotations, spec, f"{path}.spec", errors)
    if spec.get("ephemeralContainers"):
        errors.forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def validate_pod_spec(spec: Doc, meta: Doc, path: str, errors: Errors, *, template: bool) -> None:
    """All of a pod spec."""
    mountable: Sequence[Doc] = ()
    if volumes := spec.get("volumes"):
        pod = "" if template else meta.get("name", "")
        mountable = validate_volumes(volumes, pod, f"{path}.volumes", errors, template=template)
    if claims := spec.get("resourceClaims"):
        if not template and MIRROR in meta.get("annotations", ()):
            errors.forbidden("", "static pods do not support resource claims")
        else:
            validate_resource_claims(claims, f"{path}.resourceClaims", errors)
    validate_containers(spec, path, errors, template=template, volumes=mountable)
    validate_pod_resources(spec, path, errors)
    for field, rule in _RULES:
        value = spec.get(field)
        if value is not None:
            rule(value, f"{path}.{field}", errors)
    _validate_dns(spec, f"{path}.dnsConfig", errors)
    _validate_hostname_override(spec, f"{path}.hostnameOverride", errors)
    validate_host(spec, path, errors)


def _validate_dns(spec: Doc, path: str, errors: Errors) -> None:
    config = spec.get("dnsConfig")
    servers: Sequence[str] = (config or {}).get("nameservers", ())
    if spec.get("dnsPolicy") == "None" and not servers:
        if config is None:
            errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        else:
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.required(f"{path}.nameservers", text)
        return
    if config is None:
        return
    if len(servers) > _MOST_NAMESERVERS:
        text = f"must not have more than {_MOST_NAMESERVERS} nameservers"
        errors.invalid(f"{path}.nameservers", servers, text)
    for i, server in enumerate(servers):
        for fault in ip_address(server):
            errors.invalid(f"{path}.nameservers[{i}]", server, fault)
    _validate_searches(config.get("searches", ()), f"{path}.searches", errors)
    for i, option in enumerate(config.get("options", ())):
        if not option.get("name"):
            errors.required(f"{path}.options[{i}]", "must not be empty")


def _validate_searches(searches: Sequence[str], path: str, errors: Errors) -> None:
    if len(searches) > _MOST_SEARCHES:
        errors.invalid(path, searches, f"must not have more than {_MOST_SEARCHES} search paths")
    if size(" ".join(searches)) > _MOST_SEARCH_BYTES:
        text = f"must not have more than {_MOST_SEARCH_BYTES} characters (including spaces) in the search list"
        errors.invalid(path, searches, text)
    for i, search in enumerate(searches):
        if search != ".":
            _check(dns1123_subdomain_with_underscore)(search.removesuffix("."), f"{path}[{i}]", errors)


def _validate_hostname_override(spec: Doc, path: str, errors: Errors) -> None:
    override = spec.get("hostnameOverride")
    if override is None:
        return
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            errors.forbidden(path, f"may not be specified when {field} is true")
    if size(override) > 64:
        errors.too_long(path, 64)
    _check(dns1123_subdomain)(override, path, errors)


def _check(syntax: Callable[[str], list[str]]) -> Callable[[str, str, Errors], None]:
    def validate(value: str, path: str, errors: Errors) -> None:
        for fault in syntax(value):
            errors.invalid(path, value, fault)

    return validate


def _one_of(*allowed: str) -> Callable[[str, str, Errors], None]:
    def validate(value: str, path: str, errors: Errors) -> None:
        if not value:
            errors.required(path)
        elif value not in allowed:
            errors.not_supported(path, value, allowed)

    return validate


def _validate_deadline(seconds: int, path: str, errors: Errors) -> None:
    if not 1 <= seconds <= _MOST_INT32:
        errors.invalid(path, seconds, between(1, _MOST_INT32))


def _validate_host_aliases(aliases: Sequence[Doc], path: str, errors: Errors) -> None:
    for i, alias in enumerate(aliases):
        _check(ip_address)(alias.get("ip", ""), f"{path}[{i}].ip", errors)
        for j, name in enumerate(alias.get("hostnames", ())):
            _check(dns1123_subdomain)(name, f"{path}[{i}].hostnames[{j}]", errors)


def _validate_overhead(overhead: Doc, path: str, errors: Errors) -> None:
    validate_resource_requirements({"limits": overhead}, path, errors)


_RULES: tuple[tuple[str, Callable[[Any, str, Errors], None]], ...] = (
    ("restartPolicy", _one_of("Always", "OnFailure", "Never")),
    ("dnsPolicy", _one_of("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
    ("nodeSelector", validate_labels),
    ("affinity", validate_affinity),
    ("readinessGates", validate_readiness_gates),
    ("schedulingGates", validate_scheduling_gates),
    ("topologySpreadConstraints", validate_spread_constraints),
    ("serviceAccountName", _check(dns1123_subdomain)),
    ("nodeName", _check(dns1123_subdomain)),
    ("activeDeadlineSeconds", _validate_deadline),
    ("hostname", _check(dns1123_label)),
    ("subdomain", _check(dns1123_label)),
    ("tolerations", validate_tolerations),
    ("hostAliases", _validate_host_aliases),
    ("priorityClassName", _check(dns1123_subdomain)),
    ("runtimeClassName", _check(dns1123_subdomain)),
    ("preemptionPolicy", _one_of("PreemptLowerPriority", "Never")),
    ("overhead", _validate_overhead),
)
