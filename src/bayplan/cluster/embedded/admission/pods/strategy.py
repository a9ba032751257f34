"""The Pod as a kind: its rules at each step of a write, put together.

Source of truth: kubernetes 1.36 pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_status
from bayplan.cluster.embedded.admission.pods import resize
from bayplan.cluster.embedded.admission.pods.affinity import merge_label_keys
from bayplan.cluster.embedded.admission.pods.annotations import (
    validate_annotation_update,
    validate_pod_annotations,
    validate_profiles_agree,
)
from bayplan.cluster.embedded.admission.pods.defaults import default_pod
from bayplan.cluster.embedded.admission.pods.spec import validate_pod_spec
from bayplan.cluster.embedded.admission.pods.status import first_status, prepare_status, validate_status
from bayplan.cluster.embedded.admission.pods.updates import validate_spec_change
from bayplan.cluster.embedded.admission.pods.warnings import pod_spec_warnings
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import dns1123_label, subdomain_name
from bayplan.cluster.kinds import POD


def _prepare(pod: Doc) -> None:
    pod["status"] = first_status(pod)
    spec = pod["spec"]
    if "affinity" in spec or "topologySpreadConstraints" in spec:
        merge_label_keys(spec, pod["metadata"].get("labels", {}))


def _validate_pod(pod: Doc, errors: Errors) -> None:
    """What holds for a pod at any time."""
    meta, spec = pod["metadata"], pod["spec"]
    if annotations := meta.get("annotations"):
        validate_pod_annotations(annotations, spec, "metadata.annotations", errors)
    validate_pod_spec(spec, meta, "spec", errors, template=False)
    if not spec.get("serviceAccountName"):
        _refuse_tokens(spec, errors)


def _refuse_tokens(spec: Doc, errors: Errors) -> None:
    for i, volume in enumerate(spec.get("volumes", ())):
        for j, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if "serviceAccountToken" in source:
                path = f"spec.volumes[{i}].projected.sources[{j}].serviceAccountToken"
                errors.forbidden(path, "must not be specified when serviceAccountName is not set")


def _validate(pod: Doc, errors: Errors) -> None:
    _validate_pod(pod, errors)
    spec = pod["spec"]
    if spec.get("ephemeralContainers"):
        errors.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    validate_profiles_agree(pod["metadata"].get("annotations", {}), spec, "spec", errors)


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    _validate_pod(new, errors)
    _validate_annotations(new, old, errors)
    validate_spec_change(new["spec"], old["spec"], errors)


def _validate_annotations(new: Doc, old: Doc, errors: Errors) -> None:
    was, now = old["metadata"].get("annotations", {}), new["metadata"].get("annotations", {})
    validate_annotation_update(now, was, "metadata.annotations", errors)


def _validate_status(new: Doc, old: Doc, errors: Errors) -> None:
    _validate_annotations(new, old, errors)
    validate_pod_annotations(new["metadata"].get("annotations", {}), new["spec"], "metadata.annotations", errors)
    validate_status(new, old, errors)


def _validate_resize(new: Doc, old: Doc, errors: Errors) -> None:
    _validate_pod(new, errors)
    resize.validate_resize(new, old, errors)


def _warn(new: Doc, old: Doc | None) -> list[str]:
    if old is not None:
        return []
    warnings = pod_spec_warnings(new["spec"], new["metadata"], "spec")
    if faults := dns1123_label(new["metadata"].get("name", "")):
        text = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
        warnings.insert(0, f"metadata.name: {text}: [{' '.join(faults)}]")
    return warnings


STRATEGY = Strategy(
    kind=POD,
    name_rule=subdomain_name,
    generation=True,
    default=default_pod,
    prepare=_prepare,
    validate=_validate,
    prepare_update=keep_status,
    validate_update=_validate_update,
    prepare_status=prepare_status,
    validate_status=_validate_status,
    prepare_resize=resize.prepare_resize,
    validate_resize=_validate_resize,
    warn=_warn,
)
