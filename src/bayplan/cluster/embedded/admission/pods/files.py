"""Volumes made of files: keys of ConfigMaps and Secrets, fields of the pod, and projections of several of them.

Source of truth: kubernetes 1.36 pkg/apis/core/validation. Cluster trust bundles and pod certificates are behind gates
that are off: `defaults` drops them before they are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pods.env import validate_field_ref, validate_resource_field_ref
from bayplan.cluster.embedded.admission.pods.paths import validate_descending_path

_DOWNWARD_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_TOKEN_LEAST, _TOKEN_MOST = 600, 2**32


def _validate_file_path(value: str, path: str, errors: Errors) -> None:
    # Names that start with two dots are the kubelet's own.
    if not value:
        errors.required(path)
    validate_descending_path(value, path, errors)
    if value.startswith("..") and not value.startswith("../"):
        errors.invalid(path, value, "must not start with '..'")


def validate_mode(owner: Doc, field: str, path: str, errors: Errors) -> None:
    """The permission bits in `owner[field]`, if given."""
    mode = owner.get(field)
    if mode is not None and not 0 <= mode <= 0o777:
        errors.invalid(f"{path}.{field}", mode, "must be a number between 0 and 0777 (octal), both inclusive")


def _validate_items(items: Sequence[Doc], path: str, errors: Errors) -> None:
    for i, item in enumerate(items):
        here = f"{path}[{i}]"
        if not item.get("key"):
            errors.required(f"{here}.key")
        _validate_file_path(item.get("path", ""), f"{here}.path", errors)
        validate_mode(item, "mode", here, errors)


def validate_secret(source: Doc, path: str, errors: Errors) -> None:
    """Keys of a Secret as files."""
    _validate_keys(source, "secretName", path, errors)


def validate_config_map(source: Doc, path: str, errors: Errors) -> None:
    """Keys of a ConfigMap as files."""
    _validate_keys(source, "name", path, errors)


def _validate_keys(source: Doc, name: str, path: str, errors: Errors) -> None:
    if not source.get(name):
        errors.required(f"{path}.{name}")
    validate_mode(source, "defaultMode", path, errors)
    _validate_items(source.get("items", ()), f"{path}.items", errors)


def validate_downward_api(source: Doc, path: str, errors: Errors) -> None:
    """Fields of the pod as files. Items are reported on the volume, without their index."""
    validate_mode(source, "defaultMode", path, errors)
    for item in source.get("items", ()):
        _validate_downward_file(item, path, errors)


def _validate_downward_file(item: Doc, path: str, errors: Errors) -> None:
    _validate_file_path(item.get("path", ""), f"{path}.path", errors)
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        validate_field_ref(field, f"{path}.fieldRef", errors, allowed=_DOWNWARD_FIELDS)
        if resource is not None:
            errors.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif resource is not None:
        validate_resource_field_ref(resource, f"{path}.resourceFieldRef", errors, volume=True)
    else:
        errors.required(path, "one of fieldRef and resourceFieldRef is required")
    validate_mode(item, "mode", path, errors)


def validate_projected(source: Doc, path: str, errors: Errors) -> None:
    """Several sources in one volume; no two may write the same file."""
    validate_mode(source, "defaultMode", path, errors)
    taken: set[str] = set()
    for i, projection in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{i}]"
        for sort in ("secret", "configMap"):
            if (keys := projection.get(sort)) is not None:
                _validate_projected_keys(keys, f"{here}.{sort}", path, taken, errors)
        if (downward := projection.get("downwardAPI")) is not None:
            for item in downward.get("items", ()):
                _validate_downward_file(item, f"{here}.downwardAPI", errors)
                _claim(item, item.get("path"), path, taken, errors)
        if (token := projection.get("serviceAccountToken")) is not None:
            _validate_token(token, f"{here}.serviceAccountToken", path, errors)
        if len(projection) > 1:
            errors.forbidden(here, "may not specify more than 1 volume type per source")


def _validate_projected_keys(keys: Doc, path: str, volume: str, taken: set[str], errors: Errors) -> None:
    name = keys.get("name", "")
    if not name:
        errors.required(f"{path}.name")
    items = keys.get("items", ())
    _validate_items(items, f"{path}.items", errors)
    for item in items:
        _claim(item, name, volume, taken, errors)


def _claim(item: Doc, shown: str | None, volume: str, taken: set[str], errors: Errors) -> None:
    if target := item.get("path"):
        if target in taken:
            errors.invalid(volume, shown, "conflicting duplicate paths")
        taken.add(target)


def _validate_token(token: Doc, path: str, volume: str, errors: Errors) -> None:
    seconds = token.get("expirationSeconds", 0)
    if seconds < _TOKEN_LEAST:
        errors.invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > _TOKEN_MOST:
        errors.invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    _validate_file_path(token.get("path", ""), f"{volume}.path", errors)
