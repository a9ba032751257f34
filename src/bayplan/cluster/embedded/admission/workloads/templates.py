"""What kinds with a pod template share: the selector has to pick the template, the name becomes part of pod names."""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.labels import is_empty, read_selector, validate_label_selector
from bayplan.cluster.embedded.admission.metadata import IMMUTABLE
from bayplan.cluster.embedded.admission.pods.spec import validate_pod_template
from bayplan.cluster.embedded.admission.pods.warnings import pod_template_warnings
from bayplan.cluster.embedded.admission.syntax import dns1123_label
from bayplan.model.selectors import Selector

NO_MATCH = "`selector` does not match template `labels`"


def validate_match(selector: Selector, template: Doc, errors: Errors) -> None:
    """The selector picks the pods made from the template."""
    labels = template["metadata"].get("labels")
    if not selector.matches(labels or {}):
        errors.invalid("spec.template.metadata.labels", labels, NO_MATCH)


def validate_required_selector(spec: Doc, errors: Errors, *, noun: str) -> None:
    """spec.selector is there, is well formed and does not pick everything."""
    selector = spec.get("selector")
    if selector is None:
        errors.required("spec.selector")
        return
    validate_label_selector(selector, "spec.selector", errors)
    if is_empty(selector):
        errors.invalid("spec.selector", selector, f"empty selector is invalid for {noun}")


def validate_replica_template(spec: Doc, errors: Errors) -> None:
    """The template of a Deployment or ReplicaSet; unlooked at when the selector cannot be read."""
    selector = read_selector(spec.get("selector"))
    if selector is None:
        errors.invalid("spec.selector", spec["selector"], "invalid label selector")
        return
    validate_match(selector, spec["template"], errors)
    validate_pod_template(spec["template"], "spec.template", errors)
    validate_runs_forever(spec["template"]["spec"], errors, noun="ReplicaSet")


def validate_runs_forever(pod: Doc, errors: Errors, *, noun: str) -> None:
    """Pods of services are restarted and have no deadline."""
    path = "spec.template.spec"
    if (policy := pod.get("restartPolicy", "")) != "Always":
        errors.not_supported(f"{path}.restartPolicy", policy, ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        errors.forbidden(f"{path}.activeDeadlineSeconds", f"activeDeadlineSeconds in {noun} is not Supported")


def validate_immutable(new: Doc, old: Doc, field: str, errors: Errors, *, path: str = "spec") -> None:
    """A field of spec stays what it is."""
    if new.get(field) != old.get(field):
        errors.invalid(f"{path}.{field}", new.get(field), IMMUTABLE)


def generation_moved(new: Doc, old: Doc) -> bool:
    """Whether an update changed spec."""
    return bool(new["metadata"].get("generation") != old["metadata"].get("generation"))


def name_warnings(doc: Doc) -> list[str]:
    """A name that does not fit into a hostname works, until someone looks at hostnames."""
    faults = dns1123_label(doc["metadata"].get("name", ""))
    text = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
    return [f"{text}a DNS label is recommended: [{' '.join(faults)}]"] if faults else []


def template_warnings(new: Doc, old: Doc | None) -> list[str]:
    """On create those of name and template; on update those of the template, if spec changed."""
    if old is not None and not generation_moved(new, old):
        return []
    warnings = name_warnings(new) if old is None else []
    template = new["spec"].get("template")
    return warnings + pod_template_warnings(template, "spec.template") if template else warnings
