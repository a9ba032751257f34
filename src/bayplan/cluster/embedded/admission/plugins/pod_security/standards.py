"""The Pod Security Standards: which checks make up a level, and in which form at which version of the policy.

Restricted includes baseline, except where a stricter check of the same thing takes a baseline check's place.

Source of truth: k8s.io/pod-security-admission 0.36 policy, registry.go.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugins.pod_security import baseline, restricted
from bayplan.cluster.embedded.admission.plugins.pod_security.walk import Annotations, Check, Finding

NEWEST = 35  # 1.35 is the last minor that changed a check; later ones mean the same


_SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SAFE_SYSCTLS = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ]
)
_SAFE_SYSCTLS_27 = _SAFE_SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SAFE_SYSCTLS_29 = _SAFE_SYSCTLS_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
_SAFE_SYSCTLS_32 = _SAFE_SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


def _unless_windows(check: Check, annotations: Annotations, spec: Doc) -> Finding | None:
    return None if spec.get("os", {}).get("name") == "windows" else check(annotations, spec)


def _unless_own_users(check: Check, annotations: Annotations, spec: Doc) -> Finding | None:
    """In a user namespace root is nobody outside."""
    return None if spec.get("hostUsers") is False else check(annotations, spec)


class _Versioned(NamedTuple):
    """One check: the minors of version 1 from which its forms hold, and the baseline check whose place it takes."""

    forms: tuple[tuple[int, Check], ...]
    instead_of: str = ""

    def at(self, minor: int) -> Check | None:
        return next((check for since, check in reversed(self.forms) if since <= minor), None)


_some = functools.partial

# Upstream reports the checks in the order of their ids; so do these tables.
_BASELINE: dict[str, _Versioned] = {
    "appArmorProfile": _Versioned(((0, baseline.apparmor),)),
    "capabilities_baseline": _Versioned(((0, baseline.capabilities),)),
    "hostNamespaces": _Versioned(((0, baseline.host_namespaces),)),
    "hostPathVolumes": _Versioned(((0, baseline.host_path_volumes),)),
    "hostPorts": _Versioned(((0, baseline.host_ports),)),
    "hostProbesAndHostLifecycle": _Versioned(((34, baseline.probe_hosts),)),
    "privileged": _Versioned(((0, baseline.privileged),)),
    "procMount": _Versioned(((0, baseline.proc_mount), (35, _some(_unless_own_users, baseline.proc_mount)))),
    "seLinuxOptions": _Versioned(
        (
            (0, _some(baseline.selinux, _SELINUX_TYPES)),
            (31, _some(baseline.selinux, _SELINUX_TYPES | {"container_engine_t"})),
        )
    ),
    "seccompProfile_baseline": _Versioned(((0, baseline.seccomp_annotations), (19, baseline.seccomp))),
    "sysctls": _Versioned(
        (
            (0, _some(baseline.sysctls, _SAFE_SYSCTLS)),
            (27, _some(baseline.sysctls, _SAFE_SYSCTLS_27)),
            (29, _some(baseline.sysctls, _SAFE_SYSCTLS_29)),
            (32, _some(baseline.sysctls, _SAFE_SYSCTLS_32)),
        )
    ),
    "windowsHostProcess": _Versioned(((0, baseline.windows_host_process),)),
}
_RESTRICTED: dict[str, _Versioned] = {
    "allowPrivilegeEscalation": _Versioned(
        ((8, restricted.privilege_escalation), (25, _some(_unless_windows, restricted.privilege_escalation)))
    ),
    "capabilities_restricted": _Versioned(
        ((22, restricted.capabilities), (25, _some(_unless_windows, restricted.capabilities))),
        "capabilities_baseline",
    ),
    "procMount_restricted": _Versioned(((35, baseline.proc_mount),), "procMount"),
    "restrictedVolumes": _Versioned(((0, restricted.volumes),), "hostPathVolumes"),
    "runAsNonRoot": _Versioned(
        ((0, restricted.run_as_non_root), (35, _some(_unless_own_users, restricted.run_as_non_root)))
    ),
    "runAsUser": _Versioned(((23, restricted.run_as_user), (35, _some(_unless_own_users, restricted.run_as_user)))),
    "seccompProfile_restricted": _Versioned(
        ((19, restricted.seccomp), (25, _some(_unless_windows, restricted.seccomp))),
        "seccompProfile_baseline",
    ),
}


@functools.cache
def _checks(level: str, minor: int) -> tuple[Check, ...]:
    stricter = _RESTRICTED if level == "restricted" else {}
    replaced = {one.instead_of for one in stricter.values() if one.at(minor)}
    every = [one.at(minor) for name, one in _BASELINE.items() if name not in replaced]
    every += [one.at(minor) for one in stricter.values()]
    return tuple(check for check in every if check is not None)


def findings(level: str, minor: int, annotations: Annotations, spec: Doc) -> list[Finding]:
    """What keeps a pod from `level` (privileged, baseline, restricted) as version 1.`minor` of the policy has it."""
    if level == "privileged":
        return []
    results = (check(annotations, spec) for check in _checks(level, min(minor, NEWEST)))
    return [finding for finding in results if finding is not None]
