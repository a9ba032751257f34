"""A CustomResourceDefinition read: the kinds it defines, one a version, each with its schema, rules and columns."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import path_segment_name
from bayplan.cluster.embedded.custom.documents import clean_custom, read_custom
from bayplan.cluster.embedded.custom.schema import validate
from bayplan.cluster.embedded.schema.table import CUSTOM
from bayplan.cluster.kinds import Kind, ScalePaths


class CustomForm:
    """How documents of one version of a custom kind are read, and the rules they obey (see embedded.forms.Form)."""

    typed = False

    def __init__(
        self, kind: Kind, schema: Doc, strategy: Strategy | None = None, columns: tuple[Doc, ...] = ()
    ) -> None:
        self.kind = kind
        self.schema = schema
        self.columns = columns
        self.strategy = _strategy(kind, schema) if strategy is None else strategy
        self.type_name = f"{CUSTOM}{kind.name}"

    def read(self, body: bytes, content_type: str, validation: str) -> tuple[Doc, list[str]]:
        """See Form."""
        return read_custom(self.kind, self.schema, body, content_type, validation)

    def clean(self, document: Any) -> tuple[Doc, list[str]]:
        """See Form."""
        return clean_custom(self.kind, self.schema, document)


class Definition(msgspec.Struct, frozen=True):
    """A custom kind in all the versions that are served; the one that is stored comes first."""

    forms: tuple[CustomForm, ...]
    scale: ScalePaths | None = None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds it defines."""
        return tuple(form.kind for form in self.forms)


def read_definition(document: Doc) -> Definition:
    """What a definition that has been validated defines."""
    spec = document["spec"]
    versions = sorted((each for each in spec["versions"] if each["served"]), key=lambda each: not each["storage"])
    scale = next((_scale(each) for each in versions if _scale(each) is not None), None)
    return Definition(tuple(_form(spec, version) for version in versions), scale)


def _form(spec: Doc, version: Doc) -> CustomForm:
    names, below = spec["names"], version.get("subresources", {})
    kind = Kind(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        spec["scope"] == "Namespaced",
        tuple(names.get("shortNames", ())),
        tuple(name for name in ("status", "scale") if name in below),
    )
    schema = version.get("schema", {}).get("openAPIV3Schema", {})
    if spec.get("preserveUnknownFields"):
        schema = {**schema, "x-kubernetes-preserve-unknown-fields": True}
    return CustomForm(kind, schema, columns=tuple(version.get("additionalPrinterColumns", ())))


def _scale(version: Doc) -> ScalePaths | None:
    scale = version.get("subresources", {}).get("scale")
    if scale is None:
        return None
    paths = (scale.get(name, "") for name in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath"))
    return ScalePaths(*(path.removeprefix(".") for path in paths))


def _strategy(kind: Kind, schema: Doc) -> Strategy:
    """The rules of a custom kind: its schema's, and that status has a door of its own where it has one."""
    status_apart = "status" in kind.subresources

    def prepare(doc: Doc) -> None:
        if status_apart:
            doc.pop("status", None)

    def prepare_update(new: Doc, old: Doc) -> None:
        if status_apart:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        elif new.get("status") != old.get("status"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def prepare_status(new: Doc, old: Doc) -> None:
        status = new.get("status")
        kept = {key: value for key, value in old.items() if key not in ("status", "metadata")}
        metadata = {
            **old["metadata"],
            **{key: new["metadata"][key] for key in _STATUS_METADATA if key in new["metadata"]},
        }
        new.clear()
        new |= {**kept, "metadata": metadata}
        if status is not None:
            new["status"] = status

    def rule(doc: Doc, errors: Errors) -> None:
        validate({key: value for key, value in doc.items() if key != "metadata"}, _without_metadata(schema), errors)

    return Strategy(
        kind=kind,
        name_rule=path_segment_name,
        generation=True,
        prepare=prepare,
        validate=rule,
        prepare_update=prepare_update,
        validate_update=lambda new, _old, errors: rule(new, errors),
        prepare_status=prepare_status,
        validate_status=lambda new, _old, errors: rule(new, errors),
        needs_version=True,
    )


_STATUS_METADATA = ("resourceVersion", "managedFields", "uid", "name", "namespace")
"""What an update of the status says of the object's identity: it is checked, not taken over."""


def _without_metadata(schema: Doc) -> Doc:
    """Metadata is validated as every object's is."""
    properties = {key: value for key, value in schema.get("properties", {}).items() if key != "metadata"}
    return {
        **schema,
        "properties": properties,
        "required": [key for key in schema.get("required", ()) if key != "metadata"],
    }
