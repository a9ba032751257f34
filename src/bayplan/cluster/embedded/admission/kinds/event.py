"""Events of the core group: an old form, dated by first and last sight, and a new one with an eventTime.

Source of truth: core/validation/events.go, legacyValidateEvent. Upstream leaves an event's metadata to the generic
rules.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import dns1123_subdomain, path_segment_name, qualified_name, size
from bayplan.cluster.kinds import EVENT

_MOST_BYTES = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}


def _validate(doc: Doc, errors: Errors) -> None:
    namespace = doc["metadata"].get("namespace", "")
    about = doc.get("involvedObject", {}).get("namespace", "")
    if doc.get("eventTime"):
        fits = bool(about) or namespace in ("default", "kube-system")
    else:
        fits = namespace == about if about else namespace in ("", "default")
    if not fits:
        errors.invalid("involvedObject.namespace", about, "does not match event.namespace")
    if doc.get("eventTime"):
        _validate_new_form(doc, errors)
    for fault in dns1123_subdomain(namespace):
        errors.invalid("namespace", namespace, fault)


def _validate_new_form(doc: Doc, errors: Errors) -> None:
    reporter = doc.get("reportingComponent", "")
    if not reporter:
        errors.required("reportingComponent")
    for fault in qualified_name(reporter):
        errors.invalid("reportingComponent", reporter, fault)
    for field, most in _MOST_BYTES.items():
        text = doc.get(field, "")
        if not text and field != "message":
            errors.required(field)
        if size(text) > most:
            errors.invalid(field, "", f"can have at most {most} characters")


def _validate_update(new: Doc, _old: Doc, errors: Errors) -> None:
    _validate(new, errors)


STRATEGY = Strategy(
    kind=EVENT,
    name_rule=path_segment_name,
    validate=_validate,
    validate_update=_validate_update,
    create_on_update=True,
)
