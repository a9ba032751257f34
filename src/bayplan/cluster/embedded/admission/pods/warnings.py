"""Warnings on pods and templates: legal, but hardly what was meant.

Source of truth: kubernetes 1.36 pkg/api/pod/warnings.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bayplan.cluster.embedded.admission.fields import Doc, quoted
from bayplan.cluster.embedded.admission.kinds.addresses import ip_warnings
from bayplan.cluster.embedded.admission.kinds.volume_claim import claim_spec_warnings
from bayplan.cluster.embedded.admission.pods.affinity import PREFERRED, REQUIRED
from bayplan.cluster.embedded.admission.pods.annotations import APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD
from bayplan.cluster.embedded.admission.pods.host import containers_of
from bayplan.cluster.embedded.admission.pods.overlaps import overlap_warnings
from bayplan.cluster.embedded.admission.syntax import label_value
from bayplan.model.quantity import parse

DEPRECATED_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_DEPRECATED_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_DEPRECATED_VOLUMES = {
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "flocker": "flocker: deprecated in v1.22, non-functional in v1.25+",
    "storageos": "storageOS: deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "quobyte: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}
_USE_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_USE_APP_ARMOR = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_NO_SELECTOR = "labelSelector: a null labelSelector results in matching no pod"


def pod_template_warnings(template: Doc, path: str) -> list[str]:
    """Warnings on a template; `path` is the template's."""
    return pod_spec_warnings(template.get("spec", {}), template.get("metadata", {}), f"{path}.spec")


def pod_spec_warnings(spec: Doc, meta: Doc, path: str) -> list[str]:
    """Warnings on a pod spec and the annotations beside it; `path` is the spec's."""
    found: list[str] = []
    for field, warn in _FIELDS:
        value = spec.get(field)
        if value:
            found += warn(value, f"{path}.{field}")
    if annotations := meta.get("annotations"):
        found += _annotation_warnings(annotations, spec, path)
    ports: list[tuple[Doc, str]] = []
    for container, here in containers_of(spec, path):
        if resources := container.get("resources"):
            for side, amounts in resources.items():
                if side != "claims":
                    found += _fraction_warnings(amounts, f"{here}.resources.{side}")
        if len(container.get("env", ())) > 1:
            found += _env_warnings(container["env"], f"{here}.env")
        ports += [(port, f"{here}.ports[{i}]") for i, port in enumerate(container.get("ports", ()))]
    if ports:
        found += _port_warnings(ports)
    return found


def _selector_warnings(selector: Mapping[str, str], path: str) -> Iterator[str]:
    for key in selector:
        if key in DEPRECATED_NODE_LABELS:
            yield f"{path}[{key}]: {DEPRECATED_NODE_LABELS[key]}"


def _grace_warnings(seconds: int, path: str) -> Iterator[str]:
    if seconds < 0:
        yield f"{path}: must be >= 0; negative values are invalid and will be treated as 1"


def _pull_secret_warnings(secrets: Sequence[Doc], path: str) -> Iterator[str]:
    yield from _repeated(secrets, "name", path)
    for i, secret in enumerate(secrets):
        if not secret.get("name"):
            yield f'{path}[{i}].name: invalid empty name ""'


def _alias_warnings(aliases: Sequence[Doc], path: str) -> Iterator[str]:
    yield from _repeated(aliases, "ip", path)
    for i, alias in enumerate(aliases):
        yield from ip_warnings(f"{path}[{i}].ip", alias.get("ip", ""))


def _dns_warnings(config: Doc, path: str) -> Iterator[str]:
    for i, server in enumerate(config.get("nameservers", ())):
        yield from ip_warnings(f"{path}.nameservers[{i}]", server)


def _node_affinity_warnings(node: Doc, path: str) -> Iterator[str]:
    for i, term in enumerate((node.get(REQUIRED) or {}).get("nodeSelectorTerms", ())):
        yield from _term_warnings(term, f"{path}.{REQUIRED}.nodeSelectorTerms[{i}]", values=False)
    for i, weighted in enumerate(node.get(PREFERRED, ())):
        yield from _term_warnings(weighted.get("preference", {}), f"{path}.{PREFERRED}[{i}].preference", values=True)


def _term_warnings(term: Doc, path: str, *, values: bool) -> Iterator[str]:
    for i, expression in enumerate(term.get("matchExpressions", ())):
        key = expression.get("key", "")
        if key in DEPRECATED_NODE_LABELS:
            yield f"{path}.matchExpressions[{i}].key: {key} is {DEPRECATED_NODE_LABELS[key]}"
        for j, value in enumerate(expression.get("values", ()) if values else ()):
            for fault in label_value(value):
                yield f"{path}.matchExpressions[{i}].values[{j}]: {value} is invalid, {fault}"


def _spread_warnings(constraints: Sequence[Doc], path: str) -> Iterator[str]:
    for i, constraint in enumerate(constraints):
        here, key = f"{path}[{i}]", constraint.get("topologyKey", "")
        if key in DEPRECATED_NODE_LABELS:
            yield f"{here}.topologyKey: {key} is {DEPRECATED_NODE_LABELS[key]}"
        if "labelSelector" not in constraint:
            yield f"{here}.{_NO_SELECTOR}"


