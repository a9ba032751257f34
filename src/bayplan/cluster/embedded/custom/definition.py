"""A CustomResourceDefinition read: the kinds it defines, one a version, each with its schema, rules and columns."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.custom.documents import clean_custom, read_custom
from bayplan.cluster.embedded.custom.shapes import shape_from
from bayplan.cluster.embedded.custom.strategy import strategy_for
from bayplan.cluster.embedded.patch.shapes import ShapedName
from bayplan.cluster.embedded.patch.typed import faults
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
        self.strategy = strategy_for(kind, schema) if strategy is None else strategy
        self.type_name = ShapedName(f"{CUSTOM}{kind.name}", shape_from(schema))

    def read(self, body: bytes, content_type: str, validation: str) -> tuple[Doc, list[str]]:
        """See Form."""
        return read_custom(self.kind, self.schema, body, content_type, validation)

    def clean(self, document: Any) -> tuple[Doc, list[str]]:
        """See Form."""
        return clean_custom(self.kind, self.schema, document)

    def fits(self, document: Doc) -> bool:
        """See Form. Types are judged by validation, later."""
        return not faults(document, self.type_name.shape)


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
