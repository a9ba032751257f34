"""Security contexts of containers, and the profiles that a pod's own context shares with them.

Source of truth: pkg/apis/core/validation, ValidateSecurityContext and what it calls. Privileged containers are allowed,
as with `--allow-privileged=true`.
"""

from __future__ import annotations

import re

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pods.paths import validate_descending_path
from bayplan.cluster.embedded.admission.syntax import dns1123_subdomain, size, user_id

_PROC_MOUNTS = ("Default", "Unmasked")
_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PROFILE = 4095
_LARGEST_SPEC = 64 * 1024


def validate_security_context(context: Doc, path: str, errors: Errors, *, host_users: bool) -> None:
    """The security context of one container."""
    for name in ("runAsUser", "runAsGroup"):
        number = context.get(name)
        for fault in user_id(number) if number is not None else ():
            errors.invalid(f"{path}.{name}", number, fault)
    if "procMount" in context:
        _validate_proc_mount(context["procMount"], f"{path}.procMount", errors, host_users=host_users)
    validate_seccomp_profile(context.get("seccompProfile"), f"{path}.seccompProfile", errors)
    if context.get("allowPrivilegeEscalation") is False:
        _validate_no_escalation(context, path, errors)
    validate_windows_options(context.get("windowsOptions"), f"{path}.windowsOptions", errors)
    validate_app_armor_profile(context.get("appArmorProfile"), f"{path}.appArmorProfile", errors)


def _validate_proc_mount(mount: str, path: str, errors: Errors, *, host_users: bool) -> None:
    if mount not in _PROC_MOUNTS:
        errors.not_supported(path, mount, _PROC_MOUNTS)
    if host_users and mount == "Unmasked":
        errors.invalid(path, mount, "`hostUsers` must be false to use `Unmasked`")


def _validate_no_escalation(context: Doc, path: str, errors: Errors) -> None:
    if context.get("privileged"):
        errors.invalid(path, context, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
    if "CAP_SYS_ADMIN" in context.get("capabilities", {}).get("add", ()):
        errors.invalid(
            path, context, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        )


def validate_seccomp_profile(profile: Doc | None, path: str, errors: Errors) -> None:
    """A seccomp profile, of a container or of a pod, if there is one."""
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        errors.required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILE_TYPES:
        errors.not_supported(f"{path}.type", kind, _PROFILE_TYPES)
    if kind != "Localhost":
        if local is not None:
            whole = {"Type": kind, "LocalhostProfile": local}  # upstream prints its own field names
            errors.invalid(f"{path}.localhostProfile", whole, "can only be set when seccomp type is Localhost")
    elif local is None:
        errors.required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
    else:
        validate_descending_path(local, f"{path}.localhostProfile", errors)


def validate_app_armor_profile(profile: Doc | None, path: str, errors: Errors) -> None:
    """An AppArmor profile, of a container or of a pod, if there is one."""
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if kind == "Localhost":
        _validate_app_armor_file(local, f"{path}.localhostProfile", errors)
    elif not kind:
        errors.required(f"{path}.type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILE_TYPES:
        errors.not_supported(f"{path}.type", kind, _PROFILE_TYPES)
    elif local is not None:
        errors.invalid(f"{path}.localhostProfile", local, "can only be set when AppArmor type is Localhost")


def _validate_app_armor_file(name: str | None, path: str, errors: Errors) -> None:
    if not name:
        errors.required(path, "must be set when AppArmor type is Localhost")
        return
    if name != name.strip():
        errors.invalid(path, name, "must not be padded with whitespace")
    if size(name) > _LONGEST_PROFILE:
        errors.too_long(path, _LONGEST_PROFILE)


_control_character = re.compile(r"[\x00-\x1f\x7f]").search
_net_bios = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}').fullmatch
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_dns_domain = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*").fullmatch
_bad_user_character = re.compile(r'["/\\:;|=,+*?<>@\[\]]').search


def validate_windows_options(options: Doc | None, path: str, errors: Errors) -> None:
    """Windows options, of a container or of a pod, if there are any."""
    if options is None:
        return
    name = options.get("gmsaCredentialSpecName")
    for fault in dns1123_subdomain(name) if name is not None else ():
        errors.invalid(f"{path}.gmsaCredentialSpecName", name, fault)
    spec = options.get("gmsaCredentialSpec")
    if spec == "":
        errors.invalid(f"{path}.gmsaCredentialSpec", spec, "gmsaCredentialSpec cannot be an empty string")
    elif spec is not None and size(spec) > _LARGEST_SPEC:
        errors.invalid(f"{path}.gmsaCredentialSpec", spec, "gmsaCredentialSpec size must be under 64 KiB")
    user = options.get("runAsUserName")
    for fault in _user_name_faults(user) if user is not None else ():
        errors.invalid(f"{path}.runAsUserName", user, f"runAsUserName{fault}")


def _user_name_faults(name: str) -> list[str]:
    """What is wrong with `DOMAIN\\user`."""
    if not name:
        return [" cannot be an empty string"]
    if _control_character(name):
        return [" cannot contain control characters"]
    if name.count("\\") > 1:
        return [" cannot contain more than one backslash"]
    domain, has_domain, user = name.rpartition("\\")
    checks = (
        (size(domain) >= 256, "'s Domain length must be under 256 characters"),
        (
            has_domain and not _net_bios(domain) and not _dns_domain(domain),
            "'s Domain doesn't match the NetBios nor the DNS format",
        ),
        (not user, "'s User cannot be empty"),
        (size(user) > 104, "'s User length must not be longer than 104 characters"),
        (user and not user.strip(". "), "'s User cannot contain only periods or spaces"),
        (_bad_user_character(user), "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"),
    )
    return [text for wrong, text in checks if wrong]
