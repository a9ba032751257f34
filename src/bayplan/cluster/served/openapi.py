"""OpenAPI 3 made from the table of types: enough for kubectl to validate, to build patches and to explain fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bayplan.cluster.embedded.schema.table import TABLE, Field
from bayplan.cluster.kinds import Kind, is_built_in

Doc = dict[str, Any]

_SCALARS: dict[str, Doc] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bytes": {"type": "string", "format": "byte"},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "Duration": {"type": "string"},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "Any": {"type": "object"},
}
_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_METADATA = "meta.v1.ObjectMeta"
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")


def _component(type_name: str) -> str:
    group, version, name = type_name.split(".")
    package = f"apimachinery.pkg.apis.{group}" if group == "meta" else f"api.{group}"
    return f"io.k8s.{package}.{version}.{name}"


def _reference(type_name: str) -> Doc:
    return {"$ref": f"#/components/schemas/{_component(type_name)}"}


def _type(name: str) -> Doc:
    if name in TABLE.types:
        return _reference(name)
    if name[0] == "*":
        return _type(name[1:])
    if name[:2] == "[]":
        return {"type": "array", "items": _type(name[2:])}
    if name[:4] == "map ":
        return {"type": "object", "additionalProperties": _type(name[4:])}
    return _SCALARS[name]


def _property(field: Field) -> Doc:
    extensions = {
        "x-kubernetes-patch-strategy": field.patch,
        "x-kubernetes-patch-merge-key": field.merge_key,
        "x-kubernetes-list-type": field.list,
        "x-kubernetes-list-map-keys": [*field.list_keys],
        "x-kubernetes-map-type": field.map,
    }
    given = {name: value for name, value in extensions.items() if value}
    schema = _type(field.type)
    return {"allOf": [schema], **given} if "$ref" in schema and given else {**schema, **given}


def _schemas(roots: Iterable[str]) -> Doc:
    """The components of some types and of all they are made of."""
    found: Doc = {}
    waiting = [*roots]
    while waiting:
        type_name = waiting.pop()
        if _component(type_name) in found:
            continue
        fields = TABLE.types[type_name]
        schema: Doc = {"type": "object", "properties": {field.name: _property(field) for field in fields}}
        if type_name in TABLE.atomic:
            schema["x-kubernetes-map-type"] = "atomic"
        found[_component(type_name)] = schema
        waiting += [inner for field in fields if (inner := _innermost(field.type)) in TABLE.types]
    return found


def _innermost(name: str) -> str:
    return name.removeprefix("*").removeprefix("[]").removeprefix("map ").removeprefix("[]").removeprefix("*")


def document(group: str, version: str, kinds: Iterable[Kind], own_schema: Callable[[Kind], Doc | None]) -> Doc:
    """The OpenAPI document of one group version. `own_schema` knows the kinds that the table does not have."""
    kinds = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    types = {kind: TABLE.kinds[kind.name] for kind in kinds if is_built_in(kind) and kind.name in TABLE.kinds}
    schemas = _schemas(types.values() if types else (_METADATA,))
    paths: Doc = {}
    for kind in kinds:
        identity = {"group": kind.group, "version": kind.version, "kind": kind.name}
        if kind in types:
            component = _component(types[kind])
        else:
            component = ".".join([*reversed(kind.group.split(".")), kind.version, kind.name])
            schemas[component] = _own(own_schema(kind) or {})
        schemas[component]["x-kubernetes-group-version-kind"] = [identity]
        paths |= _paths(kind, identity, component)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": TABLE.version},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _own(schema: Doc) -> Doc:
    """The schema of a custom kind, with what every object has."""
    heading = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _reference(_METADATA)}
    return {**schema, "properties": {**schema.get("properties", {}), **heading}}


def _paths(kind: Kind, identity: Doc, component: str) -> Doc:
    prefix = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    collection = f"{prefix}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{prefix}/{kind.plural}"
    body = {"application/json": {"schema": {"$ref": f"#/components/schemas/{component}"}}}

    def operation(action: str, content: Doc | None = None, *, write: bool = False) -> Doc:
        told: Doc = {
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": identity,
            "responses": {"200": {"description": "OK", "content": body}},
        }
        if content is not None:
            told["requestBody"] = {"content": content}
        if write:
            told["parameters"] = [
                {"name": name, "in": "query", "schema": {"type": "string"}} for name in _WRITE_PARAMETERS
            ]
        return told

    media = _PATCH_TYPES if is_built_in(kind) else _PATCH_TYPES[:-1]  # no strategic merge without Go's struct tags
    patches = {each: {"schema": {"type": "object"}} for each in media}
    return {
        collection: {"get": operation("list"), "post": operation("post", body, write=True)},
        f"{collection}/{{name}}": {
            "get": operation("get"),
            "put": operation("put", body, write=True),
            "patch": operation("patch", patches, write=True),
            "delete": operation("delete"),
        },
    }


def index(kinds: Iterable[Kind], changes: int) -> Doc:
    """/openapi/v3: where each group version's document is. The address changes with the kinds, for clients keep it."""
    versions = dict.fromkeys((kind.group, kind.version) for kind in kinds)
    names = [f"apis/{group}/{version}" if group else f"api/{version}" for group, version in versions]
    return {
        "paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={TABLE.version}-{changes}"} for name in names}
    }
