"""The rules for CustomResourceDefinitions themselves.

Checked are names, group, scope, versions, and that schemas are structural in what matters to pruning and defaults: a
type everywhere, items for lists, no bare additionalProperties at the root. Expressions in CEL, and whether defaults
obey their own schema, are not looked at. Source of truth: apiextensions validation.go and schema/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import dns1035_label, dns1123_subdomain, subdomain_name
from bayplan.cluster.embedded.custom.definition import CustomForm
from bayplan.cluster.embedded.custom.schema import INT_OR_STRING, PRESERVE, validate
from bayplan.cluster.kinds import CUSTOM_RESOURCE_DEFINITION

_ANY = {"type": "object", PRESERVE: True}
_TEXT, _FLAG, _LIST = {"type": "string"}, {"type": "boolean"}, {"type": "array", "items": {"type": "string"}}


def _object(required: str = "", **properties: Doc) -> Doc:
    return {"type": "object", "properties": properties, "required": required.split()}


_NAMES = _object("", plural=_TEXT, singular=_TEXT, shortNames=_LIST, kind=_TEXT, listKind=_TEXT, categories=_LIST)
_COLUMN = _object(
    "", name=_TEXT, type=_TEXT, format=_TEXT, description=_TEXT, jsonPath=_TEXT, priority={"type": "integer"}
)
_SCALE = _object("", specReplicasPath=_TEXT, statusReplicasPath=_TEXT, labelSelectorPath=_TEXT)
_VERSION = _object(
    "",
    name=_TEXT,
    served=_FLAG,
    storage=_FLAG,
    deprecated=_FLAG,
    deprecationWarning=_TEXT,
    schema=_object("", openAPIV3Schema=_ANY),
    subresources=_object("", status=_ANY, scale=_SCALE),
    additionalPrinterColumns={"type": "array", "items": _COLUMN},
    selectableFields={"type": "array", "items": _object("", jsonPath=_TEXT)},
)
SCHEMA = _object(
    "",
    spec=_object(
        "",
        group=_TEXT,
        names=_NAMES,
        scope=_TEXT,
        versions={"type": "array", "items": _VERSION},
        conversion=_object("", strategy=_TEXT, webhook=_ANY),
        preserveUnknownFields=_FLAG,
    ),
    status=_object(
        "",
        conditions={"type": "array", "nullable": True, "items": _ANY},
        acceptedNames=_NAMES,
        storedVersions={**_LIST, "nullable": True},
    ),
)
"""The shape of a definition: written by hand, for the table of types does not have it."""


def _default(doc: Doc) -> None:
    spec = doc.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    for version in spec.setdefault("versions", []):
        version.setdefault("served", False)
        version.setdefault("storage", False)


def _prepare(doc: Doc) -> None:
    stored = [version["name"] for version in doc["spec"]["versions"] if version["storage"] and version.get("name")]
    doc["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}


def _prepare_update(new: Doc, old: Doc) -> None:
    status = {**old.get("status", {})}
    stored = [*(status.get("storedVersions") or ())]
    added = [each.get("name") for each in new["spec"]["versions"] if each["storage"] and each.get("name") not in stored]
    new["status"] = {**status, "storedVersions": [*stored, *added]}


def _prepare_status(new: Doc, old: Doc) -> None:
    new["spec"] = old["spec"]


def _validate(doc: Doc, errors: Errors) -> None:
    validate({"spec": doc["spec"]}, SCHEMA, errors)
    if errors:
        return
    spec = doc["spec"]
    plural, group, name = spec["names"].get("plural", ""), spec.get("group", ""), doc["metadata"].get("name", "")
    if name != f"{plural}.{group}":
        errors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    _validate_group(group, errors)
    if not spec.get("scope"):
        errors.required("spec.scope")
    elif spec["scope"] not in ("Cluster", "Namespaced"):
        errors.not_supported("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
    for index, version in enumerate(spec["versions"]):
        _validate_version(version, index, spec["versions"], errors)
    if sum(version["storage"] for version in spec["versions"]) != 1:
        errors.invalid("spec.versions", spec["versions"], "must have exactly one version marked as storage version")
        if not doc["status"]["storedVersions"]:
            errors.invalid("status.storedVersions", None, "must have at least one stored version")
    if len({version.get("name") for version in spec["versions"]}) < len(spec["versions"]):
        errors.invalid("spec.versions", spec["versions"], "must contain unique version names")
    _validate_names(spec["names"], errors)


def _validate_group(group: str, errors: Errors) -> None:
    if not group:
        errors.required("spec.group")
    elif faults := dns1123_subdomain(group):
        errors.invalid("spec.group", group, ",".join(faults))
    elif "." not in group:
        errors.invalid("spec.group", group, "should be a domain with at least one dot")


def _validate_names(names: Doc, errors: Errors) -> None:
    for field in ("plural", "singular", "kind", "listKind"):
        name, path = names.get(field, ""), f"spec.names.{field}"
        if not name:
            errors.required(path)
        elif faults := dns1035_label(name.lower()):
            text = ",".join(faults)
            errors.invalid(
                path, name, f"may have mixed case, but should otherwise match: {text}" if "ind" in field else text
            )
    for index, name in enumerate(names.get("shortNames", ())):
        if faults := dns1035_label(name):
            errors.invalid(f"spec.names.shortNames[{index}]", name, ",".join(faults))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        errors.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _validate_version(version: Doc, index: int, versions: list[Doc], errors: Errors) -> None:
    """What all versions have in common, upstream knows as one thing above them; it is told once, and by that name."""
    path = f"spec.versions[{index}]"
    if faults := dns1035_label(version.get("name", "")):
        errors.invalid(f"{path}.name", version.get("name", ""), ",".join(faults))
    schema = version.get("schema", {}).get("openAPIV3Schema")
    if schema is None:
        errors.required(f"{path}.schema.openAPIV3Schema", "schemas are required")
        return
    if not (shared := _shared("schema", versions)) or index == 0:
        found = Errors()
        where = "spec.validation" if shared else f"{path}.schema"
        _validate_structure(schema, f"{where}.openAPIV3Schema", _ROOT, found)
        errors += sorted(found, key=lambda cause: f"{cause.field}: {cause.message}")
    if not (shared := _shared("additionalPrinterColumns", versions)) or index == 0:
        where = "spec" if shared else path
        for at, column in enumerate(version.get("additionalPrinterColumns", ())):
            _validate_column(column, f"{where}.additionalPrinterColumns[{at}]", errors)


def _shared(field: str, versions: list[Doc]) -> bool:
    return all(version.get(field) == versions[0].get(field) for version in versions)


_TYPES = ("array", "boolean", "integer", "number", "object", "string")


_ROOT = "at the root"


def _validate_structure(schema: Doc, path: str, level: str, errors: Errors) -> None:
    _validate_type(schema, path, level, errors)
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        errors.required(f"{path}.items", "must be specified")
    if schema.get("additionalProperties") is not None:
        if level == _ROOT:
            errors.forbidden(f"{path}.additionalProperties", "must not be used at the root")
        elif schema.get("properties"):
            errors.forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.forbidden(f"{path}.uniqueItems", why)
    for each, where, words in _parts(schema, path, level):
        _validate_structure(each, where, words, errors)


def _validate_type(schema: Doc, path: str, level: str, errors: Errors) -> None:
    type_ = schema.get("type", "")
    if not type_ and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        errors.required(f"{path}.type", f"must not be empty {level}")
    elif type_ and level == _ROOT and type_ != "object":
        errors.invalid(f"{path}.type", type_, "must be object at the root")
    elif type_ and type_ not in _TYPES:
        errors.not_supported(f"{path}.type", type_, _TYPES)


def _parts(schema: Doc, path: str, level: str) -> Iterator[tuple[Doc, str, str]]:
    """The schemas below a schema, each with its path and what it is for. Metadata at the root is every object's."""
    of_fields = "for specified object fields"
    for key, each in schema.get("properties", {}).items():
        if not (level == _ROOT and key == "metadata"):
            yield each, f"{path}.properties[{key}]", of_fields
    for key, words in (("items", "for specified array items"), ("additionalProperties", of_fields)):
        if isinstance(schema.get(key), dict):
            yield schema[key], f"{path}.{key}", words


