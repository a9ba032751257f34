"""When a container is restarted: its own policy, its rules by exit code, and what a resize costs.

Source of truth: pkg/apis/core/validation, validateContainerRestartPolicy and validateResizePolicy, with the gates
ContainerRestartRules and RestartAllContainersOnContainerExits on (1.36). Upstream reports resize faults on the list.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors

_POLICIES = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_OPERATORS = ("In", "NotIn")
_RESIZABLE = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_MOST_RULES = 20
_MOST_EXIT_CODES = 255


def is_sidecar(container: Doc) -> bool:
    """An init container that keeps running beside the others."""
    return container.get("restartPolicy") == "Always"


def validate_restart_policy(container: Doc, path: str, errors: Errors) -> None:
    """A container's own restart policy and rules; `path` is the container's."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules", ())
    if policy is not None and policy not in _POLICIES:
        errors.not_supported(f"{path}.restartPolicy", policy, _POLICIES)
    if not rules:
        return
    if policy is None:
        errors.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    if len(rules) > _MOST_RULES:
        errors.too_many(f"{path}.restartPolicyRules", len(rules), _MOST_RULES)
    for i, rule in enumerate(rules):
        _validate_rule(rule, f"{path}.restartPolicyRules[{i}]", errors)


def _validate_rule(rule: Doc, path: str, errors: Errors) -> None:
    action, codes = rule.get("action", ""), rule.get("exitCodes")
    if action not in _ACTIONS:
        errors.not_supported(f"{path}.action", action, _ACTIONS)
    if codes is None:
        errors.required(f"{path}.exitCodes", "must be specified")
        return
    operator, values = codes.get("operator", ""), codes.get("values", ())
    if operator not in _OPERATORS:
        errors.not_supported(f"{path}.exitCodes.operator", operator, _OPERATORS)
    if len(values) > _MOST_EXIT_CODES:
        errors.too_many(f"{path}.exitCodes.values", len(values), _MOST_EXIT_CODES)


def validate_resize_policy(policies: Sequence[Doc], path: str, errors: Errors, *, pod_restart_policy: str) -> None:
    """What a change of cpu or memory costs. A pod that never restarts cannot restart for that either."""
    seen: set[str] = set()
    for i, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            errors.duplicate(f"{path}[{i}]", resource)
        seen.add(resource)
        for value, allowed in ((resource, _RESIZABLE), (restart, _RESIZE_POLICIES)):
            if not value:
                errors.required(path)
            elif value not in allowed:
                errors.not_supported(path, value, allowed)
        if pod_restart_policy == "Never" and restart != "NotRequired":
            errors.invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
