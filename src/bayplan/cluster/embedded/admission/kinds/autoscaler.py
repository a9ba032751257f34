"""HorizontalPodAutoscalers: what to scale, between which bounds, by which metrics, how fast.

Source of truth: autoscaling/validation, autoscaling/v2/defaults.go, registry/autoscaling/horizontalpodautoscaler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, keep_status
from bayplan.cluster.embedded.admission.pods.resources import NEGATIVE, container_resource_name_faults
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import dns1123_label, path_segment_name, subdomain_name
from bayplan.cluster.embedded.admission.workloads.numbers import not_negative
from bayplan.cluster.kinds import HORIZONTAL_POD_AUTOSCALER
from bayplan.model.quantity import parse

_MOST_PERIOD = 1800
_MOST_WINDOW = 3600
_SELECT_POLICIES = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")


def _default(doc: Doc) -> None:
    spec = doc["spec"]
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        behavior["scaleUp"] = _scale_up_rules() | (behavior.get("scaleUp") or {})
        behavior["scaleDown"] = _scale_down_rules() | (behavior.get("scaleDown") or {})


def _scale_up_rules() -> Doc:
    policies = [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ]
    return {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": policies}


def _scale_down_rules() -> Doc:
    return {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _prepare(doc: Doc) -> None:
    doc["status"] = {"desiredReplicas": 0, "currentMetrics": None}


def _validate(doc: Doc, errors: Errors) -> None:
    _validate_spec(doc["spec"], None, errors)


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    _validate_spec(new["spec"], old["spec"], errors)


def _validate_spec(spec: Doc, was: Doc | None, errors: Errors) -> None:
    """The whole spec. What `was` stored already under laxer rules is let pass again."""
    _validate_bounds(spec, 0 if was and was.get("minReplicas") == 0 else 1, errors)
    target = spec.get("scaleTargetRef", {})
    same = was is not None and all(
        was.get("scaleTargetRef", {}).get(field) == target.get(field) for field in ("apiVersion", "kind")
    )
    core = target.get("kind") == "ReplicationController"
    _validate_reference(target, "spec.scaleTargetRef", errors, any_version=same, core_group=core)
    _validate_metrics(spec, was or {}, errors)
    behavior = spec.get("behavior") or {}
    for direction in ("scaleUp", "scaleDown"):
        if direction in behavior:
            _validate_rules(behavior[direction], f"spec.behavior.{direction}", errors)


def _validate_bounds(spec: Doc, least: int, errors: Errors) -> None:
    low, high = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if low is not None and low < least:
        errors.invalid("spec.minReplicas", low, f"must be greater than or equal to {least}")
    if high == 0:
        errors.required("spec.maxReplicas", "must be set and greater than 0")
    elif high < 0:
        errors.invalid("spec.maxReplicas", high, "must be greater than or equal to 1")
    if low is not None and high < low:
        errors.invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")


def _validate_reference(ref: Doc, path: str, errors: Errors, *, any_version: bool, core_group: bool) -> None:
    for field in ("kind", "name"):
        value = ref.get(field, "")
        if not value:
            errors.required(f"{path}.{field}")
        for fault in path_segment_name(value):
            errors.invalid(f"{path}.{field}", value, fault)
    version = ref.get("apiVersion", "")
    if not any_version and (fault := _version_fault(version, core_group=core_group)):
        errors.invalid(f"{path}.apiVersion", version, fault)


def _version_fault(version: str, *, core_group: bool) -> str:
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    if not core_group and not version.rpartition("/")[0]:
        return "apiVersion must specify API group"
    return ""


def _validate_metrics(spec: Doc, was: Doc, errors: Errors) -> None:
    any_version = any(
        _version_fault(metric["object"].get("describedObject", {}).get("apiVersion", ""), core_group=True)
        for metric in was.get("metrics", ())
        if metric.get("type") == "Object" and "object" in metric
    )
    metrics: Sequence[Doc] = spec.get("metrics", ())
    for i, metric in enumerate(metrics):
        _validate_metric(metric, f"spec.metrics[{i}]", errors, any_version=any_version)
    if spec.get("minReplicas") == 0 and not {"Object", "External"} & {metric.get("type") for metric in metrics}:
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.forbidden("spec.metrics", detail)


def _validate_metric(metric: Doc, path: str, errors: Errors, *, any_version: bool) -> None:
    kind = metric.get("type", "")
    if not kind:
        errors.required(f"{path}.type", "must specify a metric source type")
    given = [field for field in _SOURCES if field in metric]
    if given:
        source = metric[given[0]]
        if given[0] == "object":
            described = source.get("describedObject", {})
            where = f"{path}.object.describedObject"
            _validate_reference(described, where, errors, any_version=any_version, core_group=True)
        _SOURCES[given[0]](source, f"{path}.{given[0]}", errors)
    expected = _METRIC_TYPES.get(kind)
    if expected is None:
        errors.not_supported(f"{path}.type", kind, sorted(_METRIC_TYPES))
    elif expected not in given:
        errors.required(f"{path}.{expected}", "must populate information for the given metric source")
    if len(given) > 1:
        for field in given:
            if field != expected:
                errors.forbidden(f"{path}.{field}", "must populate the given metric source only")


def _validate_object(source: Doc, path: str, errors: Errors) -> None:
    _validate_named(source, path, errors)
    if not _has(source, "value", "averageValue"):
        errors.required(f"{path}.target.averageValue", "must set either a target value or averageValue")


def _validate_external(source: Doc, path: str, errors: Errors) -> None:
    _validate_named(source, path, errors)
    if not _has(source, "value", "averageValue"):
        detail = "must set either a target value for metric or a per-pod target"
        errors.required(f"{path}.target.averageValue", detail)
    if _has(source, "value") and _has(source, "averageValue"):
        detail = "may not set both a target value for metric and a per-pod target"
        errors.forbidden(f"{path}.target.value", detail)


def _validate_pods(source: Doc, path: str, errors: Errors) -> None:
    _validate_named(source, path, errors)
    if not _has(source, "averageValue"):
        errors.required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _validate_container_resource(source: Doc, path: str, errors: Errors) -> None:
    for fault in container_resource_name_faults(source.get("name", "")) if source.get("name") else ():
        errors.invalid(f"{path}.name", source["name"], fault)
    container = source.get("container", "")
    if not container:
        errors.required(f"{path}.container", "must specify a container")
    else:
        for fault in dns1123_label(container):
            errors.invalid(f"{path}.container", container, fault)
    _validate_resource(source, path, errors)


def _validate_resource(source: Doc, path: str, errors: Errors) -> None:
    if not source.get("name"):
        errors.required(f"{path}.name", "must specify a resource name")
    _validate_target(source.get("target", {}), f"{path}.target", errors)
    if not _has(source, "averageUtilization", "averageValue"):
        detail = "must set either a target raw value or a target utilization"
        errors.required(f"{path}.target.averageUtilization", detail)
    if _has(source, "averageUtilization") and _has(source, "averageValue"):
        detail = "may not set both a target raw value and a target utilization"
        errors.forbidden(f"{path}.target.averageValue", detail)


_SOURCES: dict[str, Callable[[Doc, str, Errors], None]] = {
    "object": _validate_object,
    "external": _validate_external,
    "pods": _validate_pods,
    "resource": _validate_resource,
    "containerResource": _validate_container_resource,
}
"""Where a metric can come from, in the order in which upstream looks: of several only the first is checked."""

_METRIC_TYPES = {field[0].upper() + field[1:]: field for field in _SOURCES}


def _has(source: Doc, *fields: str) -> bool:
    """Whether the target of a metric has one of these."""
    return any(field in source.get("target", {}) for field in fields)


def _validate_named(source: Doc, path: str, errors: Errors) -> None:
    """A metric with a name, and its target."""
    name = source.get("metric", {}).get("name", "")
    if not name:
        errors.required(f"{path}.metric.name", "must specify a metric name")
    for fault in path_segment_name(name):
        errors.invalid(f"{path}.metric.name", name, fault)
    _validate_target(source.get("target", {}), f"{path}.target", errors)


def _validate_target(target: Doc, path: str, errors: Errors) -> None:
    kind = target.get("type", "")
    if not kind:
        errors.required(f"{path}.type", "must specify a metric target type")
    if kind not in _TARGET_TYPES:
        errors.invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        if field in target and parse(target[field]).nanos <= 0:
            errors.invalid(f"{path}.{field}", target[field], "must be positive")
    if (share := target.get("averageUtilization", 1)) < 1:
        errors.invalid(f"{path}.averageUtilization", share, "must be greater than 0")


def _validate_rules(rules: Doc, path: str, errors: Errors) -> None:
    window = rules.get("stabilizationWindowSeconds", 0)
    if window < 0:
        errors.invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window > _MOST_WINDOW:
        errors.invalid(f"{path}.stabilizationWindowSeconds", window, f"must be less than or equal to {_MOST_WINDOW}")
    choice = rules.get("selectPolicy", "Max")
    if choice not in _SELECT_POLICIES:
        errors.not_supported(f"{path}.selectPolicy", choice, _SELECT_POLICIES)
    if not rules.get("policies"):
        errors.required(f"{path}.policies", "must specify at least one Policy")
    for i, policy in enumerate(rules.get("policies", ())):
        _validate_policy(policy, f"{path}.policies[{i}]", errors)
    tolerance = rules.get("tolerance")
    if tolerance is not None and parse(tolerance).nanos < 0:
        errors.invalid(f"{path}.tolerance", tolerance, NEGATIVE)


def _validate_policy(policy: Doc, path: str, errors: Errors) -> None:
    if (kind := policy.get("type", "")) not in _POLICY_TYPES:
        errors.not_supported(f"{path}.type", kind, _POLICY_TYPES)
    for field in ("value", "periodSeconds"):
        if (number := policy.get(field, 0)) <= 0:
            errors.invalid(f"{path}.{field}", number, "must be greater than zero")
    if (period := policy.get("periodSeconds", 0)) > _MOST_PERIOD:
        errors.invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {_MOST_PERIOD}")


def _validate_status(new: Doc, _old: Doc, errors: Errors) -> None:
    not_negative(new["status"], "status", errors, ("currentReplicas", "desiredReplicas"))


STRATEGY = Strategy(
    kind=HORIZONTAL_POD_AUTOSCALER,
    name_rule=subdomain_name,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    prepare_update=keep_status,
    validate_update=_validate_update,
    prepare_status=keep_spec,
    validate_status=_validate_status,
)
