"""Annotations of a pod that the API server reads: mirror pods, deletion cost, the old seccomp and AppArmor profiles.

Source of truth: kubernetes 1.36 pkg/apis/core/validation. Not here: upstream copies an AppArmor annotation into the
container's field and reads tolerations from an annotation of 2016; nobody writes either any more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bayplan.cluster.embedded.admission.fields import Doc, Errors, quoted
from bayplan.cluster.embedded.admission.pods.host import containers_of
from bayplan.cluster.embedded.admission.pods.paths import validate_descending_path

MIRROR = "kubernetes.io/config.mirror"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"

_COST = re.compile("-[0-9]+|0|[1-9][0-9]*")
_PROFILE_NAMES = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}
_INIT_CONTAINERS = tuple(
    f"pod.{stage}.kubernetes.io/{name}"
    for stage in ("beta", "alpha")
    for name in ("init-containers", "init-container-statuses")
)


def drop_init_container_annotations(meta: Doc) -> None:
    """Remove the annotations that held init containers before they had a field."""
    if annotations := meta.get("annotations"):
        for key in _INIT_CONTAINERS:
            annotations.pop(key, None)
        if not annotations:
            del meta["annotations"]


def validate_pod_annotations(annotations: Mapping[str, str], spec: Doc, path: str, errors: Errors) -> None:
    """The values of the annotations that mean something. `path` is that of the annotations."""
    if MIRROR in annotations and not spec.get("nodeName"):
        text = "must set spec.nodeName if mirror pod annotation is set"
        errors.invalid(f"{path}[{MIRROR}]", annotations[MIRROR], text)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not (_COST.fullmatch(cost) and -(2**31) <= int(cost) < 2**31):
        errors.invalid(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer")
    for key, value in annotations.items():
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            _validate_seccomp(value, f"{path}.{key}", errors)
        elif key.startswith(APP_ARMOR):
            _validate_app_armor(key, value, spec, f"{path}[{key}]", errors)


def _validate_seccomp(value: str, path: str, errors: Errors) -> None:
    if value.startswith("localhost/"):
        validate_descending_path(value.removeprefix("localhost/"), path, errors)
    elif value not in ("runtime/default", "docker/default", "unconfined"):
        errors.invalid(path, value, "must be a valid seccomp profile")


def _validate_app_armor(key: str, value: str, spec: Doc, path: str, errors: Errors) -> None:
    name = key.removeprefix(APP_ARMOR)
    if all(container.get("name") != name for container, _ in containers_of(spec, "")):
        errors.invalid(path, name, "container not found")
    if value not in ("", "runtime/default", "unconfined") and not value.startswith("localhost/"):
        errors.invalid(path, value, f"invalid AppArmor profile name: {quoted(value)}")


def validate_profiles_agree(annotations: Mapping[str, str], spec: Doc, path: str, errors: Errors) -> None:
    """Where a profile stands in an annotation and in a field, both must say the same. `path` is the spec's."""
    if not annotations:
        return
    context = spec.get("securityContext") or {}
    seccomp, app_armor = context.get("seccompProfile"), context.get("appArmorProfile")
    _validate_agrees(annotations.get(SECCOMP_POD), seccomp, f"{path}.securityContext", "seccomp", errors)
    windows = (spec.get("os") or {}).get("name") == "windows"
    for container, here in containers_of(spec, path):
        own, name = container.get("securityContext") or {}, container.get("name", "")
        here = f"{here}.securityContext"
        _validate_agrees(annotations.get(SECCOMP_CONTAINER + name), own.get("seccompProfile"), here, "seccomp", errors)
        if not windows:
            profile = own.get("appArmorProfile", app_armor)
            _validate_agrees(annotations.get(APP_ARMOR + name), profile, here, "apparmor", errors)


def _validate_agrees(annotation: str | None, profile: Doc | None, path: str, sort: str, errors: Errors) -> None:
    if annotation is None or profile is None:
        return
    path = f"{path}.{'seccompProfile' if sort == 'seccomp' else 'appArmorProfile'}"
    kind = profile.get("type", "")
    if kind == "Localhost":
        if not annotation.startswith("localhost/"):
            errors.forbidden(f"{path}.type", f"{sort} type in annotation and field must match")
        elif annotation.removeprefix("localhost/") != profile.get("localhostProfile"):
            errors.forbidden(f"{path}.localhostProfile", f"{sort} profile in annotation and field must match")
    elif annotation not in _PROFILE_NAMES.get(kind, (annotation,)):
        errors.forbidden(f"{path}.type", f"{sort} type in annotation and field must match")


def validate_annotation_update(new: Mapping[str, str], old: Mapping[str, str], path: str, errors: Errors) -> None:
    """Annotations that may not change on a pod."""
    for key, value in old.items():
        if new.get(key) != value:
            if key.startswith(APP_ARMOR):
                errors.forbidden(f"{path}[{key}]", "may not remove or update AppArmor annotations")
            elif key == MIRROR:
                errors.forbidden(f"{path}[{key}]", "may not remove or update mirror pod annotation")
    for key in new:
        if key not in old:
            if key.startswith(APP_ARMOR):
                errors.forbidden(f"{path}[{key}]", "may not add AppArmor annotations")
            elif key == MIRROR:
                errors.forbidden(f"{path}[{key}]", "may not add mirror pod annotation")
