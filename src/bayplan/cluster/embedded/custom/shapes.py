"""A structural schema as server-side apply sees it: which parts are owned each for itself, which as one piece.

Source of truth: kube-openapi pkg/schemaconv. Lists are atomic unless `x-kubernetes-list-type` says otherwise, objects
are not unless `x-kubernetes-map-type` does; where a schema says nothing, a value has the shape that it shows.
"""

from __future__ import annotations

from typing import Any

from bayplan.cluster.embedded.custom.schema import INT_OR_STRING, PRESERVE
from bayplan.cluster.embedded.patch.shapes import ANYTHING, List, Map, Scalar, Shape, shape_of

Doc = dict[str, Any]
_SCALARS = {"string": "string", "boolean": "boolean", "integer": "numeric", "number": "numeric"}


def shape_from(schema: Doc) -> Map:
    """The shape of the objects of a kind."""
    heading = {"apiVersion": Scalar("string"), "kind": Scalar("string"), "metadata": shape_of("meta.v1.ObjectMeta")}
    shape = _shape({**schema, "type": "object"})
    assert isinstance(shape, Map)
    return Map({**shape.fields, **heading}, shape.element, atomic=False)


def _shape(schema: Doc) -> Shape:
    type_ = schema.get("type", "")
    if type_ in _SCALARS and not schema.get(INT_OR_STRING):
        return Scalar(_SCALARS[type_])
    if type_ == "array":
        return _list(schema)
    if type_ != "object":
        return ANYTHING
    more = schema.get("additionalProperties")
    element = _shape(more) if isinstance(more, dict) else ANYTHING if more or schema.get(PRESERVE) else None
    fields = {name: _shape(each) for name, each in schema.get("properties", {}).items()}
    if not fields and element is None:
        element = ANYTHING  # an object of no declared content: what is in it is dropped elsewhere
    return Map(fields, element, atomic=schema.get("x-kubernetes-map-type") == "atomic")


def _list(schema: Doc) -> List:
    items = schema.get("items", {})
    element = _shape(items) if isinstance(items, dict) else ANYTHING
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return List(element, atomic=False)
        case "map":
            keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
            properties = items.get("properties", {})
            defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}
            return List(element, atomic=False, keys=keys, key_defaults=defaults)
        case _:
            return List(element, atomic=True)