def _annotation_warnings(annotations: Mapping[str, str], spec: Doc, path: str) -> Iterator[str]:
    where = f"{path.removesuffix('spec')}metadata.annotations"
    for key, text in _DEPRECATED_ANNOTATIONS.items():
        if key in annotations:
            yield f"{where}[{key}]: {text}"
    if SECCOMP_POD in annotations and "seccompProfile" not in (spec.get("securityContext") or {}):
        yield f"{where}[{SECCOMP_POD}]: {_USE_SECCOMP}"
    for container, _ in containers_of(spec, path):
        context = container.get("securityContext") or {}
        seccomp, app_armor = SECCOMP_CONTAINER + container.get("name", ""), APP_ARMOR + container.get("name", "")
        if seccomp in annotations and "seccompProfile" not in context:
            yield f"{where}[{seccomp}]: {_USE_SECCOMP}"
        if app_armor in annotations and "appArmorProfile" not in context:
            yield f"{where}[{app_armor}]: {_USE_APP_ARMOR}"


def _volume_warnings(volumes: Sequence[Doc], path: str) -> Iterator[str]:
    for i, volume in enumerate(volumes):
        for source in volume:
            if source in _DEPRECATED_VOLUMES:
                yield f"{path}[{i}].{_DEPRECATED_VOLUMES[source]}"
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if claim:
            yield from claim_spec_warnings(claim.get("spec", {}), f"{path}[{i}].ephemeral.volumeClaimTemplate.spec")
    yield from overlap_warnings(volumes)


def _repeated(items: Sequence[Doc], field: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for i, item in enumerate(items):
        value = item.get(field, "")
        if value in seen:
            yield f"{path}[{i}].{field}: duplicate {field} {quoted(value)}"
        seen.add(value)


def _fraction_warnings(amounts: Mapping[str, str], path: str) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        if name in amounts and parse(amounts[name]).milli() % 1000:
            yield f'{path}[{name}]: fractional byte value "{amounts[name]}" is invalid, must be an integer'


def _env_warnings(variables: Sequence[Doc], path: str) -> Iterator[str]:
    """A later definition hides an earlier one, unless it builds on it (X="abc"; X="$(X)123")."""
    seen: set[str] = set()
    for i, variable in enumerate(variables):
        name = variable.get("name", "")
        reference, value = f"$({name})", variable.get("value", "")
        if name not in seen:
            seen.add(name)
        elif variable.get("valueFrom") is not None or value == reference or reference not in value:
            text = f"hides previous definition of {quoted(name)}, which may be dropped when using apply"
            yield f"{path}[{i}]: {text}"


def _port_warnings(ports: Sequence[tuple[Doc, str]]) -> Iterator[str]:
    names: dict[str, str] = {}
    for i, (port, where) in enumerate(ports):
        if port.get("hostIP") and not port.get("hostPort"):
            yield f"{where}: hostIP set without hostPort: {{...}}"
        for other, there in ports[:i]:
            if clash := _port_clash(port, other):
                yield f"{where}: {clash} port definition with {there}"
    for port, where in ports:
        name = port.get("name")
        if name and names.setdefault(name, where) != where:
            first = names[name]
            text = f"with {first}, services and probes that select ports by name will use {first}"
            yield f"{where}: duplicate port name {quoted(name)} {text}"


def _port_clash(one: Doc, other: Doc) -> str:
    if any(one.get(field) != other.get(field) for field in ("containerPort", "protocol")):
        return ""
    address, also = one.get("hostIP", ""), other.get("hostIP", "")
    port, likewise = one.get("hostPort", 0), other.get("hostPort", 0)
    if (address, port) == (also, likewise):
        return "duplicate"
    if not port or not likewise:
        return "overlapping"
    return "dangerously ambiguous" if port == likewise and bool(address) != bool(also) else ""


def _affinity_warnings(affinity: Doc, path: str) -> Iterator[str]:
    yield from _node_affinity_warnings(affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity")
    for sort in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(sort) or {}
        for i, term in enumerate(terms.get(REQUIRED, ())):
            if "labelSelector" not in term:
                yield f"{path}.{sort}.{REQUIRED}[{i}].{_NO_SELECTOR}"
        for i, weighted in enumerate(terms.get(PREFERRED, ())):
            if "labelSelector" not in weighted.get("podAffinityTerm", {}):
                yield f"{path}.{sort}.{PREFERRED}[{i}].podAffinityTerm.{_NO_SELECTOR}"


_FIELDS: tuple[tuple[str, Callable[[Any, str], Iterable[str]]], ...] = (
    ("nodeSelector", _selector_warnings),
    ("affinity", _affinity_warnings),
    ("topologySpreadConstraints", _spread_warnings),
    ("volumes", _volume_warnings),
    ("hostAliases", _alias_warnings),
    ("imagePullSecrets", _pull_secret_warnings),
    ("overhead", _fraction_warnings),
    ("terminationGracePeriodSeconds", _grace_warnings),
    ("dnsConfig", _dns_warnings),
)
