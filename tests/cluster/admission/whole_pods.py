"""Whole pods for the tests of pod rules: a good pod in every field that a test does not set, defaults applied."""

from __future__ import annotations

from typing import Any

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pods.defaults import default_pod_template
from bayplan.cluster.embedded.admission.pods.spec import validate_pod_template
from bayplan.cluster.embedded.admission.pods.strategy import STRATEGY
from bayplan.cluster.embedded.admission.strategy import ChangeRule
from tests.cluster.admission.pod_specs import container


def pod(meta: Doc | None = None, status: Doc | None = None, **spec: Any) -> Doc:
    """A pod named `p` as decoding and defaulting leave it: of one plain container unless told otherwise."""
    doc: Doc = {
        "metadata": {"name": "p", "namespace": "team", **(meta or {})},
        "spec": {"containers": [container()], **spec},
    }
    if status is not None:
        doc["status"] = status
    STRATEGY.default(doc)
    return doc


def created(meta: Doc | None = None, **spec: Any) -> Doc:
    """A pod as it is stored."""
    doc = pod({"creationTimestamp": "2026-01-01T00:00:00Z", **(meta or {})}, **spec)
    STRATEGY.prepare(doc)
    return doc


def told(errors: Errors) -> list[str]:
    """The faults as `path: message`, each once, sorted."""
    return sorted({f"{cause.field}: {cause.message}" for cause in errors})


def faults(meta: Doc | None = None, **spec: Any) -> list[str]:
    """What is wrong with a new pod; paths are relative to its spec where they lie in it."""
    doc = created(meta, **spec)
    errors = Errors()
    STRATEGY.validate(doc, errors)
    return [fault.removeprefix("spec.") for fault in told(errors)]


def template_faults(meta: Doc | None = None, **spec: Any) -> list[str]:
    """What is wrong with a template; paths are relative to it."""
    template: Doc = {"metadata": meta or {}, "spec": {"containers": [container()], **spec}}
    default_pod_template(template)
    errors = Errors()
    validate_pod_template(template, "template", errors)
    return [fault.removeprefix("template.") for fault in told(errors)]


def change_faults(rule: ChangeRule, new: Doc, old: Doc) -> list[str]:
    """What is wrong with a change."""
    errors = Errors()
    rule(new, old, errors)
    return told(errors)
