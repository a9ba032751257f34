"""Definitions to play with."""

from __future__ import annotations

from typing import Any

Doc = dict[str, Any]

SPEC: Doc = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "port": {"x-kubernetes-int-or-string": True},
        "ratio": {"type": "number"},
        "note": {"type": "string", "nullable": True},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "nested": {"type": "object", "properties": {"on": {"type": "boolean", "default": True}}},
        "replicas": {"type": "integer"},
    },
}
STATUS: Doc = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "phase": {"type": "string"},
        "conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    },
}


def definition(**more: Any) -> Doc:
    """A definition of Widgets, `widgets.example.com`."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        **more.pop("version", {}),
    }
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], **more.pop("names", {})}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version], **more}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{spec['group']}"},
        "spec": spec,
    }


def widget(name: str = "a", **spec: Any) -> Doc:
    """A Widget."""
    content = {"size": 3, **spec}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": content}
