"""Environment variables: their names, and the places their values come from.

Source of truth: pkg/apis/core/validation, ValidateEnv, ValidateEnvFrom, validateFileKeyRefVolumes. The checks of a
field reference and of a resource reference serve downward-API volumes too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pods.paths import validate_no_backsteps
from bayplan.cluster.embedded.admission.syntax import (
    config_map_key,
    dns1123_label,
    dns1123_subdomain,
    qualified_name,
    relaxed_env_var_name,
    subdomain_name,
)
from bayplan.model.quantity import parse

ENV_FIELD_PATHS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_KNOWN_FIELD_PATHS = frozenset(
    {
        *ENV_FIELD_PATHS,
        "metadata.annotations",
        "metadata.labels",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
    }
)
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGEPAGES = ("limits.hugepages-", "requests.hugepages-")
_BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_BYTE_DIVISOR_TEXT = f"only divisor's values {', '.join(_BYTE_DIVISORS)} are supported with the "
_DIVISORS = {
    "cpu": (("1m", "1"), "only divisor's values 1m and 1 are supported with the cpu resource"),
    "memory": (_BYTE_DIVISORS, f"{_BYTE_DIVISOR_TEXT}memory resource"),
    "ephemeral-storage": (_BYTE_DIVISORS, f"{_BYTE_DIVISOR_TEXT}local ephemeral storage resource"),
    "hugepages": (_BYTE_DIVISORS, f"{_BYTE_DIVISOR_TEXT}hugepages resource"),
}


def validate_env(variables: Sequence[Doc], path: str, errors: Errors) -> None:
    """The `env` of one container. Names may repeat: the last one counts."""
    for i, variable in enumerate(variables):
        name = variable.get("name", "")
        if not name:
            errors.required(f"{path}[{i}].name")
        else:
            for fault in relaxed_env_var_name(name):
                errors.invalid(f"{path}[{i}].name", name, fault)
        source = variable.get("valueFrom")
        if source is not None:
            _validate_source(source, f"{path}[{i}].valueFrom", errors, has_value="value" in variable)


def validate_env_from(sources: Sequence[Doc], path: str, errors: Errors) -> None:
    """The `envFrom` of one container: whole config maps and secrets."""
    for i, source in enumerate(sources):
        if prefix := source.get("prefix", ""):
            for fault in relaxed_env_var_name(prefix):
                errors.invalid(f"{path}[{i}].prefix", prefix, fault)
        given = [kind for kind in ("configMapRef", "secretRef") if kind in source]
        for kind in given:
            name = source[kind].get("name", "")
            if not name:
                errors.required(f"{path}[{i}].{kind}.name")
                continue
            for fault in subdomain_name(name, True):
                errors.invalid(f"{path}[{i}].{kind}.name", name, fault)
        if not given:
            errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            errors.invalid(path, "", "may not have more than one field specified at a time")


def _validate_source(source: Doc, path: str, errors: Errors, *, has_value: bool) -> None:
    given = [kind for kind in _SOURCES if kind in source]
    for kind in given:
        _SOURCES[kind](source[kind], f"{path}.{kind}", errors)
    if not given:
        errors.invalid(
            path,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        )
    elif has_value:
        errors.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        errors.invalid(path, "", "may not have more than one field specified at a time")


def validate_field_ref(ref: Doc, path: str, errors: Errors, allowed: Sequence[str]) -> None:
    """A field of the pod; `allowed` are the paths that may stand here, besides one label or annotation."""
    version, field = ref.get("apiVersion", ""), ref.get("fieldPath", "")
    if not version:
        errors.required(f"{path}.apiVersion")
        return
    if not field:
        errors.required(f"{path}.fieldPath")
        return
    parent, key = _split_subscript(field)
    if fault := _conversion_fault(version, field, parent):
        errors.invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {fault}")
    elif key is not None:
        key = key.lower() if parent == "metadata.annotations" else key
        for text in qualified_name(key):
            errors.invalid(path, key, text)
    else:
        field = "spec.nodeName" if field == "spec.host" else field
        if field not in allowed:
            errors.not_supported(f"{path}.fieldPath", field, sorted(allowed))


def _split_subscript(field: str) -> tuple[str, str | None]:
    """`metadata.labels['a']` is `metadata.labels` and `a`; a plain path has no key."""
    parent, bracket, key = field.removesuffix("']").partition("['")
    return (parent, key) if field.endswith("']") and bracket and parent else (field, None)


def _conversion_fault(version: str, field: str, parent: str) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if parent != field:
        subscripted = parent in ("metadata.annotations", "metadata.labels")
        return "" if subscripted else f"field label does not support subscript: {field}"
    return "" if field in _KNOWN_FIELD_PATHS or field == "spec.host" else f"field label not supported: {field}"


def validate_resource_field_ref(ref: Doc, path: str, errors: Errors, *, volume: bool = False) -> None:
    """A request or limit of a container. In a volume the container must be named."""
    resource = ref.get("resource", "")
    if volume and not ref.get("containerName"):
        errors.required(f"{path}.containerName")
    elif not resource:
        errors.required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGEPAGES):
        errors.not_supported(f"{path}.resource", resource, _RESOURCES)
    divisor = ref.get("divisor", "0")
    family = "hugepages" if resource.startswith(_HUGEPAGES) else resource.partition(".")[2]
    if parse(divisor) and (family == "hugepages" or resource in _RESOURCES):
        allowed, text = _DIVISORS[family]
        if divisor not in allowed:
            errors.invalid(f"{path}.divisor", resource, text)


def _validate_env_field_ref(ref: Doc, path: str, errors: Errors) -> None:
    validate_field_ref(ref, path, errors, ENV_FIELD_PATHS)


def _validate_key_ref(ref: Doc, path: str, errors: Errors) -> None:
    name, key = ref.get("name", ""), ref.get("key", "")
    for fault in dns1123_subdomain(name):
        errors.invalid(f"{path}.name", name, fault)
    _validate_required(key, f"{path}.key", errors, config_map_key)


def _validate_file_ref(ref: Doc, path: str, errors: Errors) -> None:
    _validate_required(ref.get("key", ""), f"{path}.key", errors, relaxed_env_var_name)
    _validate_required(ref.get("volumeName", ""), f"{path}.volumeName", errors, dns1123_label)
    if not (file := ref.get("path", "")):
        errors.required(f"{path}.path")
    validate_no_backsteps(file, f"{path}.path", errors)


def _validate_required(value: str, path: str, errors: Errors, rule: Callable[[str], Iterable[str]]) -> None:
    if not value:
        errors.required(path)
        return
    for fault in rule(value):
        errors.invalid(path, value, fault)


_SOURCES: dict[str, Callable[[Doc, str, Errors], None]] = {
    "fieldRef": _validate_env_field_ref,
    "resourceFieldRef": validate_resource_field_ref,
    "configMapKeyRef": _validate_key_ref,
    "secretKeyRef": _validate_key_ref,
    "fileKeyRef": _validate_file_ref,
}


def validate_file_volumes(variables: Sequence[Doc], volumes: Mapping[str, Doc], path: str, errors: Errors) -> None:
    """A value from a file comes from an emptyDir. `volumes` are all of the pod's, faulty ones too."""
    for i, variable in enumerate(variables):
        ref = variable.get("valueFrom", {}).get("fileKeyRef")
        if ref is None:
            continue
        name = ref.get("volumeName", "")
        field = f"{path}[{i}].valueFrom.fileKeyRef.volumeName"
        if name not in volumes:
            errors.not_found(field, name)
        elif "emptyDir" not in volumes[name]:
            errors.invalid(field, name, "referenced volume must be of type emptyDir")


def default_env(variables: Sequence[Doc]) -> None:
    """References completed: the version of the pod, and that a file must be there."""
    for variable in variables:
        source = variable.get("valueFrom")
        if not source:
            continue
        if "fieldRef" in source:
            source["fieldRef"].setdefault("apiVersion", "v1")
        if "fileKeyRef" in source:
            source["fileKeyRef"].setdefault("optional", False)
