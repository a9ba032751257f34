"""A namespace's labels say which pods it takes: which level is enforced, and at which one users are warned.

Pods are refused or warned about, templates only warned about: their pods are judged when they come. The audit level
leaves no trace that a client could see.

Source of truth: k8s.io/pod-security-admission 0.36 admission, api.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from bayplan.cluster.embedded.admission.fields import Doc, Errors, quoted
from bayplan.cluster.embedded.admission.pipeline import invalid
from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.cluster.embedded.admission.plugins.base import Rule, forbidden, name_of
from bayplan.cluster.embedded.admission.plugins.pod_security.standards import NEWEST, findings
from bayplan.cluster.kinds import NAMESPACE, POD, is_built_in

_PREFIX = "pod-security.kubernetes.io/"
_LEVELS = ("privileged", "baseline", "restricted")
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")
_MOST_PODS = 3000  # so many of a namespace's pods are looked at when its level rises
_TEMPLATES = frozenset(
    ["ReplicationController", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"]
)
_IGNORED = frozenset(["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"])


class Bar(NamedTuple):
    """A level, and the version of the policy that defines it."""

    level: str = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def violations(self, meta: Doc, spec: Doc, *, detailed: bool = True) -> str:
        """What keeps a pod under the bar; "" if nothing."""
        minor = NEWEST if self.version == "latest" else int(self.version.removeprefix("v1."))
        found = findings(self.level, minor, meta.get("annotations", {}), spec)
        return ", ".join(str(one) if detailed else one.reason for one in found)


class Policy(NamedTuple):
    """What a namespace asks of its pods. A label that cannot be read enforces the strictest and warns of nothing."""

    enforce: Bar
    warn: Bar

    @classmethod
    def of(cls, labels: Mapping[str, str], errors: Errors) -> Policy:
        """The policy that labels describe; faults in them go to `errors`."""
        if not any(key.startswith(_PREFIX) for key in labels):
            return _OPEN
        enforce = _bar(labels, "enforce", errors, "restricted")
        _bar(labels, "audit", errors, "privileged")
        warn = _bar(labels, "warn", errors, "privileged")
        if f"{_PREFIX}warn" not in labels and labels.get(f"{_PREFIX}enforce") in _LEVELS[1:]:
            version = warn.version if f"{_PREFIX}warn-version" in labels else enforce.version
            warn = Bar(enforce.level, version)
        return cls(enforce, warn)


_OPEN = Policy(Bar(), Bar())


def _bar(labels: Mapping[str, str], mode: str, errors: Errors, otherwise: str) -> Bar:
    level = labels.get(f"{_PREFIX}{mode}", "privileged")
    version = labels.get(f"{_PREFIX}{mode}-version", "latest")
    if level not in _LEVELS:
        errors.invalid(f"metadata.labels[{_PREFIX}{mode}]", level, f"must be one of {', '.join(_LEVELS)}")
        level = otherwise
    if version != "latest" and not _VERSION.fullmatch(version):
        errors.invalid(f"metadata.labels[{_PREFIX}{mode}-version]", version, 'must be "latest" or "v1.x"')
        version = "latest"
    return Bar(level, version)


class PodSecurity(Rule):
    """Nobody is exempt; a namespace without labels takes everything."""

    name = "PodSecurity"

    def wants(self, request: Request) -> bool:
        if request.operation == "DELETE":
            return False
        if request.kind is POD:
            return request.subresource not in _IGNORED
        templated = request.kind.name in _TEMPLATES and is_built_in(request.kind)
        return not request.subresource and (request.kind is NAMESPACE or templated)

    def validate(self, request: Request, state: State) -> None:
        if request.kind is NAMESPACE:
            _judge_namespace(request, state)
            return
        namespace = state.get(NAMESPACE, "", request.namespace)
        labels = namespace["metadata"].get("labels", {}) if namespace else {}
        policy = Policy.of(labels, Errors())
        if policy is _OPEN:
            return
        if request.kind is POD:
            if request.old is None or _images(request.old) != _images(request.doc):
                _judge_pod(request, policy)
        else:
            _warn(request, policy, *_template(request.doc))


def _judge_pod(request: Request, policy: Policy) -> None:
    meta, spec = request.doc["metadata"], request.doc["spec"]
    broken = policy.enforce.violations(meta, spec)
    if broken:
        raise forbidden(request, f'violates PodSecurity "{policy.enforce}": {broken}')
    _warn(request, policy, meta, spec)


def _warn(request: Request, policy: Policy, meta: Doc, spec: Doc) -> None:
    broken = policy.warn.violations(meta, spec)
    if broken:
        request.warnings.append(f'would violate PodSecurity "{policy.warn}": {broken}')


def _template(doc: Doc) -> tuple[Doc, Doc]:
    spec = doc["spec"]
    template = spec.get("jobTemplate", {}).get("spec", spec).get("template", {})
    return template.get("metadata", {}), template.get("spec", {})


def _images(pod: Doc) -> list[tuple[str, int, str]]:
    """What of a pod's update can concern its security."""
    fields = ("containers", "initContainers", "ephemeralContainers")
    return [(field, i, one.get("image", "")) for field in fields for i, one in enumerate(pod["spec"].get(field, ()))]


def _judge_namespace(request: Request, state: State) -> None:
    """Labels must be readable; where the enforced level rises, the pods that are already there are told of."""
    errors, before = Errors(), Errors()
    new = Policy.of(request.doc["metadata"].get("labels", {}), errors)
    if request.old is None:
        if errors:
            raise invalid(NAMESPACE, name_of(request), errors)
        return
    old = Policy.of(request.old["metadata"].get("labels", {}), before)
    if errors and errors != before:
        raise invalid(NAMESPACE, name_of(request), errors)
    if new.enforce == old.enforce or new.enforce.level == "privileged":
        return
    risen = _LEVELS.index(new.enforce.level) > _LEVELS.index(old.enforce.level)
    if risen or new.enforce.version != old.enforce.version:
        request.warnings += _violations_inside(name_of(request), new.enforce, state)


def _violations_inside(namespace: str, bar: Bar, state: State) -> list[str]:
    pods = _one_a_controller_first(state.list(POD, namespace))
    guilty: dict[str, list[str]] = {}
    for pod in pods[:_MOST_PODS]:
        broken = bar.violations(pod["metadata"], pod["spec"], detailed=False)
        if broken:
            guilty.setdefault(broken, []).append(pod["metadata"]["name"])
    warnings = []
    if len(pods) > _MOST_PODS:
        checked = f"the first {_MOST_PODS} of {len(pods)} existing pods"
        warnings.append(f"new PodSecurity enforce level only checked against {checked}")
    if guilty:
        head = f"existing pods in namespace {quoted(namespace)} violate the new PodSecurity enforce level"
        warnings.append(f'{head} "{bar}"')
    return warnings + sorted(f"{_told(names)}: {broken}" for broken, names in guilty.items())


def _one_a_controller_first(pods: list[Doc]) -> list[Doc]:
    seen: set[str] = set()
    first: list[Doc] = []
    rest: list[Doc] = []
    for pod in pods:
        owner = next((one["uid"] for one in pod["metadata"].get("ownerReferences", ()) if one.get("controller")), None)
        (rest if owner in seen else first).append(pod)
        if owner is not None:
            seen.add(owner)
    return first + rest


def _told(names: list[str]) -> str:
    others = len(names) - 1
    return min(names) + (f" (and {others} other pod{'s' if others > 1 else ''})" if others else "")