_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")


def _validate_column(column: Doc, path: str, errors: Errors) -> None:
    if not column.get("name"):
        errors.required(f"{path}.name")
    if not column.get("type"):
        errors.required(f"{path}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif column["type"] not in _COLUMN_TYPES:
        errors.invalid(f"{path}.type", column["type"], f"must be one of {','.join(_COLUMN_TYPES)}")
    if not column.get("jsonPath"):
        errors.required(f"{path}.JSONPath")


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    _validate(new, errors)
    if errors:
        return
    for field in ("group", "scope"):
        if new["spec"].get(field) != old["spec"].get(field):
            errors.invalid(f"spec.{field}", new["spec"].get(field), "field is immutable")
    for field in ("kind", "plural"):
        if new["spec"]["names"].get(field) != old["spec"]["names"].get(field):
            errors.invalid(f"spec.names.{field}", new["spec"]["names"].get(field), "field is immutable")
    names = {version["name"] for version in new["spec"]["versions"]}
    for index, stored in enumerate(new["status"]["storedVersions"]):
        if stored not in names:
            text = (
                f"missing from spec.versions; {stored} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {stored} and removes "
                f"{stored} from status.storedVersions"
            )
            errors.invalid(f"status.storedVersions[{index}]", stored, text)


DEFINITIONS = CustomForm(
    CUSTOM_RESOURCE_DEFINITION,
    SCHEMA,
    Strategy(
        kind=CUSTOM_RESOURCE_DEFINITION,
        name_rule=subdomain_name,
        generation=True,
        default=_default,
        prepare=_prepare,
        validate=_validate,
        prepare_update=_prepare_update,
        validate_update=_validate_update,
        prepare_status=_prepare_status,
        needs_version=True,
    ),
)
"""How CustomResourceDefinitions are read and judged."""
