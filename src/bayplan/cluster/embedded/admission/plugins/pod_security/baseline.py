"""The baseline level: no way around the walls between a pod, its neighbours and the node.

Source of truth: k8s.io/pod-security-admission 0.36 policy.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, quoted
from bayplan.cluster.embedded.admission.plugins.pod_security.walk import (
    Annotations,
    Finding,
    containers,
    context_of,
    listed,
    named,
    plural,
    setters,
    values,
    where,
)

_DEFAULT_CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_PROFILES = ("RuntimeDefault", "Localhost")
_APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER_ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/"


def _bad_type(profile: str, context: Doc) -> str | None:
    """The type of a seccomp or AppArmor profile that is neither the runtime's nor the node's own; None if it is."""
    kind: str = context.get(profile, {}).get("type", "")
    return None if profile not in context or kind in _PROFILES else kind


def _bad_types(profile: str, spec: Doc) -> tuple[str, list[str]]:
    """Who sets such a type, and which."""
    types = {kind for kind in values(spec, lambda context: _bad_type(profile, context)) if kind is not None}
    return setters(spec, lambda context: _bad_type(profile, context) is not None), sorted(types)


def apparmor(annotations: Annotations, spec: Doc) -> Finding | None:
    """AppArmor profiles are the runtime's or the node's own."""
    who, bad = _bad_types("appArmorProfile", spec)
    noted = sorted(
        f"{key}={quoted(value)}"
        for key, value in annotations.items()
        if key.startswith(_APPARMOR_ANNOTATION)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    bad += noted
    if not bad:
        return None
    both = " and ".join(text for text in (who, plural("annotation", len(noted)) if noted else "") if text)
    reason = plural("forbidden AppArmor profile", len(bad))
    return Finding(reason, f"{both} must not set AppArmor profile type to {listed(bad)}")


def capabilities(_: Annotations, spec: Doc) -> Finding | None:
    """No capabilities beyond the usual ones."""
    return added_capabilities(spec, _DEFAULT_CAPABILITIES, "non-default capabilities")


def added_capabilities(spec: Doc, allowed: frozenset[str], reason: str) -> Finding | None:
    """Which capabilities are added beyond the allowed ones."""

    def added(context: Doc) -> set[str]:
        return set(context.get("capabilities", {}).get("add", ())) - allowed

    bad = where(spec, lambda context: bool(added(context)))
    if not bad:
        return None
    which = sorted({one for every in values(spec, added) for one in every})
    detail = f"{named('container', bad)} must not include {listed(which)} in securityContext.capabilities.add"
    return Finding(reason, detail)


def host_namespaces(_: Annotations, spec: Doc) -> Finding | None:
    """The pod has its own network, processes and IPC."""
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return Finding("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(_: Annotations, spec: Doc) -> Finding | None:
    """Nothing of the node's file system."""
    bad = [volume["name"] for volume in spec.get("volumes", ()) if "hostPath" in volume]
    return Finding("hostPath volumes", named("volume", bad)) if bad else None


def host_ports(_: Annotations, spec: Doc) -> Finding | None:
    """No port of the node."""
    used = {
        container["name"]: [str(port["hostPort"]) for port in container.get("ports", ()) if port.get("hostPort")]
        for container in containers(spec)
    }
    bad = [name for name, ports in used.items() if ports]
    if not bad:
        return None
    ports = sorted({port for name in bad for port in used[name]})
    verb = "uses" if len(bad) == 1 else "use"
    return Finding("hostPort", f"{named('container', bad)} {verb} {plural('hostPort', len(ports))} {', '.join(ports)}")


def probe_hosts(_: Annotations, spec: Doc) -> Finding | None:
    """Probes and hooks call the pod, not another host."""
    found: dict[str, set[str]] = {}
    for container in containers(spec):
        hooks = container.get("lifecycle", {})
        handlers = [container.get(probe, {}) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [hooks.get(hook, {}) for hook in ("postStart", "preStop")]
        actions = [handler.get(action, {}) for handler in handlers for action in ("httpGet", "tcpSocket")]
        hosts = {action["host"] for action in actions if action.get("host")}
        if hosts:
            found.setdefault(container["name"], set()).update(hosts)
    if not found:
        return None
    verb = "uses" if len(found) == 1 else "use"
    called = named("probe or lifecycle host", sorted({host for hosts in found.values() for host in hosts}))
    return Finding("probe or lifecycle host", f"{named('container', sorted(found))} {verb} {called}")


def privileged(_: Annotations, spec: Doc) -> Finding | None:
    """No privileged containers."""
    bad = where(spec, lambda context: bool(context.get("privileged")))
    detail = f"{named('container', bad)} must not set securityContext.privileged=true" if bad else ""
    return Finding("privileged", detail) if bad else None


def proc_mount(_: Annotations, spec: Doc) -> Finding | None:
    """The usual masks on /proc."""

    def mount(context: Doc) -> str:
        return str(context.get("procMount", "Default"))

    bad = where(spec, lambda context: mount(context) != "Default")
    if not bad:
        return None
    kinds = sorted({mount(context_of(container)) for container in containers(spec)} - {"Default"})
    return Finding("procMount", f"{named('container', bad)} must not set securityContext.procMount to {listed(kinds)}")


def selinux(allowed: frozenset[str], _: Annotations, spec: Doc) -> Finding | None:
    """SELinux types of containers only; user and role are the runtime's."""

    def options(context: Doc) -> Doc:
        found: Doc = context.get("seLinuxOptions", {})
        return found

    def is_bad(context: Doc) -> bool:
        own = options(context)
        return own.get("type", "") not in allowed or bool(own.get("user")) or bool(own.get("role"))

    who = setters(spec, is_bad)
    if not who:
        return None
    every = values(spec, options)
    types = sorted({own.get("type", "") for own in every} - allowed)
    data = [named("type", types)] if types else []
    data += [f"{field} may not be set" for field in ("user", "role") if any(own.get(field) for own in every)]
    return Finding("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}")


def seccomp_annotations(annotations: Annotations, spec: Doc) -> Finding | None:
    """Before 1.19 seccomp profiles were annotations."""
    keys = [_SECCOMP_ANNOTATION, *(_SECCOMP_CONTAINER_ANNOTATION + one["name"] for one in containers(spec))]
    bad = sorted(
        {
            f"{key}={quoted(annotations[key])}"
            for key in keys
            if key in annotations
            and annotations[key] not in ("runtime/default", "docker/default")
            and not annotations[key].startswith("localhost/")
        }
    )
    detail = f"forbidden {plural('annotation', len(bad))} {', '.join(bad)}"
    return Finding("seccompProfile", detail) if bad else None


def seccomp(_: Annotations, spec: Doc) -> Finding | None:
    """Seccomp is not switched off."""
    who, bad = _bad_types("seccompProfile", spec)
    detail = f"{who} must not set securityContext.seccompProfile.type to {listed(bad)}"
    return Finding("seccompProfile", detail) if bad else None


def sysctls(safe: frozenset[str], _: Annotations, spec: Doc) -> Finding | None:
    """Only kernel settings that concern the pod alone."""
    bad = [one["name"] for one in context_of(spec).get("sysctls", ()) if one["name"] not in safe]
    return Finding("forbidden sysctls", ", ".join(bad)) if bad else None


def windows_host_process(_: Annotations, spec: Doc) -> Finding | None:
    """No processes on a Windows host."""
    who = setters(spec, lambda context: bool(context.get("windowsOptions", {}).get("hostProcess")))
    detail = f"{who} must not set securityContext.windowsOptions.hostProcess=true"
    return Finding("hostProcess", detail) if who else None
