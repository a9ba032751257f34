"""DaemonSets: a pod on every node that the template fits.

Source of truth: apps/validation, apps/v1/defaults.go and conversion.go, registry/apps/daemonset/strategy.go. Upstream
counts changes of the template in a field of its internal type, which apps/v1 shows as an annotation.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, keep_status
from bayplan.cluster.embedded.admission.labels import (
    has_invalid_values,
    is_empty,
    read_selector,
    validate_label_selector,
)
from bayplan.cluster.embedded.admission.pods.defaults import default_pod_template
from bayplan.cluster.embedded.admission.pods.spec import validate_pod_template
from bayplan.cluster.embedded.admission.pods.warnings import pod_template_warnings
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import subdomain_name
from bayplan.cluster.embedded.admission.workloads.numbers import (
    as_struct,
    atoi,
    not_negative,
    share,
    validate_at_most_all,
    validate_collisions,
    validate_share,
)
from bayplan.cluster.embedded.admission.workloads.templates import (
    validate_immutable,
    validate_match,
    validate_runs_forever,
)
from bayplan.cluster.kinds import DAEMON_SET

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

_KEPT_COUNTS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
_COUNTS = (
    *_KEPT_COUNTS,
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


def _default(doc: Doc) -> None:
    spec = doc["spec"]
    strategy = spec["updateStrategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    default_pod_template(spec["template"])


def _template_generation(doc: Doc) -> int:
    return atoi(doc["metadata"].get("annotations", {}).get(TEMPLATE_GENERATION, "0")) or 0


def _set_template_generation(doc: Doc, generation: int) -> None:
    doc["metadata"].setdefault("annotations", {})[TEMPLATE_GENERATION] = str(generation)


def _prepare(doc: Doc) -> None:
    doc["status"] = dict.fromkeys(_KEPT_COUNTS, 0)
    _set_template_generation(doc, max(_template_generation(doc), 1))


def _prepare_update(new: Doc, old: Doc) -> None:
    keep_status(new, old)
    changed = new["spec"]["template"] != old["spec"]["template"]
    _set_template_generation(new, _template_generation(old) + changed)


def _prepare_status(new: Doc, old: Doc) -> None:
    keep_spec(new, old)
    _set_template_generation(new, _template_generation(old))


def _validate(doc: Doc, errors: Errors) -> None:
    _validate_spec(doc["spec"], errors, invalid_values=False)


def _validate_spec(spec: Doc, errors: Errors, *, invalid_values: bool) -> None:
    selector = spec.get("selector")
    validate_label_selector(selector, "spec.selector", errors, invalid_values=invalid_values)
    if (readable := read_selector(selector)) is not None:
        validate_match(readable, spec["template"], errors)
    if selector is not None and is_empty(selector):
        errors.invalid("spec.selector", selector, "empty selector is invalid for daemonset")
    validate_pod_template(spec["template"], "spec.template", errors)
    validate_runs_forever(spec["template"]["spec"], errors, noun="DaemonSet")
    not_negative(spec, "spec", errors, ("minReadySeconds",))
    _validate_strategy(spec["updateStrategy"], errors)
    not_negative(spec, "spec", errors, ("revisionHistoryLimit",))


def _validate_strategy(strategy: Doc, errors: Errors) -> None:
    path = "spec.updateStrategy"
    if strategy.get("type") == "RollingUpdate":
        _validate_rolling_update(strategy["rollingUpdate"], f"{path}.rollingUpdate", errors)
    elif strategy.get("type") != "OnDelete":
        errors.not_supported(path, as_struct(strategy, "rollingUpdate"), ("RollingUpdate", "OnDelete"))


def _validate_rolling_update(rolling: Doc, path: str, errors: Errors) -> None:
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    for rule in (validate_share, validate_at_most_all):
        rule(unavailable, f"{path}.maxUnavailable", errors)
        rule(surge, f"{path}.maxSurge", errors)
    if share(unavailable) and share(surge):
        errors.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not share(unavailable) and not share(surge):
        errors.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    validate_immutable(new["spec"], old["spec"], "selector", errors)
    _validate_spec(new["spec"], errors, invalid_values=has_invalid_values(old["spec"].get("selector")))


def _validate_status(new: Doc, old: Doc, errors: Errors) -> None:
    not_negative(new["status"], "status", errors, _COUNTS)
    validate_collisions(new, old, errors)


def _warn(new: Doc, old: Doc | None) -> list[str]:
    if old is not None and _template_generation(new) == _template_generation(old):
        return []
    return pod_template_warnings(new["spec"]["template"], "spec.template")


STRATEGY = Strategy(
    kind=DAEMON_SET,
    name_rule=subdomain_name,
    generation=True,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    prepare_update=_prepare_update,
    validate_update=_validate_update,
    prepare_status=_prepare_status,
    validate_status=_validate_status,
    warn=_warn,
)
