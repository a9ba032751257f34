"""An object's Scale: how many there should be, how many there are, and which. The same for every kind that has a size.

Kinds that every cluster has keep it in `spec.replicas` and select pods by `spec.selector`; a custom kind says where in
its definition, and writes its selector as text.
"""

from __future__ import annotations

from typing import Any

from bayplan.cluster.kinds import REPLICATION_CONTROLLER, ScalePaths
from bayplan.cluster.objects import Object
from bayplan.model.meta import LabelSelector
from bayplan.model.objects import from_builtins
from bayplan.model.selectors import from_label_selector

Doc = dict[str, Any]
USUAL = ScalePaths("spec.replicas", "status.replicas")


def scale_of(item: Object, paths: ScalePaths | None = None) -> Doc:
    """The Scale of an object; `paths` are a custom kind's."""
    doc = item.doc()
    meta = {
        "name": item.name,
        "namespace": item.namespace,
        "uid": item.uid,
        "resourceVersion": item.meta.resource_version,
        "creationTimestamp": item.meta.creation_timestamp,
    }
    selector = _selector(item, doc) if paths is None else _at(doc, paths.selector) or ""
    replicas = _at(doc, (paths or USUAL).spec) or 0
    now = {"replicas": _at(doc, (paths or USUAL).status) or 0, "selector": selector}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": meta,
        "spec": {"replicas": replicas} if replicas else {},
        "status": {key: value for key, value in now.items() if value != ""},
    }


def _selector(item: Object, doc: Doc) -> str:
    selector = doc["spec"].get("selector", {})
    if item.kind is REPLICATION_CONTROLLER:  # older than label selectors: a plain map
        return str(from_label_selector(LabelSelector(match_labels=selector)))
    return str(from_label_selector(from_builtins(selector, LabelSelector)))


def _at(doc: Doc, path: str) -> Any:
    value: Any = doc
    for step in path.split(".") if path else ():
        value = value.get(step) if isinstance(value, dict) else None
    return value if path else None


def sized(replicas: int, paths: ScalePaths | None = None) -> Doc:
    """The merge patch that gives an object another size."""
    patch: Any = replicas
    for step in reversed((paths or USUAL).spec.split(".")):
        patch = {step: patch}
    found: Doc = patch
    return found
