"""What a pod may take from its host: users, namespaces, kernel settings, and what its operating system knows of that.

Source of truth: kubernetes 1.36 pkg/apis/core/validation (validatePodSpecSecurityContext, validateHostUsers,
validateOS, validateLinux, validateWindows, validateWindowsHostProcessPod).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pods.security import (
    validate_app_armor_profile,
    validate_seccomp_profile,
    validate_windows_options,
)
from bayplan.cluster.embedded.admission.syntax import user_id

_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = re.compile(rf"^({_SYSCTL_SEGMENT}[\./])*{_SYSCTL_SEGMENT}$")
_SYSCTL_TEXT = f"must have at most 253 characters and match regex {_SYSCTL.pattern}"
_IPC_SYSCTLS = frozenset(
    (
        "kernel.sem",
        "kernel.shm",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.msg",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
    )
)
_CHOICES = (
    ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
    ("supplementalGroupsPolicy", ("Merge", "Strict")),
    ("seLinuxChangePolicy", ("Recursive",)),  # MountOption waits for the gate SELinuxMount
)
_PROFILES = (
    ("seccompProfile", validate_seccomp_profile),
    ("windowsOptions", validate_windows_options),
    ("appArmorProfile", validate_app_armor_profile),
)
_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_OPERATING_SYSTEMS = ("linux", "windows")
_LINUX_POD_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_LINUX_SPEC_FIELDS = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
_LINUX_CONTAINER_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def containers_of(spec: Doc, path: str) -> Iterator[tuple[Doc, str]]:
    """All containers with their paths, in the order in which upstream visits them."""
    for field in _CONTAINER_LISTS:
        for i, container in enumerate(spec.get(field) or ()):  # null where `containers` was left out
            yield container, f"{path}.{field}[{i}]"


def validate_host(spec: Doc, path: str, errors: Errors) -> None:
    """Everything in a pod spec that reaches beyond the pod."""
    context = spec.get("securityContext")
    if context:
        _validate_context(context, spec, f"{path}.securityContext", errors)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.invalid(f"{path}.securityContext.shareProcessNamespace", True, text)
    _validate_host_process(spec, path, errors)
    if spec.get("hostUsers") is False:
        _validate_user_namespace(spec, path, errors)
    if (system := spec.get("os")) is not None:
        _validate_os(system.get("name", ""), spec, path, errors)


def _validate_context(context: Doc, spec: Doc, path: str, errors: Errors) -> None:
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        if field in context:
            for fault in user_id(context[field]):
                errors.invalid(f"{path}.{field}", context[field], fault)
    for i, group in enumerate(context.get("supplementalGroups", ())):
        for fault in user_id(group):
            errors.invalid(f"{path}.supplementalGroups[{i}]", group, fault)
    _validate_sysctls(context.get("sysctls", ()), spec, f"{path}.sysctls", errors)
    for field, allowed in _CHOICES:
        if field in context and context[field] not in allowed:
            errors.not_supported(f"{path}.{field}", context[field], allowed)
    for field, rule in _PROFILES:
        if field in context:
            rule(context[field], f"{path}.{field}", errors)


def _validate_sysctls(sysctls: Sequence[Doc], spec: Doc, path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for i, sysctl in enumerate(sysctls):
        name, here = sysctl.get("name", ""), f"{path}[{i}].name"
        if not name:
            errors.required(here)
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            errors.invalid(here, name, _SYSCTL_TEXT)
        elif name in seen:
            errors.duplicate(here, name)
        seen.add(name)
        dotted = _normal_sysctl(name)
        if spec.get("hostNetwork") and dotted.startswith("net."):
            errors.invalid(here, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and (dotted in _IPC_SYSCTLS or dotted.startswith("fs.mqueue.")):
            errors.invalid(here, name, "may not be specified when 'hostIPC' is true")


def _normal_sysctl(name: str) -> str:
    """`net/ipv4/x` is `net.ipv4.x`: where a slash comes first the two change places."""
    slash, dot = name.find("/"), name.find(".")
    if slash != -1 and (dot == -1 or slash < dot):
        name = name.translate(str.maketrans("./", "/."))
    return name.partition("*")[0]


def _validate_user_namespace(spec: Doc, path: str, errors: Errors) -> None:
    for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field):
            errors.forbidden(f"{path}.{shown}", "when `hostUsers` is false")
    for container, here in containers_of(spec, path):
        if container.get("volumeDevices"):
            errors.forbidden(f"{here}.volumeDevices", "when `hostUsers` is false")


def _validate_os(name: str, spec: Doc, path: str, errors: Errors) -> None:
    if not name:
        errors.required(f"{path}.os.name")
    elif name not in _OPERATING_SYSTEMS:
        errors.not_supported(f"{path}.os", name, _OPERATING_SYSTEMS)
    elif name == "linux":
        _forbid(spec.get("securityContext"), ("windowsOptions",), f"{path}.securityContext", "linux", errors)
        for container, here in containers_of(spec, path):
            _forbid(container.get("securityContext"), ("windowsOptions",), f"{here}.securityContext", "linux", errors)
    else:
        _forbid(spec.get("securityContext"), _LINUX_POD_FIELDS, f"{path}.securityContext", "windows", errors)
        _forbid(spec, _LINUX_SPEC_FIELDS, path, "windows", errors)
        for container, here in containers_of(spec, path):
            context = container.get("securityContext")
            _forbid(context, _LINUX_CONTAINER_FIELDS, f"{here}.securityContext", "windows", errors)


def _forbid(owner: Doc | None, fields: Sequence[str], path: str, system: str, errors: Errors) -> None:
    subject = "windows options cannot" if system == "linux" else "cannot"
    for field in fields:
        if owner and field in owner:
            errors.forbidden(f"{path}.{field}", f"{subject} be set for a {system} pod")


def _host_process(owner: Doc) -> bool | None:
    options = (owner.get("securityContext") or {}).get("windowsOptions") or {}
    process: bool | None = options.get("hostProcess")
    return process


def _validate_host_process(spec: Doc, path: str, errors: Errors) -> None:
    of_pod = _host_process(spec)
    total = hosted = 0
    for container, here in containers_of(spec, path):
        own = _host_process(container)
        if own is not None and of_pod is not None and own != of_pod:
            text = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            errors.invalid(f"{here}.securityContext.windowsOptions.hostProcess", own, text)
        total += 1
        hosted += bool(of_pod if own is None else own)
    if not hosted:
        return
    if hosted != total:
        text = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        errors.invalid(path, "", text)
    if not spec.get("hostNetwork"):
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.invalid(f"{path}.hostNetwork", False, text)
