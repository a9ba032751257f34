"""Volume mounts and devices: each names a volume of the pod, and no two share a place in the container.

Source of truth: pkg/apis/core/validation, ValidateVolumeMounts and ValidateVolumeDevices. `volumes` are the pod's good
volumes by name: a mount of a faulty one is reported as not found as well. Faults of a mount's sub path and propagation
are reported on the list, without the index: upstream's habit.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pods.paths import has_backsteps, validate_descending_path

PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def validate_mounts(container: Doc, volumes: Mapping[str, Doc], path: str, errors: Errors) -> None:
    """The `volumeMounts` and `volumeDevices` of one container; `path` is the container's."""
    mounts = container.get("volumeMounts", ())
    devices = container.get("volumeDevices", ())
    if not mounts and not devices:
        return
    mounted = {mount.get("name", ""): mount.get("mountPath", "") for mount in mounts}
    attached = {device.get("name", ""): device.get("devicePath", "") for device in devices}
    privileged = container.get("securityContext", {}).get("privileged", False)
    paths: set[str] = set()
    for i, mount in enumerate(mounts):
        _validate_place(mount, f"{path}.volumeMounts[{i}]", errors, volumes=volumes, paths=paths, attached=attached)
        _validate_subpath(mount, f"{path}.volumeMounts", i, errors)
        _validate_propagation(mount, f"{path}.volumeMounts", errors, privileged=privileged)
        _validate_recursive_read_only(mount, f"{path}.volumeMounts.recursiveReadOnly", errors)
    names: set[str] = set()
    paths = set()
    for i, device in enumerate(devices):
        item = f"{path}.volumeDevices[{i}]"
        _validate_device_name(device.get("name", ""), f"{item}.name", errors, volumes, names, mounted)
        _validate_device_path(device.get("devicePath", ""), f"{item}.devicePath", errors, paths, mounted)


def _validate_place(
    mount: Doc, path: str, errors: Errors, *, volumes: Mapping[str, Doc], paths: set[str], attached: Mapping[str, str]
) -> None:
    name = mount.get("name", "")
    place = mount.get("mountPath", "")
    if not name:
        errors.required(f"{path}.name")
    if name not in volumes:
        errors.not_found(f"{path}.name", name)
    if not place:
        errors.required(f"{path}.mountPath")
    if place in paths:
        errors.invalid(f"{path}.mountPath", place, "must be unique")
    paths.add(place)
    if name in attached:
        errors.invalid(f"{path}.name", name, "must not already exist in volumeDevices")
    if place in attached.values():
        errors.invalid(f"{path}.mountPath", place, "must not already exist as a path in volumeDevices")


def _validate_subpath(mount: Doc, path: str, index: int, errors: Errors) -> None:
    subpath = mount.get("subPath", "")
    expression = mount.get("subPathExpr", "")
    validate_descending_path(subpath, f"{path}.subPath", errors)
    if expression and subpath:
        errors.invalid(f"{path}[{index}].subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
    validate_descending_path(expression, f"{path}.subPathExpr", errors)


def _validate_propagation(mount: Doc, path: str, errors: Errors, *, privileged: bool) -> None:
    mode = mount.get("mountPropagation")
    if mode is None:
        return
    if mode not in PROPAGATIONS:
        errors.not_supported(f"{path}.mountPropagation", mode, PROPAGATIONS)
    if mode == "Bidirectional" and not privileged:
        errors.forbidden(
            f"{path}.mountPropagation", "Bidirectional mount propagation is available only to privileged containers"
        )


def _validate_recursive_read_only(mount: Doc, path: str, errors: Errors) -> None:
    mode = mount.get("recursiveReadOnly")
    if mode is None or mode == "Disabled":
        return
    if mode not in _RECURSIVE_READ_ONLY:
        errors.not_supported(path, mode, _RECURSIVE_READ_ONLY)
        return
    if not mount.get("readOnly"):
        errors.forbidden(path, "may only be specified when readOnly is true")
    if mount.get("mountPropagation", "None") != "None":
        errors.forbidden(path, "may only be specified when mountPropagation is None or not specified")


def _validate_device_name(
    name: str, path: str, errors: Errors, volumes: Mapping[str, Doc], names: set[str], mounted: Mapping[str, str]
) -> None:
    if not name:
        errors.required(path)
    elif name in names:
        errors.invalid(path, name, "must be unique")
    names.add(name)
    volume = volumes.get(name)
    if volume is None:
        errors.not_found(path, name)
    elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
        errors.invalid(
            path, name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        )
    if name in mounted:
        errors.invalid(path, name, "must not already exist in volumeMounts")


def _validate_device_path(place: str, path: str, errors: Errors, paths: set[str], mounted: Mapping[str, str]) -> None:
    if not place:
        errors.required(path)
    if place in paths:
        errors.invalid(path, place, "must be unique")
    if has_backsteps(place):
        errors.invalid(path, place, "can not contain backsteps ('..')")
    else:
        paths.add(place)
    if place in mounted.values():
        errors.invalid(path, place, "must not already exist as a path in volumeMounts")
